"""Peers that break the protocol: their connection is closed, with a line that says why, and nobody else notices."""

import os
import select
import struct
import unittest

from tests.proxy.peers import (
    Client,
    ScriptedBroker,
    SessionCase,
    batch,
    log_size,
    produce,
    proxy_for,
    wait_for_fds,
    wait_for_log,
)
from tests.support import kafka_wire

LIMIT = 1 << 20  # bytes of a frame


class FaultCase(SessionCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(ScriptedBroker())
        limits = {"frame_size_max": "1MiB", "drain_timeout": "5s"}
        cls.proxy = cls.enterClassContext(proxy_for(cls.broker, limits=limits))
        wait_for_log(cls.proxy, "node", "id=0")


class EarlyEnds(FaultCase):
    def test_a_broker_that_ends_before_it_answers_is_told_in_the_log(self):
        lines = log_size(self.proxy)
        client = self.client()
        client.send("ApiVersions", 0)
        upstream, _ = self.upstream_of(client)
        upstream.close()
        self.assertEqual(client.read_to_end(), b"")
        wait_for_log(self.proxy, "warn", "unanswered=1", "destination.tls", after=lines)


class Clients(FaultCase):
    def assert_closed_with(self, data, *texts):
        """What a connection begins with: no broker hears of it."""
        lines = log_size(self.proxy)
        client = self.client()
        name = "peer=127.0.0.1:%d" % client.sock.getsockname()[1]
        client.send_bytes(data)
        self.assertEqual(client.read_to_end(), b"")
        client.close()
        line = wait_for_log(self.proxy, "warn", "peer=127.0.0.1:", "source=eu", *texts, after=lines)
        dials = [text for text in self.proxy.log().splitlines() if "connected to a broker" in text]
        self.assertFalse([text for text in dials if name in text.split()])
        return line

    def test_frame_sizes_that_cannot_be_are_named(self):
        for size in (-1, 0, 3, 7, 0x7FFFFFFF, LIMIT + 1, -(1 << 31)):
            with self.subTest(size):
                self.assert_closed_with(struct.pack(">i", size), f"frame size {size}", "offset=0")

    def test_versions_that_the_proxy_cannot_read_are_refused_before_a_broker_is_dialled(self):
        for key, version in ((0, 14), (0, -1), (3, 99), (60, 3), (999, -5)):
            with self.subTest(key=key, version=version):
                head = struct.pack(">hhi", key, version, 1) + struct.pack(">h", -1)
                self.assert_closed_with(kafka_wire.frame(head), f"version {version}")

    def test_a_frame_of_exactly_the_limit_passes(self):
        client, upstream = self.session()
        frame = kafka_wire.frame(struct.pack(">hhi", 999, 0, 5) + bytes(LIMIT - 8))
        client.send_bytes(frame)
        self.assertEqual(upstream.frame(), frame)

    def test_other_protocols_are_named(self):
        cases = [
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40), "a TLS handshake"),
            (b"\x15\x03\x00\x00\x02\x02\x28", "a TLS alert"),
            (b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", "an HTTP request"),
            (b"POST /topics HTTP/1.1\r\n\r\n", "an HTTP request"),
        ]
        for data, text in cases:
            with self.subTest(text):
                self.assert_closed_with(data, text)

    def test_an_api_key_below_zero_does_not_exist(self):
        self.assert_closed_with(struct.pack(">ihhi", 8, -1, 0, 1), "API key -1 does not exist")

    def test_a_version_that_no_table_describes_is_not_forwarded(self):
        client, upstream = self.session()
        lines = log_size(self.proxy)
        client.send_bytes(kafka_wire.frame(struct.pack(">hhi", 0, 14, 77) + bytes(50)))
        self.assertEqual(client.read_to_end(), b"")
        self.assertEqual(upstream.read_to_end(), b"")
        wait_for_log(self.proxy, "Produce version 14", "api=Produce", "version=14", "correlation_id=77", after=lines)

    def test_a_batch_head_that_makes_no_sense_is_named_with_its_place(self):
        client, upstream = self.session()
        lines = log_size(self.proxy)
        records = bytearray(batch())
        records[16] = 9
        client.send("Produce", 9, produce(bytes(records), partition=4))
        self.assertEqual(client.read_to_end(), b"")
        upstream.read_to_end()
        wait_for_log(self.proxy, "magic 9", "topic orders, partition 4", "api=Produce", after=lines)

    def test_requests_before_a_bad_one_get_their_answers(self):
        client, upstream = self.session()
        for _ in range(3):
            client.send("ListOffsets", 1)
        client.send_bytes(struct.pack(">i", -1) + bytes(400_000))  # closing on unread bytes would lose the answers
        requests = [upstream.request() for _ in range(3)]
        self.assertEqual(upstream.recv(1), b"")  # no more comes
        for request in requests:
            upstream.answer(request)
        self.assertEqual([client.response("ListOffsets", 1)[0] for _ in range(3)], [2, 3, 4])
        self.assertEqual(client.read_to_end(), b"")
        poller = select.poll()
        poller.register(client.sock, 0)  # a reset is told unasked
        self.assertEqual(poller.poll(200), [])

    def test_a_fault_of_one_connection_leaves_the_others_alone(self):
        others = [self.session() for _ in range(4)]
        for client, _ in others:
            client.send("ListOffsets", 1)
        requests = [upstream.request() for _, upstream in others]
        for _ in range(4):
            self.assert_closed_with(struct.pack(">i", -1), "frame size -1")
        for (client, upstream), request in zip(others, requests, strict=True):
            upstream.answer(request)
            self.assertEqual(client.response("ListOffsets", 1)[0], 2)

    def test_connections_that_say_nothing_cost_the_cluster_nothing(self):
        fds, lines = self.proxy.fds(), log_size(self.proxy)
        for data in (b"", b"\0", b"\0\0\0\x20\0\x12\0\0\0\0\0") * 20:  # no byte, one, all of a head but one
            client = self.client()
            client.send_bytes(data)
            client.close()
        silent = self.client()
        silent.send_bytes(b"\0")
        self.assertTrue(silent.is_silent(0.3))
        silent.close()
        wait_for_fds(self.proxy, fds + 3)
        log = "\n".join(self.proxy.log().splitlines()[lines:])
        self.assertNotIn("connected to a broker", log)
        self.assertNotIn("warn", log)

    def test_a_client_that_leaves_while_its_broker_is_dialled(self):
        fds = self.proxy.fds()
        for _ in range(30):
            client = self.client()
            client.send("Metadata", 12)
            client.reset()
        client = self.client()
        client.send("ListOffsets", 1)
        upstream, request = self.upstream_of(client)
        upstream.answer(request)
        self.assertEqual(client.response("ListOffsets", 1)[0], 1)
        client.close()
        wait_for_fds(self.proxy, fds + 3)


