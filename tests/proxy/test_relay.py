"""What goes through a session: bytes, order, answers."""

import struct
import unittest

from tests.proxy.peers import (
    CLUSTER_ID,
    ScriptedBroker,
    SessionCase,
    batch,
    has_sanitizer,
    log_size,
    produce,
    proxy_for,
    records_of,
    wait_for_log,
)
from tests.support import kafka_batch, kafka_wire
from tests.support.mapping import mapped, region_of
from tests.support.process import wait_until
from tests.support.vectors import frame_of

REGION = region_of(CLUSTER_ID)
MIB = 1 << 20


class RelayCase(SessionCase):
    """A proxy in front of one scripted broker, shared by the tests of a class."""

    limits = {}

    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(ScriptedBroker())
        cls.proxy = cls.enterClassContext(proxy_for(cls.broker, limits=cls.limits))
        wait_for_log(cls.proxy, "node", "id=0")

    def assert_mapped(self, records, sent):
        """`records` are those `sent`, but for producer ids and checksums."""
        self.assertEqual(len(records), len(sent))
        for one, other in zip(kafka_batch.split(records), kafka_batch.split(sent), strict=True):
            self.assertEqual(one.producer_id, mapped(REGION, other.producer_id))
            self.assertEqual(one.crc, one.computed_crc())
            self.assertEqual(one.data[:17], other.data[:17])
            self.assertEqual(one.data[21:43], other.data[21:43])
            self.assertEqual(one.data[51:], other.data[51:])


class Versions(RelayCase):
    def test_an_api_versions_request_newer_than_ours_is_answered_by_the_proxy_in_version_0(self):
        client = self.client()
        request = frame_of("F1")
        client.send_bytes(request)
        self.assertEqual(client.frame(), frame_of("S1"))
        client.send("ApiVersions", 0)
        upstream, request = self.upstream_of(client)  # the first one was not forwarded
        upstream.answer(request, {"api_keys": []})
        self.assertEqual(client.response("ApiVersions", 0), (1, {"error_code": 0, "api_keys": []}))

    def test_an_api_versions_request_newer_than_ours_may_carry_anything_and_arrive_slowly(self):
        client, _ = self.session()
        body = bytes(range(256)) * 40
        request = kafka_wire.frame(struct.pack(">hhi", 18, 9999, 77) + body)
        for begin in range(0, len(request), 1000):
            client.send_bytes(request[begin : begin + 1000])
        self.assertEqual(client.frame()[4:10], struct.pack(">ih", 77, 35))

    def test_read_apis_are_clamped_to_what_the_tables_describe_and_others_stay(self):
        client, upstream = self.session()
        client.send("ApiVersions", 4)
        rows = [(0, 0, 99), (1, 4, 99), (2, 1, 99), (3, 0, 99), (18, 0, 99), (300, 0, 9), (10005, 5, 21)]
        keys = [dict(zip(("api_key", "min_version", "max_version"), row)) for row in rows]
        features = [{"name": "transaction.version", "max_version_level": 2, "min_version_level": 2}]
        body = {"api_keys": keys, "finalized_features": features, "_tags": {9: b"new"}}
        upstream.answer(upstream.request(), body)
        answer = client.response("ApiVersions", 4)[1]
        versions = {key["api_key"]: (key["min_version"], key["max_version"]) for key in answer["api_keys"]}
        expected = {0: (0, 13), 1: (4, 18), 2: (1, 99), 3: (0, 13), 18: (0, 5), 300: (0, 9), 10005: (5, 21)}
        self.assertEqual(versions, expected)
        self.assertEqual(answer["finalized_features"], features)
        self.assertEqual(answer["_tags"], {9: b"new"})

    def test_an_api_whose_versions_are_all_newer_than_ours_is_left_out(self):
        client, upstream = self.session()
        client.send("ApiVersions", 0)
        keys = [{"api_key": 3, "min_version": 14, "max_version": 20}, {"api_key": 18, "max_version": 4}]
        upstream.answer(upstream.request(), {"api_keys": keys})
        answer = client.response("ApiVersions", 0)[1]
        self.assertEqual([key["api_key"] for key in answer["api_keys"]], [18])

    def test_requests_and_responses_of_unknown_apis_pass_byte_for_byte(self):
        client, upstream = self.session()
        request = frame_of("F8")
        client.send_bytes(request)
        self.assertEqual(upstream.frame(), request)
        response = kafka_wire.frame(request[8:12] + b"whatever it is\xff\x00")
        upstream.send_bytes(response)
        self.assertEqual(client.frame(), response)

    def test_a_129_passes_and_makes_the_proxy_look_again(self):
        client, upstream = self.session()
        looks = self.broker.looks
        client.send("ApiVersions", 4)
        upstream.answer(upstream.request(), {"error_code": 129})
        self.assertEqual(client.response("ApiVersions", 4)[1]["error_code"], 129)
        wait_until(lambda: self.broker.looks > looks, 4, "a look before the next regular one")


