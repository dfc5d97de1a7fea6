"""Much data and many connections: memory stays bounded, and nobody pays for another's slowness."""

import contextlib
import struct
import threading
import unittest

from tests.proxy.peers import (
    ScriptedBroker,
    SessionCase,
    batch,
    has_sanitizer,
    produce,
    proxy_for,
    wait_for_fds,
    wait_for_log,
)
from tests.support import kafka_wire

MIB = 1 << 20


class LoadCase(SessionCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(ScriptedBroker())
        cls.proxy = cls.enterClassContext(proxy_for(cls.broker))
        wait_for_log(cls.proxy, "node", "id=0")

    def assert_grows_less(self, before, size):
        """A sanitizer keeps what is freed for a while, so there the program's memory tells nothing."""
        if not has_sanitizer():
            self.assertLess(self.proxy.peak() - before, size)

    def assert_alive(self, client, upstream):
        client.send("Metadata", 12)
        request = upstream.request()
        upstream.answer(request)
        self.assertEqual(client.response("Metadata", 12)[0], request.correlation_id)


@contextlib.contextmanager
def in_background(function):
    failures = []

    def run():
        try:
            function()
        except Exception as error:  # told below, on the test's own thread
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join(120)
    if thread.is_alive():
        raise TimeoutError("the other side has not finished")
    if failures:
        raise failures[0]


class Large(LoadCase):
    def test_a_produce_request_of_100_mb_passes_and_is_never_held(self):
        client, upstream = self.session()
        small = kafka_wire.request_frame("Produce", 9, 1, produce(batch(payload=b"x" * MIB), acks=0))
        for _ in range(8):  # until every buffer has its size
            with in_background(lambda: client.send_bytes(small)):
                upstream.frame()
        before = self.proxy.rss()
        header = batch(payload=b"")
        payload_size = (100 << 20) - 200
        records = header[:8] + struct.pack(">i", payload_size - 12) + header[12:] + bytes(payload_size - len(header))
        frame = kafka_wire.request_frame("Produce", 9, 1, produce(records))
        self.assertLessEqual(len(frame) - 4, 100 << 20)
        received = []
        with in_background(lambda: client.send_bytes(frame)):
            received.append(upstream.frame())
            self.assert_grows_less(before, 2 * MIB)
        self.assertEqual(len(received[0]), len(frame))
        self.assertEqual(received[0][-MIB:], frame[-MIB:])
        self.assertEqual(client.is_silent(0), True)
        upstream.send_bytes(kafka_wire.response_frame("Produce", 9, 1, {}))
        self.assertEqual(client.response("Produce", 9)[0], 1)
        self.assert_alive(client, upstream)

    def test_a_fetch_response_of_100_mb_passes_and_is_never_held(self):
        client, upstream = self.session()
        before = self.proxy.rss()
        client.send("Fetch", 16)
        request = upstream.request()
        records = bytes(100 << 20)
        body = {
            "responses": [{"partitions": [{"records": records}]}],
            "node_endpoints": [{"node_id": 0, "host": "internal", "port": 1}],
        }
        with in_background(lambda: upstream.answer(request, body)):
            answer = client.response("Fetch", 16)[1]
            self.assert_grows_less(before, 2 * MIB)
        self.assertEqual(answer["responses"][0]["partitions"][0]["records"], records)
        self.assert_alive(client, upstream)


class Slow(LoadCase):
    def test_a_consumer_that_stops_reading_holds_nothing_but_its_own_connection(self):
        others = [self.session() for _ in range(4)]
        client, upstream = self.session()
        size = 16 * MIB
        response = kafka_wire.frame(bytes(4) + bytes(size))
        for _ in range(16):  # 256 MiB
            client.send("ListOffsets", 1)
        requests = [upstream.request() for _ in range(16)]
        before = self.proxy.rss()

        def send_all():
            for request in requests:
                upstream.send_bytes(response[:4] + struct.pack(">i", request.correlation_id) + response[8:])

        with in_background(send_all):
            for _ in range(50):
                for other in others:
                    self.assert_alive(*other)
            self.assert_grows_less(before, 2 * MIB)
            for request in requests:
                answer = client.frame()
                self.assertEqual(len(answer), len(response))
                self.assertEqual(answer[4:8], struct.pack(">i", request.correlation_id))
            self.assert_grows_less(before, 2 * MIB)

    def test_a_broker_that_stops_reading_holds_nothing_but_its_own_connection(self):
        others = [self.session() for _ in range(4)]
        client, upstream = self.session()
        frame = kafka_wire.request_frame("Produce", 9, 1, produce(batch(payload=b"x" * 2 * MIB), acks=0))
        before = self.proxy.rss()
        count = 32

        def send_all():
            for _ in range(count):
                client.send_bytes(frame)

        with in_background(send_all):
            for _ in range(50):
                for other in others:
                    self.assert_alive(*other)
            self.assert_grows_less(before, 2 * MIB)
            for _ in range(count):
                self.assertEqual(len(upstream.frame()), len(frame))

    def test_a_client_that_leaves_its_answers_unread_is_ended_with_its_broker_connection(self):
        fds = self.proxy.fds()
        client, upstream = self.session()
        client.send("ListOffsets", 1)
        request = upstream.request()
        upstream.sock.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            upstream.send_bytes(struct.pack(">ii", 1 << 30, request.correlation_id) + bytes(64 * MIB))
        client.reset()
        upstream.read_to_end()
        upstream.close()
        wait_for_fds(self.proxy, fds + 3)


class Many(LoadCase):
    def test_both_connections_of_a_session_are_kept_alive(self):
        client, upstream = self.session()
        ports = {self.proxy.address("eu")[1], upstream.sock.getpeername()[1]}
        with open(f"/proc/{self.proxy.process.pid}/net/tcp") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        # Of established connections (01): the timer, 02 is the one of keepalive.
        timers = {int(row[1].split(":")[1], 16): row[5][:2] for row in rows if row[3] == "01"}
        self.assertEqual([timers[port] for port in ports], ["02", "02"])
        self.assert_alive(client, upstream)

    def test_hundreds_of_sessions_come_and_go(self):
        self.session()
        fds = self.proxy.fds()
        sessions = [self.session() for _ in range(300)]
        self.assertGreaterEqual(self.proxy.fds(), fds + 2 * len(sessions))
        for session in sessions:
            self.assert_alive(*session)
        for client, upstream in sessions:
            client.close()
            upstream.close()
        wait_for_fds(self.proxy, fds + 3)


if __name__ == "__main__":
    unittest.main()