class ManyFaults(FaultCase):
    """So many that not all of them are in the log."""

    def test_a_million_bytes_of_garbage(self):
        fds = self.proxy.fds()
        for _ in range(8):
            client = self.client()
            try:
                client.send_bytes(os.urandom(1_000_000))
            except ConnectionError:
                pass  # closed in the middle, as it should be
            self.assertEqual(client.read_to_end(), b"")
            client.close()
        wait_for_fds(self.proxy, fds + 3)

    def test_a_request_with_lengths_that_cannot_be_never_reaches_the_broker_whole(self):
        frame = kafka_wire.request_frame("Produce", 9, 9, produce(batch()))
        for cut in range(30, len(frame)):
            client, upstream = self.session()
            broken = struct.pack(">i", cut - 4) + frame[4:cut]
            client.send_bytes(broken)
            self.assertLess(len(upstream.read_to_end()), len(broken))
            self.assertEqual(client.read_to_end(), b"")
            client.close()

    def test_many_faults_do_not_fill_the_log(self):
        proxy = self.enterContext(proxy_for(self.broker, limits={"threads": 1}))
        count = 200
        for _ in range(count):
            client = Client(proxy.address("eu"))
            client.send_bytes(b"\xff\xff\xff\xff")
            self.assertEqual(client.read_to_end(), b"")
            client.close()
        lines = proxy.log().count("frame size -1")
        self.assertGreater(lines, 0)
        self.assertLess(lines, count / 2)


