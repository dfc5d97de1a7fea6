"""TLS on both sides: what clients connect to, and what is dialled."""

import shutil
import signal
import ssl
import subprocess
import unittest

from tests.proxy.peers import (
    CLUSTER_ID,
    TIMEOUT,
    Client,
    ScriptedBroker,
    SessionCase,
    batch,
    kafka_batch,
    kafka_wire,
    log_size,
    produce,
    proxy_for,
    records_of,
    wait_for_log,
)
from tests.support import mirrorpid
from tests.support.authority import Authority
from tests.support.mapping import mapped, region_of

MAPPED = mapped(region_of(CLUSTER_ID), 5)


class TlsCase(SessionCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("openssl"):
            raise unittest.SkipTest("the openssl command, which makes the certificates, is not installed")
        cls.authority = Authority()
        for name in ("server", "broker", "friend"):
            cls.authority.issue(name)

    def listener_tls(self, **more):
        return {"cert_file": self.authority / "server.pem", "key_file": self.authority / "server.key", **more}

    def start(self, broker_tls=None, destination=None, listener=None):
        self.broker = self.enterContext(ScriptedBroker(tls=broker_tls))
        extra = {"tls": listener} if listener else {}
        self.proxy = proxy_for(
            self.broker,
            sources=[mirrorpid.Source("eu", CLUSTER_ID, extra=extra)],
            extra={"destination": {"bootstrap_servers": [self.broker.address], **(destination or {})}},
        )
        self.enterContext(self.proxy)

    def client(self, tls=None, node=None):
        address = self.proxy.address("eu") if node is None else self.proxy.node_address("eu", node)
        client = Client(address, tls=tls, server_hostname="localhost" if tls else None)
        self.addCleanup(client.close)
        return client

    def assert_works(self, client):
        client.send("Produce", 9, produce(batch(5), acks=1))
        upstream, request = self.upstream_of(client)
        self.assertEqual(kafka_batch.split(records_of(request))[0].producer_id, MAPPED)
        upstream.answer(request)
        self.assertEqual(client.response("Produce", 9)[0], 1)
        return upstream


class ListenerTls(TlsCase):
    def test_clients_are_served_over_tls_at_every_listener(self):
        self.start(listener=self.listener_tls())
        wait_for_log(self.proxy, "node", "id=0")
        tls = self.authority.client_context()
        for node in (None, 0):
            self.assert_works(self.client(tls, node=node))

    def test_clients_must_ask_for_a_name_where_names_are_given(self):
        self.start(listener=self.listener_tls(server_names=["localhost", "*.mirrorpid.example"]))
        served = "serves localhost, *.mirrorpid.example"
        tls = self.authority.client_context()
        anybody = self.authority.client_context()
        anybody.check_hostname = False
        refused = {
            "other.example": "asks for the server name 'other.example'",
            "mirrorpid.example": "asks for the server name 'mirrorpid.example'",
            "a.b.mirrorpid.example": "asks for the server name 'a.b.mirrorpid.example'",
            None: "asks for no server name (SNI)",
        }
        for name, asked in refused.items():
            with self.subTest(name=name), self.assertRaises((ssl.SSLError, ConnectionError)):
                Client(self.proxy.address("eu"), tls=anybody, server_hostname=name)
            wait_for_log(self.proxy, "TLS handshake failed", f"{asked}, and this listener {served}")
        for name in ("Node-1.mirrorpid.example", "LOCALHOST"):
            with self.subTest(name=name):
                client = Client(self.proxy.address("eu"), tls=anybody, server_hostname=name)
                self.addCleanup(client.close)
                self.assert_works(client)
        self.assert_works(self.client(tls))

    def test_large_requests_and_responses_pass_in_order(self):
        self.start(listener=self.listener_tls())
        client = self.client(self.authority.client_context())
        upstream = self.assert_works(client)
        payload = bytes(range(256)) * 12_000
        for _ in range(3):
            client.send("Produce", 9, produce(batch(5, payload=payload), acks=0))
            (got,) = kafka_batch.split(records_of(upstream.request()))
            self.assertEqual((got.producer_id, got.data[-3000:]), (MAPPED, batch(5, payload=payload)[-3000:]))
        client.send("Fetch", 12)
        request = upstream.request()
        body = {"responses": [{"partitions": [{"records": payload}]}]}
        upstream.answer(request, body)
        answer = client.response("Fetch", 12)[1]
        self.assertEqual(answer["responses"][0]["partitions"][0]["records"], payload)

    def test_many_small_requests_in_one_record_and_one_in_many(self):
        self.start(listener=self.listener_tls())
        client = self.client(self.authority.client_context())
        upstream = self.assert_works(client)
        frame = kafka_wire.request_frame("Produce", 9, 2, produce(batch(5), acks=0))
        client.send_bytes(frame * 300)
        for i in range(len(frame)):
            client.send_bytes(frame[i : i + 1])
        for _ in range(301):
            (got,) = kafka_batch.split(records_of(upstream.request()))
            self.assertEqual(got.producer_id, MAPPED)

    def test_the_end_of_one_side_comes_through(self):
        self.start(listener=self.listener_tls())
        client = self.client(self.authority.client_context())
        upstream = self.assert_works(client)
        upstream.close()
        self.assertEqual(client.read_to_end(), b"")
        client = self.client(self.authority.client_context())
        upstream = self.assert_works(client)
        client.sock.unwrap().close()
        self.assertEqual(upstream.read_to_end(), b"")

    def test_plain_bytes_at_a_tls_listener_are_closed_with_a_line(self):
        self.start(listener=self.listener_tls())
        client = self.client()
        client.send("ApiVersions", 0)
        client.read_to_end()
        wait_for_log(self.proxy, "TLS handshake failed", "source=eu", "peer=127.0.0.1:")
        self.assertEqual(self.broker.dialled, 0)

    def test_a_client_that_says_nothing_is_not_waited_for_at_sigterm(self):
        self.start(listener=self.listener_tls())
        client = self.client()
        self.proxy.process.send_signal(signal.SIGTERM)
        client.read_to_end()
        client.close()
        self.proxy.wait_for_end(TIMEOUT)

    def test_unacknowledged_requests_just_sent_are_forwarded_at_sigterm(self):
        self.start(listener=self.listener_tls())
        client = self.client(self.authority.client_context())
        upstream = self.assert_works(client)
        frame = kafka_wire.request_frame("Produce", 9, 2, produce(batch(5), acks=0))
        for _ in range(300):
            client.send_bytes(frame)
        self.proxy.process.send_signal(signal.SIGTERM)
        received = upstream.read_to_end()
        self.assertEqual(len(received), 300 * len(frame))
        client.read_to_end()
        client.close()
        self.proxy.wait_for_end(TIMEOUT)

    def test_health_asks_over_tls_too(self):
        self.start(listener=self.listener_tls())
        command = [mirrorpid.program(), "health", "--config", self.proxy.directory / "mirrorpid.yaml"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            upstream = self.broker.accept()
            self.addCleanup(upstream.close)
            upstream.answer(upstream.request(), {"api_keys": []})
            out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, out)


class ClientCertificates(TlsCase):
    def setUp(self):
        self.start(listener=self.listener_tls(client_ca_file=self.authority / "ca.pem"))

    def test_a_client_with_a_certificate_is_served(self):
        self.assert_works(self.client(self.authority.client_context("friend")))

    def test_a_client_without_one_is_refused_with_a_line(self):
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            client = self.client(self.authority.client_context())
            client.send("ApiVersions", 0)
            client.sock.recv(1)
        wait_for_log(self.proxy, "TLS handshake failed", "certificate")
        self.assertEqual(self.broker.dialled, 0)

    def test_a_client_of_another_authority_is_refused(self):
        stranger = Authority()
        stranger.issue("stranger")
        tls = self.authority.client_context()
        tls.load_cert_chain(stranger / "stranger.pem", stranger / "stranger.key")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            client = self.client(tls)
            client.send("ApiVersions", 0)
            client.sock.recv(1)
        wait_for_log(self.proxy, "TLS handshake failed")

    def test_health_without_a_certificate_connects_and_says_so(self):
        command = [mirrorpid.program(), "health", "--config", self.proxy.directory / "mirrorpid.yaml"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("certificate", done.stdout)


class DestinationTls(TlsCase):
    def test_brokers_are_dialled_over_tls_and_nodes_are_learnt_over_it(self):
        tls = self.authority.server_context("broker")
        self.start(broker_tls=tls, destination={"tls": {"ca_file": self.authority / "ca.pem"}})
        wait_for_log(self.proxy, "node", "id=0")
        for node in (None, 0):
            client = self.client(node=node)
            upstream = self.assert_works(client)
            records = batch(5, payload=bytes(3_000_000))
            client.send("Produce", 9, produce(records, acks=0))
            self.assertEqual(len(records_of(upstream.request())), len(records))

    def test_both_sides_over_tls(self):
        tls = self.authority.server_context("broker")
        self.start(
            broker_tls=tls, destination={"tls": {"ca_file": self.authority / "ca.pem"}}, listener=self.listener_tls()
        )
        self.assert_works(self.client(self.authority.client_context()))

    def test_a_broker_that_asks_for_a_certificate_gets_ours(self):
        files = {"cert_file": self.authority / "friend.pem", "key_file": self.authority / "friend.key"}
        self.start(
            broker_tls=self.authority.server_context("broker", asks=True),
            destination={"tls": {"ca_file": self.authority / "ca.pem", **files}},
        )
        wait_for_log(self.proxy, "node", "id=0")
        self.assert_works(self.client())

    def test_a_broker_whose_certificate_is_for_another_host_is_not_trusted(self):
        self.authority.issue("elsewhere", "DNS:elsewhere.example")
        self.start(
            broker_tls=self.authority.server_context("elsewhere"),
            destination={"tls": {"ca_file": self.authority / "ca.pem"}},
        )
        client = self.client()
        client.send("ApiVersions", 0)
        self.assertEqual(client.read_to_end(), b"")
        wait_for_log(self.proxy, "cannot be reached", "TLS: ")
        self.assertEqual(self.broker.dialled, 0)

    def test_a_server_name_stands_for_the_host(self):
        self.authority.issue("named", "DNS:kafka.example")
        self.start(
            broker_tls=self.authority.server_context("named"),
            destination={
                "tls": {"ca_file": self.authority / "ca.pem", "server_name": "kafka.example"},
                "client": {"ssl.endpoint.identification.algorithm": "none"},
            },
        )
        self.assert_works(self.client())

    def test_a_plain_broker_behind_a_tls_destination_is_told(self):
        self.start(destination={"tls": {"ca_file": self.authority / "ca.pem"}})
        before = log_size(self.proxy)
        client = self.client()
        client.send("ApiVersions", 0)
        while client.is_silent(0):
            self.broker.accept().close()  # a TLS hello: no frame size that a broker would take
        self.assertEqual(client.read_to_end(), b"")
        wait_for_log(self.proxy, "cannot be reached", "TLS: ", after=before)


if __name__ == "__main__":
    unittest.main()
