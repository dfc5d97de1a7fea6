"""Ids that the destination hands out: marked for clients, unmarked where they use them, and what is told where the mark
is missing or there twice."""

import http.client
import json
import struct
import unittest

from tests.proxy.peers import (
    CLUSTER_ID,
    TIMEOUT,
    Client,
    ScriptedBroker,
    SessionCase,
    batch,
    log_size,
    produce,
    proxy_for,
    wait_for_log,
)
from tests.support import kafka_batch, kafka_wire, ports
from tests.support.mapping import mapped, region_of

REGION = region_of(CLUSTER_ID)
MARK = 1 << 62
OWN = 4711  # an id of the destination's own
INVALID_PRODUCER_EPOCH = 47
MIXED = "produces with an unmarked one"
CHAINED = "another mirrorpid is right behind this one"

# What follows the ids in requests that name the client's own: API, its versions, the rest of its body.
TOPICS = [{"name": "orders", "partitions": [0, 3]}]
COORDINATOR_REQUESTS = [
    ("InitProducerId", range(3, 7), {"transactional_id": "tx", "producer_epoch": 2}),
    ("AddPartitionsToTxn", range(0, 4), {"transactional_id": "tx", "producer_epoch": 2, "topics": TOPICS}),
    ("AddOffsetsToTxn", range(0, 5), {"transactional_id": "tx", "producer_epoch": 2, "group_id": "g"}),
    ("EndTxn", range(0, 6), {"transactional_id": "tx", "producer_epoch": 2, "committed": True}),
    ("TxnOffsetCommit", range(0, 7), {"transactional_id": "tx", "group_id": "g", "producer_epoch": 2}),
]