class Brokers(FaultCase):
    def assert_closed_after(self, response, *texts, api="ListOffsets", version=1):
        client, upstream = self.session()
        client.send(api, version)
        request = upstream.request()
        lines = log_size(self.proxy)
        upstream.send_bytes(response(request) if callable(response) else response)
        self.assertEqual(upstream.read_to_end(), b"")
        client.read_to_end()
        client.close()
        wait_for_log(self.proxy, "a response cannot be read", *texts, after=lines)

    def test_a_response_that_nobody_asked_for(self):
        client, upstream = self.session()
        upstream.send_bytes(struct.pack(">ii", 4, 99))
        self.assertEqual(client.read_to_end(), b"")
        wait_for_log(self.proxy, "correlation id 99 that nobody asked for")

    def test_a_response_out_of_order(self):
        self.assert_closed_after(struct.pack(">ii", 4, 99), "correlation id 99 where 2 was next", "api=2")

    def test_sizes_that_cannot_be(self):
        for size in (-1, 0, 3, -(1 << 31)):
            with self.subTest(size):
                self.assert_closed_after(struct.pack(">ii", size, 2), f"response size {size}")

    def test_a_response_too_large_to_be_rewritten_is_not_waited_for(self):
        size = (64 << 20) + 1
        self.assert_closed_after(struct.pack(">ii", size, 2), str(size + 4), "api=Metadata", api="Metadata", version=12)

    def test_a_response_that_must_be_rewritten_and_cannot_be_read_does_not_go_on(self):
        client, upstream = self.session()
        client.send("Metadata", 12)
        request = upstream.request()
        upstream.send_bytes(kafka_wire.frame(struct.pack(">i", request.correlation_id) + b"\xff" * 40))
        self.assertEqual(client.read_to_end(), b"")
        wait_for_log(self.proxy, "api=Metadata", "version=12", "a response cannot be read")

    def test_others_live_on(self):
        client, upstream = self.session()
        self.test_a_response_that_nobody_asked_for()
        client.send("ListOffsets", 1)
        upstream.answer(upstream.request())
        self.assertEqual(client.response("ListOffsets", 1)[0], 2)


class EachStep(FaultCase):
    """One conversation, broken off after each of its steps and inside each of its frames, by either side."""

    STEPS = [
        ("ApiVersions", 4, {}, {"api_keys": [{"api_key": 18, "max_version": 4}]}),
        ("Metadata", 12, {"topics": [{"name": "orders"}]}, {"brokers": [{"node_id": 0, "host": "b", "port": 1}]}),
        ("Produce", 9, produce(batch()), {"responses": []}),
        ("Fetch", 16, {}, {"node_endpoints": [{"node_id": 0, "host": "b", "port": 1}]}),
    ]

    def conversation(self, stop, end):
        """Runs until frame `stop` (0: the first request, 1: its response, ...) of which only `end` leaves; returns
        both ends of the session."""
        client, upstream = self.session()
        for number, (api, version, request_body, response_body) in enumerate(self.STEPS):
            frame = kafka_wire.request_frame(api, version, number, request_body)
            is_last = stop == 2 * number
            client.send_bytes(end(frame) if is_last else frame)
            if is_last:
                return client, upstream
            request = upstream.request()
            response = kafka_wire.response_frame(api, version, request.correlation_id, response_body)
            is_last = stop == 2 * number + 1
            upstream.send_bytes(end(response) if is_last else response)
            if is_last:
                return client, upstream
            client.response(api, version)
        raise AssertionError("there is no such step")

    def test_whichever_side_ends_the_other_follows_and_nothing_is_left(self):
        fds = self.proxy.fds()
        cuts = {"all": lambda frame: frame, "half": lambda frame: frame[: len(frame) // 2], "head": lambda f: f[:12]}
        for stop in range(2 * len(self.STEPS)):
            for cut, end in cuts.items():
                for who in ("client", "broker", "client resets", "broker resets"):
                    with self.subTest(stop=stop, cut=cut, who=who):
                        client, upstream = self.conversation(stop, end)
                        first, second = (client, upstream) if "client" in who else (upstream, client)
                        if "resets" in who:
                            first.reset()
                        else:
                            first.close()
                        second.read_to_end()
                        second.close()
        wait_for_fds(self.proxy, fds + 3)


if __name__ == "__main__":
    unittest.main()
