"""Logins pass through: handshakes of both versions, bare tokens, and a second login on a connection that lives."""

import unittest

from tests.proxy.peers import (
    ScriptedBroker,
    SessionCase,
    batch,
    kafka_batch,
    log_size,
    produce,
    proxy_for,
    records_of,
    wait_for_fds,
    wait_for_log,
)
from tests.support import kafka_wire

SECRET = b"correct horse battery staple"
PLAIN = kafka_wire.frame(b"\0user\0" + SECRET)
EMPTY = kafka_wire.frame(b"")
WRAPPED = kafka_wire.frame(b"\x05\x04" + SECRET)
ILLEGAL_SASL_STATE = 34


class SaslCase(SessionCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(ScriptedBroker())
        cls.proxy = cls.enterClassContext(proxy_for(cls.broker, log={"level": "trace"}))
        wait_for_log(cls.proxy, "node", "id=0")

    def tearDown(self):
        for secret in (SECRET, SECRET.hex().encode(), b"correct"):
            self.assertNotIn(secret.decode(), self.proxy.log())

    def handshake(self, mechanism, version=0, error_code=0):
        client, upstream = self.session()
        client.send("SaslHandshake", version, {"mechanism": mechanism})
        request = upstream.request()
        self.assertEqual((request.api, request.version, request.body["mechanism"]), ("SaslHandshake", version, mechanism))
        upstream.answer(request, {"error_code": error_code, "mechanisms": [mechanism]})
        self.assertEqual(client.response("SaslHandshake", version)[1]["error_code"], error_code)
        return client, upstream

    def exchange(self, client, upstream, api="ListOffsets", version=1):
        client.send(api, version)
        request = upstream.request()
        upstream.answer(request)
        self.assertEqual(client.response(api, version)[0], request.correlation_id)

    def pass_token(self, client, upstream, token, answer=None):
        client.send_bytes(token)
        self.assertEqual(upstream.frame(), token)
        if answer is not None:
            upstream.send_bytes(answer)
            self.assertEqual(client.frame(), answer)


class BareTokens(SaslCase):
    def test_plain_and_then_requests(self):
        client, upstream = self.handshake("PLAIN")
        self.pass_token(client, upstream, PLAIN, EMPTY)
        self.exchange(client, upstream)

    def test_scram_and_then_requests(self):
        client, upstream = self.handshake("SCRAM-SHA-256")
        for _ in range(2):
            self.pass_token(client, upstream, PLAIN, WRAPPED)
        self.exchange(client, upstream)

    def test_gssapi_whose_last_token_gets_no_answer(self):
        client, upstream = self.handshake("GSSAPI")
        self.pass_token(client, upstream, kafka_wire.frame(b"\x60" + SECRET), kafka_wire.frame(b"\x60\x01"))
        self.pass_token(client, upstream, EMPTY, WRAPPED)
        self.pass_token(client, upstream, WRAPPED)
        self.exchange(client, upstream)

    def test_what_is_sent_without_waiting_is_answered_in_order(self):
        client, upstream = self.session()
        client.send("ListOffsets", 1)
        client.send("SaslHandshake", 0, {"mechanism": "PLAIN"})
        client.send_bytes(PLAIN)
        client.send("ListOffsets", 1)
        first, handshake = upstream.request(), upstream.request()
        self.assertTrue(upstream.is_silent(0.3))  # what comes next is not known before the handshake is answered
        upstream.answer(first)
        upstream.answer(handshake, {"mechanisms": ["PLAIN"]})
        self.assertEqual(upstream.frame(), PLAIN)
        second = upstream.request()
        upstream.send_bytes(EMPTY)
        upstream.answer(second)
        self.assertEqual(client.response("ListOffsets", 1)[0], first.correlation_id)
        self.assertEqual(client.response("SaslHandshake", 0)[0], handshake.correlation_id)
        self.assertEqual(client.frame(), EMPTY)
        self.assertEqual(client.response("ListOffsets", 1)[0], second.correlation_id)

    def test_a_large_token_streams(self):
        client, upstream = self.handshake("OAUTHBEARER")
        self.pass_token(client, upstream, kafka_wire.frame(SECRET * 100_000), EMPTY)
        self.exchange(client, upstream)

    def test_a_handshake_that_is_refused_is_followed_by_requests(self):
        client, upstream = self.handshake("PLAIN", error_code=ILLEGAL_SASL_STATE)
        self.exchange(client, upstream)

    def test_a_token_that_is_refused_ends_the_connection_and_the_log_says_so(self):
        fds, lines = self.proxy.fds(), log_size(self.proxy)
        client, upstream = self.handshake("PLAIN")
        self.pass_token(client, upstream, PLAIN)
        upstream.close()
        self.assertEqual(client.read_to_end(), b"")
        client.close()
        wait_for_log(self.proxy, "warn", "refuses a login", after=lines)
        wait_for_fds(self.proxy, fds + 3)

    def test_tokens_of_an_unknown_mechanism_are_not_guessed_at(self):
        lines = log_size(self.proxy)
        client, upstream = self.handshake("DIGEST-MD5")
        client.send_bytes(PLAIN)
        self.assertEqual(client.read_to_end(), b"")
        self.assertEqual(upstream.read_to_end(), b"")
        wait_for_log(self.proxy, "warn", "SaslHandshake version 0", "not known of this mechanism", after=lines)

    def test_whichever_side_ends_within_the_exchange_the_other_follows(self):
        fds = self.proxy.fds()
        for cut in (2, 4, 5, len(PLAIN)):
            for who in ("client", "broker"):
                with self.subTest(cut=cut, who=who):
                    client, upstream = self.handshake("PLAIN")
                    client.send_bytes(PLAIN[:cut])
                    first, second = (client, upstream) if who == "client" else (upstream, client)
                    first.close()
                    second.read_to_end()
                    second.close()
        wait_for_fds(self.proxy, fds + 3)

    def test_batches_behind_the_tokens_are_mapped(self):
        client, upstream = self.handshake("PLAIN")
        self.pass_token(client, upstream, PLAIN, EMPTY)
        client.send("Produce", 9, produce(batch(5)))
        (got,) = kafka_batch.split(records_of(upstream.request()))
        self.assertLess(got.producer_id, 0)


class Again(SaslCase):
    """A second login on a live connection, between two requests."""

    def assert_answered(self, client, request, api, version):
        self.assertEqual(client.response(api, version)[0], request.correlation_id)

    def test_by_requests(self):
        client, upstream = self.session()
        for version in range(3):
            with self.subTest(version=version):
                client.send("Produce", 9, produce(batch(5)))
                client.send("SaslHandshake", 1, {"mechanism": "PLAIN"})
                before, handshake = upstream.request(), upstream.request()
                upstream.answer(before)
                upstream.answer(handshake, {"mechanisms": ["PLAIN"]})
                self.assert_answered(client, before, "Produce", 9)
                self.assert_answered(client, handshake, "SaslHandshake", 1)
                client.send("SaslAuthenticate", version, {"auth_bytes": SECRET})
                login = upstream.request()
                self.assertEqual(login.body["auth_bytes"], SECRET)
                client.send("Produce", 9, produce(batch(5)))
                after = upstream.request()
                upstream.answer(login, {"session_lifetime_ms": 1000})
                upstream.answer(after)
                self.assert_answered(client, login, "SaslAuthenticate", version)
                self.assert_answered(client, after, "Produce", 9)

    def test_by_bare_tokens(self):
        client, upstream = self.session()
        for _ in range(3):
            client.send("Produce", 9, produce(batch(5)))
            client.send("SaslHandshake", 0, {"mechanism": "PLAIN"})
            before, handshake = upstream.request(), upstream.request()
            upstream.answer(before)
            upstream.answer(handshake, {"mechanisms": ["PLAIN"]})
            self.assert_answered(client, before, "Produce", 9)
            self.assert_answered(client, handshake, "SaslHandshake", 0)
            self.pass_token(client, upstream, PLAIN, EMPTY)
            self.exchange(client, upstream)


if __name__ == "__main__":
    unittest.main()