class Order(RelayCase):
    def test_an_answer_of_the_proxy_waits_for_the_slow_answer_before_it(self):
        client, upstream = self.session()
        client.send("Metadata", 12)
        client.send_bytes(frame_of("F1"))
        client.send("Metadata", 12)
        first, second = upstream.request(), upstream.request()
        self.assertTrue(client.is_silent(0.2))
        upstream.answer(first)
        self.assertEqual(client.response("Metadata", 12)[0], 2)
        self.assertEqual(client.frame(), frame_of("S1"))
        self.assertTrue(client.is_silent(0.1))
        upstream.answer(second)
        self.assertEqual(client.response("Metadata", 12)[0], 3)

    def test_an_answer_of_the_proxy_never_cuts_into_a_response_on_its_way(self):
        client, upstream = self.session()
        client.send("ListOffsets", 1)
        request = upstream.request()
        response = kafka_wire.frame(struct.pack(">i", request.correlation_id) + bytes(3000))
        upstream.send_bytes(response[:1000])
        received = client.read(1000)
        client.send_bytes(frame_of("F1"))
        client.send("Metadata", 12)
        second = upstream.request()  # so the one before has been seen
        upstream.send_bytes(response[1000:])
        self.assertEqual(received + client.read(len(response) - 1000), response)
        self.assertEqual(client.frame(), frame_of("S1"))
        upstream.answer(second)
        self.assertEqual(client.response("Metadata", 12)[0], 3)


