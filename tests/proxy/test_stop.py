"""How sessions and the program end: FIN, SIGTERM, and what must not be lost on the way."""

import fcntl
import signal
import struct
import termios
import time
import unittest

from tests.proxy.peers import (
    CLUSTER_ID,
    TIMEOUT,
    Client,
    ScriptedBroker,
    SessionCase,
    batch,
    produce,
    proxy_for,
    records_of,
    wait_for_log,
)
from tests.support import kafka_batch, kafka_wire
from tests.support.mapping import mapped, region_of
from tests.support.process import wait_until

MAPPED = mapped(region_of(CLUSTER_ID), 5)
MIB = 1 << 20
UNACKNOWLEDGED = kafka_wire.request_frame("Produce", 9, 1, produce(batch(), acks=0))


class StopCase(SessionCase):
    """A broker and a proxy for each test."""

    limits = {"drain_timeout": "2m"}  # longer than any test waits

    def setUp(self):
        self.broker = self.enterContext(ScriptedBroker())
        self.proxy = self.enterContext(proxy_for(self.broker, limits=self.limits))
        wait_for_log(self.proxy, "node", "id=0")
        self.clients = []

    def client(self, node=None, source="eu"):
        client = super().client(node, source)
        self.clients.append(client)
        return client

    def begin_stop(self):
        self.proxy.process.send_signal(signal.SIGTERM)
        wait_for_log(self.proxy, "stopping")

    def assert_stops(self):
        for client in self.clients:
            client.close()
        self.assertIn(" stopped", self.proxy.wait_for_end(TIMEOUT))

    def assert_mapped_frames(self, data, count):
        self.assertEqual(len(data), count * len(UNACKNOWLEDGED))
        for begin in range(0, len(data), len(UNACKNOWLEDGED)):
            request = kafka_wire.parse_request(data[begin + 4 : begin + len(UNACKNOWLEDGED)])
            (got,) = kafka_batch.split(records_of(request))
            self.assertEqual(got.producer_id, MAPPED)


class ClientEnds(StopCase):
    def test_every_byte_before_a_fin_arrives_though_the_broker_reads_slowly(self):
        client, upstream = self.session()
        frame = kafka_wire.request_frame("Produce", 9, 1, produce(batch(payload=b"x" * 20_000), acks=0))
        data = frame * 1000
        sent = 0
        received = bytearray()
        client.sock.settimeout(0.2)
        while sent < len(data):
            try:
                sent += client.sock.send(data[sent : sent + MIB])
            except TimeoutError:
                received += upstream.read(MIB)  # everything on the way is full
        client.end()
        received += upstream.read_to_end()
        self.assertEqual(len(received), len(data))
        last = kafka_wire.parse_request(bytes(received[-len(frame) + 4 :]))
        self.assertEqual(kafka_batch.split(records_of(last))[0].producer_id, MAPPED)

    def test_a_thousand_unacknowledged_requests_and_a_fin_at_once(self):
        client = self.client()
        client.send_bytes(UNACKNOWLEDGED * 1000)
        client.end()
        self.assert_mapped_frames(self.broker.accept().read_to_end(), 1000)
        self.assertEqual(client.read_to_end(), b"")

    def test_a_client_that_has_ended_its_side_still_gets_its_answers(self):
        client, upstream = self.session()
        for _ in range(3):
            client.send("ListOffsets", 1)
        client.end()
        requests = [upstream.request() for _ in range(3)]
        self.assertEqual(upstream.recv(1), b"")  # the end has come through
        for request in requests:
            upstream.answer(request)
        self.assertEqual([client.response("ListOffsets", 1)[0] for _ in range(3)], [2, 3, 4])
        self.assertEqual(client.read_to_end(), b"")

    def test_an_end_inside_a_frame_ends_the_session(self):
        client, upstream = self.session()
        client.send_bytes(UNACKNOWLEDGED[:80])
        upstream.read(40)
        client.end()
        self.assertLess(len(upstream.read_to_end()), 80)
        self.assertEqual(client.read_to_end(), b"")

    def test_an_end_inside_a_request_that_the_proxy_has_answered_already(self):
        client, upstream = self.session()
        client.send_bytes(kafka_wire.frame(struct.pack(">hhi", 18, 99, 5) + b"more")[:-2])
        client.frame()
        client.end()
        self.assertEqual(upstream.read_to_end(), b"")
        self.assertEqual(client.read_to_end(), b"")

    def test_a_reset_client_ends_its_broker_connection(self):
        client, upstream = self.session()
        client.send("ListOffsets", 1)
        upstream.request()
        client.reset()
        self.assertEqual(upstream.read_to_end(), b"")