class IdCase(SessionCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(ScriptedBroker())
        cls.port = ports.free_ports()
        extra = {"admin": {"listen": f"127.0.0.1:{cls.port}"}}
        cls.proxy = cls.enterClassContext(proxy_for(cls.broker, extra=extra))
        wait_for_log(cls.proxy, "node", "id=0")

    def ask(self, client, upstream, api, version, body, answer=None):
        """(request as the broker got it, answer as the client got it)"""
        client.send(api, version, body)
        request = upstream.request()
        self.assertEqual((request.api, request.version), (api, version))
        upstream.answer(request, answer)
        return request.body, client.response(api, version)[1]

    def counters(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        self.addCleanup(connection.close)
        connection.request("GET", "/api/v1/status")
        return json.loads(connection.getresponse().read())["sources"][0]["counters"]

    def counted(self, before):
        """What has been counted since."""
        after = self.counters()
        return {name: after[name] - before[name] for name in after if isinstance(after[name], int)}


class Marks(IdCase):
    def test_an_id_that_is_handed_out_is_marked_in_every_version(self):
        client, upstream = self.session()
        before = self.counters()
        for version in range(7):
            with self.subTest(version=version):
                _, got = self.ask(client, upstream, "InitProducerId", version, {}, {"producer_id": OWN})
                self.assertEqual(got["producer_id"], MARK | OWN)
        answer = {"producer_id": 0, "ongoing_txn_producer_id": OWN}
        _, got = self.ask(client, upstream, "InitProducerId", 6, {}, answer)
        self.assertEqual((got["producer_id"], got["ongoing_txn_producer_id"]), (MARK, MARK | OWN))
        _, got = self.ask(client, upstream, "EndTxn", 5, {}, {"producer_id": OWN, "producer_epoch": 3})
        self.assertEqual((got["producer_id"], got["producer_epoch"]), (MARK | OWN, 3))
        self.assertEqual(self.counted(before)["ids_marked"], 10)

    def test_no_id_and_the_ids_of_errors_stay(self):
        client, upstream = self.session()
        before = self.counters()
        for api, version in (("InitProducerId", 4), ("EndTxn", 5)):
            for pid, code in ((-1, INVALID_PRODUCER_EPOCH), (0, INVALID_PRODUCER_EPOCH), (-1, 0), (-7, 0)):
                answer = {"producer_id": pid, "error_code": code}
                _, got = self.ask(client, upstream, api, version, {}, answer)
                self.assertEqual((got["producer_id"], got["error_code"]), (pid, code))
        self.assertEqual(self.counted(before)["ids_marked"], 0)

    def test_a_marked_id_is_unmarked_wherever_a_client_names_its_own_and_an_unmarked_one_is_left_alone(self):
        client, upstream = self.session()
        before = self.counters()
        count = 0
        for api, versions, rest in COORDINATOR_REQUESTS:
            for version in versions:
                for said, heard in ((MARK | OWN, OWN), (MARK, 0), (0, 0), (OWN, OWN), (-1, -1), (mapped(42, 5),) * 2):
                    with self.subTest(api=api, version=version, said=said):
                        sent = {**rest, "producer_id": said}
                        got, _ = self.ask(client, upstream, api, version, sent)
                        self.assertEqual(got["producer_id"], heard)
                        self.assertEqual(got["producer_epoch"], 2)
                        count += said != heard
        self.assertEqual(self.counted(before)["ids_unmarked"], count)

    def test_the_batched_form_of_add_partitions_to_txn_is_unmarked_too(self):
        client, upstream = self.session()
        said = [MARK | OWN, 0, MARK | 7, -1]
        transactions = [{"transactional_id": f"tx-{pid}", "producer_id": pid, "topics": TOPICS} for pid in said]
        for version in (4, 5):
            got, _ = self.ask(client, upstream, "AddPartitionsToTxn", version, {"transactions": transactions})
            self.assertEqual([entry["producer_id"] for entry in got["transactions"]], [OWN, 0, 7, -1])

    def test_a_batch_of_the_client_s_own_keeps_the_id_that_the_destination_handed_out(self):
        client, upstream = self.session()
        _, got = self.ask(client, upstream, "InitProducerId", 5, {}, {"producer_id": OWN})
        lines = log_size(self.proxy)
        request, _ = self.ask(client, upstream, "Produce", 9, produce(batch(got["producer_id"])))
        (stored,) = kafka_batch.split(request["topic_data"][0]["partition_data"][0]["records"])
        self.assertEqual((stored.producer_id, stored.crc), (OWN, stored.computed_crc()))
        self.assertNotIn(MIXED, "".join(self.proxy.log().splitlines()[lines:]))


class Operators(IdCase):
    def test_listed_and_described_ids_are_marked_and_mapped_ones_stay(self):
        client, upstream = self.session()
        pids = [0, OWN, mapped(42, 5), -1]
        shown = [MARK, MARK | OWN, mapped(42, 5), -1]
        states = [{"transactional_id": f"tx-{pid}", "producer_id": pid} for pid in pids]
        for version in range(3):
            _, got = self.ask(client, upstream, "ListTransactions", version, {}, {"transaction_states": states})
            self.assertEqual([state["producer_id"] for state in got["transaction_states"]], shown)
        _, got = self.ask(client, upstream, "DescribeTransactions", 0, {}, {"transaction_states": states})
        self.assertEqual([state["producer_id"] for state in got["transaction_states"]], shown)
        partition = {"active_producers": [{"producer_id": pid, "last_sequence": 9} for pid in pids]}
        answer = {"topics": [{"name": "orders", "partitions": [partition, partition]}]}
        _, got = self.ask(client, upstream, "DescribeProducers", 0, {}, answer)
        for partition in got["topics"][0]["partitions"]:
            self.assertEqual([state["producer_id"] for state in partition["active_producers"]], shown)
            self.assertEqual({state["last_sequence"] for state in partition["active_producers"]}, {9})

    def test_a_transaction_that_cannot_be_described_has_no_id(self):
        client, upstream = self.session()
        states = [{"error_code": 105, "producer_id": 0}, {"producer_id": 0}]
        _, got = self.ask(client, upstream, "DescribeTransactions", 0, {}, {"transaction_states": states})
        self.assertEqual([state["producer_id"] for state in got["transaction_states"]], [0, MARK])

    def test_the_filter_of_a_list_finds_what_was_shown(self):
        client, upstream = self.session()
        for version in range(3):
            body = {"state_filters": ["Ongoing"], "producer_id_filters": [MARK | OWN, 5, -1, mapped(42, 5)]}
            got, _ = self.ask(client, upstream, "ListTransactions", version, body)
            self.assertEqual(got["producer_id_filters"], [OWN, 5, -1, mapped(42, 5)])
            self.assertEqual(got["state_filters"], ["Ongoing"])


class Markers(IdCase):
    def markers(self, *pids):
        topics = [{"name": "orders", "partition_indexes": [0]}]
        return {"markers": [{"producer_id": pid, "topics": topics, "coordinator_epoch": 3} for pid in pids]}

    def test_the_destination_s_own_are_unmarked_a_source_s_mapped_and_each_is_answered_as_it_was_sent(self):
        client, upstream = self.session()
        before = self.counters()
        said = [MARK | OWN, 5, -7, (1 << 31) + 6]
        heard = [OWN, mapped(REGION, 5), -7, mapped(REGION, 6)]
        for version in range(3):
            for answered in (heard, heard[::-1]):  # brokers answer in any order
                answer = {"markers": [{"producer_id": pid, "topics": []} for pid in answered]}
                got, told = self.ask(client, upstream, "WriteTxnMarkers", version, self.markers(*said), answer)
                self.assertEqual([marker["producer_id"] for marker in got["markers"]], heard)
                self.assertEqual({marker["coordinator_epoch"] for marker in got["markers"]}, {3})
                expected = said if answered is heard else said[::-1]
                self.assertEqual([marker["producer_id"] for marker in told["markers"]], expected)
        self.assertEqual(self.counted(before)["markers_mapped"], 2 * 6)

    def test_several_in_flight_do_not_take_each_other_s_ids(self):
        client, upstream = self.session()
        pids = [5, (1 << 31) + 5, (1 << 32) + 5]  # mapped to one
        for pid in pids:
            client.send("WriteTxnMarkers", 1, self.markers(pid))
            client.send("ListOffsets", 1)
        requests = [upstream.request() for _ in range(2 * len(pids))]
        for request in requests:
            if request.api == "ListOffsets":
                upstream.answer(request)
                continue
            upstream.answer(request, {"markers": [{"producer_id": request.body["markers"][0]["producer_id"]}]})
        for pid in pids:
            (marker,) = client.response("WriteTxnMarkers", 1)[1]["markers"]
            self.assertEqual(marker["producer_id"], pid)
            client.response("ListOffsets", 1)


class WhatIsTold(IdCase):
    def test_an_unmarked_id_on_a_connection_that_was_handed_a_marked_one_is_a_warning_once(self):
        before = self.counters()
        for handing_out in (("InitProducerId", 0), ("EndTxn", 5)):
            client, upstream = self.session()
            self.ask(client, upstream, *handing_out, {}, {"producer_id": OWN})
            lines = log_size(self.proxy)
            for sequence in range(3):
                records = batch(OWN, base_sequence=sequence)
                request, _ = self.ask(client, upstream, "Produce", 9, produce(records))
                (stored,) = kafka_batch.split(request["topic_data"][0]["partition_data"][0]["records"])
                self.assertEqual(stored.producer_id, mapped(REGION, OWN))
                self.ask(client, upstream, *handing_out, {}, {"producer_id": OWN})
            wait_for_log(self.proxy, "warn", MIXED, f"producer_id={OWN}", "source=eu", "topic=orders", after=lines)
            self.assertEqual(sum(MIXED in line for line in self.proxy.log().splitlines()[lines:]), 1)
        self.assertEqual(self.counted(before)["connections_of_both_ids"], 2)

    def test_what_was_only_shown_or_refused_is_not_held(self):
        before = self.counters()
        client, upstream = self.session()
        self.ask(client, upstream, "ListTransactions", 0, {}, {"transaction_states": [{"producer_id": OWN}]})
        self.ask(client, upstream, "InitProducerId", 0, {}, {"producer_id": -1, "error_code": 51})
        for pid in (OWN, -1, -7):
            epoch = {"producer_epoch": -1, "base_sequence": -1} if pid == -1 else {}
            self.ask(client, upstream, "Produce", 9, produce(batch(pid, **epoch)))
        self.ask(client, upstream, "InitProducerId", 0, {}, {"producer_id": OWN})
        for pid in (MARK | OWN, -7):
            self.ask(client, upstream, "Produce", 9, produce(batch(pid)))
        self.assertEqual(self.counted(before)["connections_of_both_ids"], 0)

    def test_an_id_that_comes_marked_is_passed_and_an_error_once_that_names_the_way_out(self):
        before = self.counters()
        for _ in range(3):
            client, upstream = self.session()
            _, got = self.ask(client, upstream, "InitProducerId", 4, {}, {"producer_id": MARK | OWN})
            self.assertEqual(got["producer_id"], MARK | OWN)
        wait_for_log(self.proxy, "error", CHAINED, "need a cluster between", f"producer_id={MARK | OWN}", "source=eu")
        self.assertEqual(self.proxy.log().count(CHAINED), 1)
        counted = self.counted(before)
        self.assertEqual((counted["ids_marked_upstream"], counted["ids_marked"]), (3, 0))

    def test_two_mirrorpids_in_a_row_are_told_by_the_first(self):
        behind = "%s:%d" % self.proxy.address("eu")
        front = self.enterContext(proxy_for(self.broker, extra={"destination": {"bootstrap_servers": [behind]}}))
        client = Client(front.address("eu"))
        self.addCleanup(client.close)
        client.send("InitProducerId", 4)
        upstream, request = self.upstream_of(client)
        upstream.answer(request, {"producer_id": OWN})
        self.assertEqual(client.response("InitProducerId", 4)[1]["producer_id"], MARK | OWN)
        wait_for_log(front, "error", CHAINED)


class Broken(IdCase):
    def assert_closed_with(self, frame, *texts):
        """The broker gets less than the frame, and the requests before it are still answered."""
        client, upstream = self.session()
        lines = log_size(self.proxy)
        client.send("ListOffsets", 1)
        client.send_bytes(frame)
        upstream.answer(upstream.request())
        self.assertEqual(client.response("ListOffsets", 1)[0], 2)
        self.assertEqual(client.read_to_end(), b"")
        self.assertLess(len(upstream.read_to_end()), len(frame))
        wait_for_log(self.proxy, "warn", "source=eu", *texts, after=lines)

    def test_versions_that_the_proxy_does_not_know_are_closed_with_a_reason(self):
        for api in ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers",
                    "TxnOffsetCommit", "DescribeProducers", "DescribeTransactions", "ListTransactions"):
            with self.subTest(api):
                key, newest = kafka_wire.APIS[api].key, kafka_wire.APIS[api].newest
                header = kafka_wire.request_header(key, newest + 1, 77, "tests", flexible=True)
                self.assert_closed_with(
                    kafka_wire.frame(header + bytes(40)), f"{api} version {newest + 1} is not in 0..{newest}"
                )

    def test_frames_that_end_before_their_fields_do_never_reach_the_broker_whole(self):
        cut = 5
        for api, versions, rest in COORDINATOR_REQUESTS:
            for version in (versions[0], versions[-1]):
                with self.subTest(api=api, version=version):
                    whole = kafka_wire.request_frame(api, version, 77, {**rest, "producer_id": MARK | OWN})
                    frame = struct.pack(">i", len(whole) - 4 - cut) + whole[4:-cut]
                    self.assert_closed_with(frame, "a request cannot be read", f"api={api}", f"version={version}")


if __name__ == "__main__":
    unittest.main()