class Unacknowledged(RelayCase):
    """Produce with acks 0 gets no response."""

    def test_ten_thousand_of_each_form_leave_nothing_behind(self):
        count = 10_000
        for name in ("F3", "F4", "F6"):
            with self.subTest(name):
                client, upstream = self.session()
                frame = frame_of(name)
                # The proxy's own memory, once its buffers have their size.
                client.send_bytes(frame * 1000)
                self.drop(upstream, 1000 * len(frame))
                before = self.proxy.rss()
                for _ in range(count // 100):
                    client.send_bytes(frame * 100)
                    self.drop(upstream, 100 * len(frame))
                client.send("ApiVersions", 0)
                upstream.answer(upstream.request(), {"api_keys": []})
                self.assertEqual(client.response("ApiVersions", 0)[0], 2)
                if not has_sanitizer():
                    self.assertLess(self.proxy.peak() - before, MIB)

    @staticmethod
    def drop(upstream, count):
        upstream.read(count)

    def test_they_may_stand_between_requests_that_are_answered(self):
        client, upstream = self.session()
        for _ in range(300):  # more than may be in flight
            client.send_bytes(frame_of("F3"))
        client.send("Produce", 9, produce(batch(), acks=1))
        client.send_bytes(frame_of("F4"))
        client.send("Metadata", 12)
        for _ in range(300):
            self.assertEqual(upstream.request().body["acks"], 0)
        upstream.answer(upstream.request())
        self.assertEqual(upstream.request().body["acks"], 0)
        upstream.answer(upstream.request())
        self.assertEqual(client.response("Produce", 9)[0], 2)
        self.assertEqual(client.response("Metadata", 12)[0], 3)


class InFlight(RelayCase):
    def test_at_the_limit_the_proxy_stops_reading_and_goes_on_with_the_answers(self):
        client, upstream = self.session()
        count, limit = 1000, 256
        for _ in range(count):
            client.send("ListOffsets", 1)
        requests = [upstream.request() for _ in range(limit)]
        self.assertTrue(upstream.is_silent(0.3))
        upstream.answer(requests.pop(0))
        requests.append(upstream.request())
        self.assertTrue(upstream.is_silent(0.1))
        for _ in range(count - limit - 1):
            upstream.answer(requests.pop(0))
            requests.append(upstream.request())
        for request in requests:
            upstream.answer(request)
        self.assertEqual([client.response("ListOffsets", 1)[0] for _ in range(count)], list(range(2, count + 2)))

    def test_a_client_that_leaves_at_the_limit_ends_the_session(self):
        client, upstream = self.session()
        for _ in range(400):
            client.send("ListOffsets", 1)
        for _ in range(256):
            upstream.request()
        client.reset()
        upstream.close()


class Splitting(RelayCase):
    def exchange(self, pieces, count):
        """Sends pieces; returns what arrived of `count` frames."""
        client, upstream = self.session()
        for piece in pieces:
            client.send_bytes(piece)
        return [upstream.frame() for _ in range(count)]

    def assert_same(self, frames, sent):
        for frame, original in zip(frames, sent, strict=True):
            if original[4:6] != b"\0\0":
                self.assertEqual(frame, original)
                continue
            self.assertEqual(len(frame), len(original))
            request = kafka_wire.parse_request(frame[4:])
            self.assert_mapped(records_of(request), records_of(kafka_wire.parse_request(original[4:])))

    def test_one_byte_in_each_write(self):
        several = batch(5) + batch(6, codec="gzip") + batch(7, payload=b"x" * 500)
        frames = [
            kafka_wire.request_frame("Produce", 9, 10, produce(several)),
            kafka_wire.request_frame("Metadata", 12, 11, {"topics": [{"name": "orders"}]}),
            kafka_wire.request_frame("Produce", 3, 12, produce(batch(8))),
            frame_of("F8"),
        ]
        data = b"".join(frames)
        self.assert_same(self.exchange((data[i : i + 1] for i in range(len(data))), len(frames)), frames)

    def test_fifty_frames_in_one_write(self):
        frames = [
            kafka_wire.request_frame("Produce", 3 + i % 10, i, produce(batch(i, payload=b"x" * 37 * i)))
            for i in range(50)
        ]
        self.assert_same(self.exchange([b"".join(frames)], len(frames)), frames)

    def test_a_split_at_each_offset_of_a_frame_with_two_batches(self):
        client, upstream = self.session()
        records = batch(5) + batch(6)
        for version in (3, 9):
            frame = kafka_wire.request_frame("Produce", version, 7, produce(records, acks=0))
            for offset in range(1, len(frame)):
                # What was sent before the split has arrived when what came of it has left.
                client.send_bytes(frame[:offset])
                client.send_bytes(frame[offset:])
                self.assert_same([upstream.frame()], [frame])

    def test_responses_in_single_bytes(self):
        client, upstream = self.session()
        client.send("Metadata", 12)
        client.send("ListOffsets", 1)
        requests = [upstream.request(), upstream.request()]
        brokers = [{"node_id": 0, "host": "upstream.internal", "port": 9092}]
        data = kafka_wire.response_frame("Metadata", 12, requests[0].correlation_id, {"brokers": brokers})
        data += kafka_wire.response_frame("ListOffsets", 1, requests[1].correlation_id, {})
        for i in range(len(data)):
            upstream.send_bytes(data[i : i + 1])
        body = client.response("Metadata", 12)[1]
        self.assertEqual(body["brokers"][0]["port"], self.proxy.node_address("eu", 0)[1])
        self.assertEqual(client.response("ListOffsets", 1)[0], 3)


class Producers(RelayCase):
    """What becomes of producer ids, and what is told about it."""

    def send(self, client, upstream, records, version=9):
        client.send("Produce", version, produce(records, acks=0))
        return records_of(upstream.request())

    def test_negative_ids_pass_and_ids_of_the_source_are_mapped(self):
        client, upstream = self.session()
        for pid in (0, 5, (1 << 31) - 1, -7, -(1 << 63), mapped(42, 5)):
            with self.subTest(pid):
                sent = batch(pid)
                self.assert_mapped(self.send(client, upstream, sent), sent)

    def test_marked_ids_become_the_destination_s_own(self):
        client, upstream = self.session()
        (got,) = kafka_batch.split(self.send(client, upstream, batch(1 << 62 | 4711)))
        self.assertEqual((got.producer_id, got.crc), (4711, got.computed_crc()))

    def test_an_id_past_31_bits_is_mapped_by_its_low_bits_and_logged_once(self):
        pid = (1 << 31) + 5
        for _ in range(2):
            client, upstream = self.session()
            for _ in range(3):
                (got,) = kafka_batch.split(self.send(client, upstream, batch(pid)))
                self.assertEqual(got.producer_id, mapped(REGION, 5))
            client.close()
        wait_for_log(self.proxy, "past 31 bits", f"producer_id={pid}", "source=eu")
        # Each thread logs it once; the two sessions are on two threads at most.
        lines = [line for line in self.proxy.log().splitlines() if f"producer_id={pid}" in line]
        self.assertLessEqual(len(lines), 2)

    def test_batches_that_must_not_reach_a_log_are_made_refusable_and_told_about(self):
        client, upstream = self.session()
        before = log_size(self.proxy)
        cases = [
            (batch(5, producer_epoch=-1), mapped(REGION, 5), "negative epoch"),
            (batch(-7, base_sequence=-1), -7, "negative sequence"),
            (batch(5, attributes=kafka_batch.CONTROL), mapped(REGION, 5), "control batch"),
            (batch(-1, attributes=kafka_batch.TRANSACTIONAL), -1, "transactional without a producer id"),
        ]
        for sent, pid, reason in cases:
            with self.subTest(reason):
                (got,) = kafka_batch.split(self.send(client, upstream, sent))
                self.assertEqual((got.base_offset, got.producer_id), (1, pid))
                self.assertEqual(got.crc, got.computed_crc())
                self.assertEqual(got.data[51:], sent[51:])
                wait_for_log(self.proxy, reason, "topic=orders", "partition=0", after=before)

    def test_a_null_records_field_becomes_an_empty_one(self):
        client, upstream = self.session()
        for version in (3, 9):
            frame = client.send("Produce", version, produce(None, acks=0))
            got = upstream.frame()
            self.assertEqual(len(got), len(frame))
            self.assertEqual(records_of(kafka_wire.parse_request(got[4:])), b"")

    def test_a_flipped_payload_bit_is_still_found(self):
        client, upstream = self.session()
        sent = bytearray(batch(5))
        sent[-2] ^= 1
        (got,) = kafka_batch.split(self.send(client, upstream, bytes(sent)))
        self.assertEqual(got.producer_id, mapped(REGION, 5))
        self.assertNotEqual(got.crc, got.computed_crc())


if __name__ == "__main__":
    unittest.main()