class BrokerEnds(StopCase):
    def test_an_idle_connection_that_the_broker_closes_is_closed_at_once(self):
        client, upstream = self.session()
        begin = time.monotonic()
        upstream.close()
        self.assertEqual(client.read_to_end(), b"")
        self.assertLess(time.monotonic() - begin, TIMEOUT / 3)

    def test_answers_that_were_sent_before_the_end_arrive(self):
        client, upstream = self.session()
        for _ in range(3):
            client.send("ListOffsets", 1)
        requests = [upstream.request() for _ in range(3)]
        for request in requests[:2]:
            upstream.answer(request)
        upstream.close()
        self.assertEqual([client.response("ListOffsets", 1)[0] for _ in range(2)], [2, 3])
        self.assertEqual(client.read_to_end(), b"")

    def test_an_end_inside_a_response_ends_the_client_s_side(self):
        client, upstream = self.session()
        client.send("ListOffsets", 1)
        request = upstream.request()
        upstream.send_bytes(struct.pack(">ii", 1000, request.correlation_id) + bytes(100))
        upstream.close()
        self.assertEqual(len(client.read_to_end()), 108)

    def test_an_answer_before_the_request_has_come_in_whole_is_no_trouble(self):
        client, upstream = self.session()
        frame = kafka_wire.request_frame("Produce", 9, 9, produce(batch()))
        client.send_bytes(frame[:-1])
        upstream.read(100)
        response = kafka_wire.response_frame("Produce", 9, 9, {})
        upstream.send_bytes(response[:-1])
        received = client.read(len(response) - 1)
        client.end()
        upstream.read_to_end()
        upstream.send_bytes(response[-1:])
        upstream.close()
        self.assertEqual((received + client.read_to_end())[: len(response)], response)
        self.session()  # the proxy goes on


class Terminated(StopCase):
    def test_requests_in_flight_are_answered(self):
        client, upstream = self.session()
        for _ in range(3):
            client.send("ListOffsets", 1)
        requests = [upstream.request() for _ in range(3)]
        self.begin_stop()
        for request in requests:
            upstream.answer(request)
        self.assertEqual([client.response("ListOffsets", 1)[0] for _ in range(3)], [2, 3, 4])
        self.assertEqual(client.read_to_end(), b"")
        self.assert_stops()

    def test_unacknowledged_requests_just_sent_are_forwarded(self):
        client, upstream = self.session()
        client.send_bytes(UNACKNOWLEDGED * 300)
        self.begin_stop()
        self.assert_mapped_frames(upstream.read_to_end(), 300)
        self.assert_stops()

    def test_all_that_lies_in_the_proxy_s_socket_is_forwarded_though_the_broker_reads_late(self):
        client, upstream = self.session()
        sent = 0
        client.sock.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            while True:
                sent += client.sock.send(UNACKNOWLEDGED * 1000)
        still_here = struct.unpack("i", fcntl.ioctl(client.sock, termios.TIOCOUTQ, bytes(4)))[0]
        self.begin_stop()
        received = upstream.read_to_end()
        self.assertGreaterEqual(len(received), sent - still_here)
        self.assertEqual(len(received) % len(UNACKNOWLEDGED), 0)
        self.assertGreater(sent - still_here, MIB)
        client.reset()
        self.assert_stops()

    def test_unacknowledged_requests_on_connections_not_accepted_yet_are_forwarded(self):
        # The proxy stands still while the connections come about and the bytes lie in its queues.
        self.proxy.process.send_signal(signal.SIGSTOP)
        clients = [self.client() for _ in range(4)] + [self.client(node=0)]
        for client in clients:
            client.send_bytes(UNACKNOWLEDGED * 300)
        self.proxy.process.send_signal(signal.SIGTERM)
        self.proxy.process.send_signal(signal.SIGCONT)
        for _ in clients:
            self.assert_mapped_frames(self.broker.accept().read_to_end(), 300)
        for client in clients:
            self.assertEqual(client.read_to_end(), b"")
        self.assert_stops()

    def test_requests_that_wait_behind_the_in_flight_limit_are_served(self):
        client, upstream = self.session()
        count = 300
        for _ in range(count):
            client.send("ListOffsets", 1)
        requests = [upstream.request() for _ in range(256)]
        self.begin_stop()
        for _ in range(count - 256):
            upstream.answer(requests.pop(0))
            requests.append(upstream.request())
        for request in requests:
            upstream.answer(request)
        self.assertEqual([client.response("ListOffsets", 1)[0] for _ in range(count)], list(range(2, count + 2)))
        self.assert_stops()

    def test_a_client_inside_a_frame_may_finish_it_and_gets_its_answer(self):
        client, upstream = self.session()
        frame = kafka_wire.request_frame("Produce", 9, 2, produce(batch()))
        client.send_bytes(frame[:70])
        upstream.read(20)
        self.begin_stop()
        client.send_bytes(frame[70:])
        upstream.read(len(frame) - 20)
        response = kafka_wire.response_frame("Produce", 9, 2, {})
        upstream.send_bytes(response)
        self.assertEqual(client.read_to_end(), response)
        self.assert_stops()

    def test_new_connections_are_refused(self):
        client, upstream = self.session()
        client.send("ListOffsets", 1)
        request = upstream.request()
        self.begin_stop()

        def is_refused():
            try:
                Client(self.proxy.address("eu")).close()
            except ConnectionRefusedError:
                return True
            return False

        wait_until(is_refused, TIMEOUT, "connections to be refused")
        upstream.answer(request)
        client.response("ListOffsets", 1)
        self.assert_stops()

    def test_idle_and_silent_clients_do_not_hold_it_up(self):
        idle, _ = self.session()
        silent = self.client()
        begun = self.client()
        begun.send_bytes(b"\0\0")
        self.begin_stop()
        for client in (idle, silent, begun):
            self.assertEqual(client.read_to_end(), b"")
        self.assert_stops()

    def test_what_was_counted_is_told_for_each_source(self):
        client, upstream = self.session()
        records = batch(5) + batch(1 << 62 | 5) + batch(-7) + batch(1 << 31) + batch(5, base_sequence=-1)
        client.send("Produce", 9, produce(records, acks=0))
        upstream.frame()
        client.close()
        upstream.close()
        log = self.proxy.stop()
        (line,) = [line for line in log.splitlines() if " totals " in line]
        counted = dict(field.split("=") for field in line.split(" totals ")[1].split())
        expected = {"batches_mapped": "2", "batches_unmarked": "1", "batches_passed": "1", "batches_refused": "1"}
        expected |= {"source": "eu", "requests": "2", "responses": "1", "possible_aliases": "1"}
        self.assertEqual(counted, {**counted, **expected})

    def test_a_second_proxy_can_take_the_ports_at_once(self):
        self.session()
        self.proxy.stop()
        self.proxy.start()
        self.session()


class TerminatedTwice(StopCase):
    def test_a_second_signal_ends_it_at_once(self):
        client, upstream = self.session()
        client.send("ListOffsets", 1)
        upstream.request()
        self.begin_stop()
        self.proxy.process.send_signal(signal.SIGTERM)
        self.assertIn("second signal", self.proxy.wait_for_end(TIMEOUT, exit_code=1))


class TerminatedTooSlowly(StopCase):
    limits = {"drain_timeout": "500ms"}

    def assert_is_cut_off(self):
        log = self.proxy.wait_for_end(TIMEOUT, exit_code=1)
        self.assertIn("drain_timeout", log)

    def test_the_drain_timeout_bounds_a_broker_that_never_answers(self):
        client, upstream = self.session()
        client.send("ListOffsets", 1)
        upstream.request()
        self.begin_stop()
        self.assertEqual(client.read_to_end(), b"")
        self.assert_is_cut_off()

    def test_the_drain_timeout_bounds_a_broker_that_never_reads(self):
        client, _ = self.session()
        client.sock.settimeout(0.2)
        frame = kafka_wire.request_frame("Produce", 9, 1, produce(batch(payload=b"x" * 200_000), acks=0))
        try:
            while True:
                client.send_bytes(frame)
        except TimeoutError:
            client.end()
        self.begin_stop()
        client.sock.settimeout(TIMEOUT)
        self.assertEqual(client.read_to_end(), b"")
        self.assert_is_cut_off()


if __name__ == "__main__":
    unittest.main()
