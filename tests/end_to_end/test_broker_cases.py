"""Cases where a real broker has the last word: what it answers through mirrorpid, and what it does with it afterwards.

One destination of two nodes per version; most tests are raw requests through mirrorpid, often beside the same request
sent directly, so that it is seen that the case is one.
"""

import unittest

from tests.end_to_end import kafka, programs
from tests.end_to_end.versions import VERSIONS, on_each_version
from tests.support import kafka_batch, kafka_wire
from tests.support.mapping import mapped, region_of
from tests.support.mirrorpid import Mirrorpid, Source
from tests.support.process import wait_until

CORRUPT_MESSAGE = 2
NOT_LEADER = 6
INVALID_RECORD = 87
SOURCE_ID = "MkU3OEVBNTcwNTJENDM2Qg"
MARK = 1 << 62  # an id of the destination's own, as mirrorpid shows it to clients
START = 1_700_000_000_000  # ms
MINUTE = 60_000

# Cleans as soon as there is something to clean; what makes it so is in the topic's configuration below.
EAGER_CLEANER = {"log.cleaner.backoff.ms": 100}
COMPACTED = {"cleanup.policy": "compact", "segment.ms": MINUTE // 2, "min.cleanable.dirty.ratio": 0.001}

DESTINATIONS = {version: kafka.Cluster(version, nodes=2, extra=EAGER_CLEANER) for version in VERSIONS}

NEWEST = {  # version of an API that a broker speaks
    "4.4.0": {"ApiVersions": 5, "Metadata": 13, "DescribeCluster": 2, "FindCoordinator": 6, "Produce": 13, "Fetch": 18},
    "4.0.2": {"ApiVersions": 4, "Metadata": 13, "DescribeCluster": 2, "FindCoordinator": 6, "Produce": 12, "Fetch": 17},
    "3.9.2": {"ApiVersions": 4, "Metadata": 12, "DescribeCluster": 1, "FindCoordinator": 6, "Produce": 11, "Fetch": 17},
    "3.7.2": {"ApiVersions": 3, "Metadata": 12, "DescribeCluster": 1, "FindCoordinator": 4, "Produce": 10, "Fetch": 16},
}


def setUpModule():
    programs.check_built()
    kafka.start_all(DESTINATIONS.values())
    for cluster in DESTINATIONS.values():
        unittest.addModuleCleanup(cluster.close)


def produce(connection, version, topic, records, transactional_id=None):
    """`records`: {partition: bytes or None}; `topic` by name, from version 13 on by id. {partition: its answer}"""
    partitions = [{"index": index, "records": data} for index, data in records.items()]
    entry = {"topic_id" if version >= 13 else "name": topic, "partition_data": partitions}
    answer = connection.call("Produce", version, {"transactional_id": transactional_id, "topic_data": [entry]})
    return {row["index"]: row for row in answer["responses"][0]["partition_responses"]}, answer


def batch(*keys, producer_id=5, epoch=0, sequence=0, attributes=0, timestamp=START, codec="none"):
    return kafka_batch.build(
        [(key.encode(), b"value of " + key.encode()) for key in keys],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=attributes,
        timestamp=timestamp,
        codec=codec,
    )


class BrokerCases:
    version = None

    @classmethod
    def setUpClass(cls):
        cls.newest = NEWEST[cls.version]
        cls.destination = DESTINATIONS[cls.version]
        cls.proxy = cls.enterClassContext(Mirrorpid([Source("eu", SOURCE_ID)], bootstrap=cls.destination.bootstrap))

    def through_proxy(self, node=None):
        """A connection to mirrorpid: to the source's own listener, or to the one of a node."""
        address = self.proxy.address("eu") if node is None else self.proxy.node_address("eu", node)
        connection = kafka_wire.Connection(*address)
        self.addCleanup(connection.close)
        return connection

    def directly(self, node=1):
        connection = self.destination.connect(node)
        self.addCleanup(connection.close)
        return connection

    def topic_key(self, name, version, first_with_id):
        return self.destination.metadata(name)["topic_id"] if version >= first_with_id else name

    def assert_proxy_endpoints(self, entries, id_field):
        """Every address is the one of mirrorpid's listener for that node."""
        for entry in entries:
            self.assertEqual((entry["host"], entry["port"]), self.proxy.node_address("eu", entry[id_field]))

    # --- Versions ---

    def test_the_versions_and_features_of_the_broker_arrive_as_they_are_and_produce_starts_at_0(self):
        for version in range(self.newest["ApiVersions"] + 1):
            with self.subTest(version=version):
                before = self.directly(1).call("ApiVersions", version)
                proxied = self.through_proxy(1).call("ApiVersions", version)
                after = self.directly(1).call("ApiVersions", version)
                # The epoch is the offset of the newest metadata record, and brokers write one twice a second.
                epochs = [answer.pop("finalized_features_epoch", None) for answer in (before, proxied, after)]
                self.assertEqual(proxied, before)
                self.assertEqual(proxied, after)
                (versions,) = [row for row in proxied["api_keys"] if row["api_key"] == 0]
                self.assertEqual(versions["min_version"], 0)
                if version >= 3:
                    self.assertEqual(epochs, sorted(epochs))
                    self.assertTrue(proxied["finalized_features"])

    # --- Addresses ---

    def test_metadata_names_mirrorpid_s_listeners(self):
        connection = self.through_proxy()
        for version in range(self.newest["Metadata"] + 1):
            with self.subTest(version=version):
                brokers = connection.call("Metadata", version, {"topics": []})["brokers"]
                self.assertEqual({broker["node_id"] for broker in brokers}, {1, 2})
                self.assert_proxy_endpoints(brokers, "node_id")

    def test_coordinators_are_named_by_their_listeners(self):
        def found(version):
            question = {"key": "group"} if version < 4 else {"coordinator_keys": ["group"]}
            answer = connection.call("FindCoordinator", version, question)
            rows = [answer] if version < 4 else answer["coordinators"]
            return rows if rows[0]["error_code"] == 0 else None  # the first question makes the topic behind it

        connection = self.through_proxy()
        for version in range(self.newest["FindCoordinator"] + 1):
            with self.subTest(version=version):
                rows = wait_until(lambda: found(version), 120, "a coordinator")
                self.assertEqual(len(rows), 1)
                self.assert_proxy_endpoints(rows, "node_id")

    def test_describe_cluster_names_mirrorpid_s_listeners(self):
        for version in range(self.newest["DescribeCluster"] + 1):
            with self.subTest(version=version):
                direct = self.directly().call("DescribeCluster", version)
                proxied = self.through_proxy().call("DescribeCluster", version)
                self.assert_proxy_endpoints(proxied["brokers"], "broker_id")
                self.assertEqual({broker["broker_id"] for broker in proxied["brokers"]}, {1, 2})
                for answer in (direct, proxied):
                    for broker in answer["brokers"]:
                        del broker["host"], broker["port"]
                    self.assertIn(answer.pop("controller_id"), (1, 2))  # a broker names one by chance
                    answer["brokers"].sort(key=lambda broker: broker["broker_id"])
                self.assertEqual(proxied, direct)

    def test_controllers_are_not_taken_for_brokers(self):
        for version in range(1, self.newest["DescribeCluster"] + 1):
            with self.subTest(version=version):
                question = {"endpoint_type": 2}
                proxied = self.through_proxy().call("DescribeCluster", version, question)
                self.assertEqual(proxied, self.directly().call("DescribeCluster", version, question))
                self.assertNotEqual(proxied["error_code"], 0)  # a broker's listener tells no controllers

    def test_the_new_leader_in_a_produce_answer_is_named_by_its_listener(self):
        self.destination.create_topic("moved-produce", leaders=[2], partitions=1)
        data = {0: batch("k", producer_id=-1, epoch=-1, sequence=-1)}
        for version in range(10, self.newest["Produce"] + 1):
            with self.subTest(version=version):
                topic = self.topic_key("moved-produce", version, 13)
                rows, direct = produce(self.directly(1), version, topic, data)
                self.assertEqual(rows[0]["error_code"], NOT_LEADER)
                self.assertEqual(direct["node_endpoints"][0]["port"], self.destination.address(2)[1])
                rows, proxied = produce(self.through_proxy(1), version, topic, data)
                self.assertEqual(rows[0]["error_code"], NOT_LEADER)
                self.assertEqual(rows[0]["current_leader"]["leader_id"], 2)
                self.assert_proxy_endpoints(proxied["node_endpoints"], "node_id")

    def test_the_new_leader_in_a_fetch_answer_is_named_by_its_listener_or_not_at_all(self):
        self.destination.create_topic("moved-fetch", leaders=[1, 2], partitions=2)
        record = [(b"k", bytes(100_000))]
        with self.destination.connect(1) as connection:
            produce(connection, 9, "moved-fetch", {0: kafka_batch.build(record)})
        for version in range(16, self.newest["Fetch"] + 1):
            for partition_bytes in (1, 1 << 20):  # an answer that is small, and one that is longer than a buffer
                with self.subTest(version=version, partition_bytes=partition_bytes):
                    offset = 0 if partition_bytes > 1 else 1
                    partitions = [
                        {"partition": 0, "fetch_offset": offset, "partition_max_bytes": partition_bytes},
                        {"partition": 1},
                    ]
                    topic = {"topic_id": self.destination.metadata("moved-fetch")["topic_id"], "partitions": partitions}
                    question = {"max_wait_ms": 0, "topics": [topic]}
                    direct = self.directly(1).call("Fetch", version, question)
                    self.assertEqual(direct["node_endpoints"][0]["port"], self.destination.address(2)[1])
                    proxied = self.through_proxy(1).call("Fetch", version, question)
                    self.assert_proxy_endpoints(proxied.get("node_endpoints", []), "node_id")
                    rows = {row["partition_index"]: row for row in proxied["responses"][0]["partitions"]}
                    self.assertEqual(rows[1]["error_code"], NOT_LEADER)
                    self.assertEqual(rows[1]["current_leader"]["leader_id"], 2)
                    for answer in (direct, proxied):
                        answer.pop("node_endpoints", None)
                        answer.pop("_tags", None)
                        answer["session_id"] = 0
                    self.assertEqual(proxied, direct)

    # --- Batches ---

    def test_a_batch_with_a_flipped_payload_bit_is_still_refused(self):
        self.destination.create_topic("flipped")
        good = batch("k1", "k2", producer_id=5, sequence=10)
        for version in range(3, self.newest["Produce"] + 1):
            with self.subTest(version=version):
                topic = self.topic_key("flipped", version, 13)
                connection = self.through_proxy(1)
                before = self.destination.end_offset("flipped", 0)
                for position in (kafka_batch.HEADER_SIZE, (kafka_batch.HEADER_SIZE + len(good)) // 2, len(good) - 1):
                    for bit in (0x01, 0x80):
                        broken = bytearray(good)
                        broken[position] ^= bit
                        rows, _ = produce(connection, version, topic, {0: broken})
                        self.assertEqual(rows[0]["error_code"], CORRUPT_MESSAGE)
                self.assertEqual(self.destination.end_offset("flipped", 0), before)
                rows, _ = produce(connection, version, topic, {0: good})
                self.assertEqual((rows[0]["error_code"], rows[0]["base_offset"]), (0, before))
        stored = self.destination.raw_batches("flipped", 0)
        self.assertEqual({entry.producer_id for entry in stored}, {mapped(region_of(SOURCE_ID), 5)})

    def test_null_records_are_answered_and_the_connection_goes_on(self):
        self.destination.create_topic("null-records", leaders=[1, 1, 1], partitions=3)
        own_ids = []  # of the destination
        for version in range(3, self.newest["Produce"] + 1):
            with self.subTest(version=version):
                topic = self.topic_key("null-records", version, 13)
                connection = self.through_proxy(1)
                before = self.destination.end_offset("null-records", 1)
                own_ids.append(1000 + version)
                own = batch("k", producer_id=MARK + own_ids[-1])
                rows, _ = produce(connection, version, topic, {0: None, 1: batch("k"), 2: own})
                errors = {index: row["error_code"] for index, row in rows.items()}
                self.assertEqual(errors, {0: INVALID_RECORD, 1: 0, 2: 0})
                self.assertEqual(self.destination.end_offset("null-records", 1), before + 1)
                rows, _ = produce(connection, version, topic, {0: batch("k")})
                self.assertEqual(rows[0]["error_code"], 0)
        stored = self.destination.raw_batches("null-records", 2)
        self.assertEqual([entry.producer_id for entry in stored], own_ids)

    def test_what_would_stop_the_log_cleaner_is_refused_and_the_cleaner_keeps_cleaning(self):
        region = region_of(SOURCE_ID)
        poison = [
            dict(producer_id=5, epoch=-1, sequence=0),
            dict(producer_id=5, epoch=0, sequence=-1),
            dict(producer_id=5, epoch=-1, sequence=0, attributes=kafka_batch.TRANSACTIONAL),
            dict(producer_id=5, epoch=-1, sequence=-1),
            dict(producer_id=MARK + 5, epoch=-1, sequence=0),
            dict(producer_id=MARK + 5, epoch=0, sequence=-1),
            dict(producer_id=MARK + 5, epoch=-1, sequence=-1, attributes=kafka_batch.TRANSACTIONAL),
            dict(producer_id=-7, epoch=-1, sequence=0),
            dict(producer_id=-7, epoch=0, sequence=-1),
            dict(producer_id=mapped(region, 5), epoch=-1, sequence=-1),
            dict(producer_id=mapped(region, 5), epoch=0, sequence=-1),
            dict(producer_id=-1, epoch=-1, sequence=-1, attributes=kafka_batch.TRANSACTIONAL),
        ]
        of_another = dict(producer_id=-7, epoch=-1, sequence=0)
        partitions = range(len(poison))
        good = len(poison)  # one partition more, whose batch must get through in the same request
        self.destination.create_topic("poison", leaders=[1] * (good + 1), partitions=good + 1, configs=COMPACTED)
        self.destination.create_topic("poisoned", leaders=[1], partitions=1, configs=COMPACTED)

        connection = self.through_proxy(1)
        self.assert_appended(produce(connection, 9, "poison", {p: batch("a", "b") for p in partitions}))
        data = {p: batch("a", "b", **poison[p]) for p in partitions}
        data[good] = batch("a", "b", sequence=2)
        rows, _ = produce(connection, 9, "poison", data, transactional_id="mirror")
        errors = {index: row["error_code"] for index, row in rows.items()}
        self.assertEqual(errors, {**dict.fromkeys(partitions, INVALID_RECORD), good: 0})
        with self.destination.connect(1) as direct:
            self.assert_appended(produce(direct, 9, "poisoned", {0: batch("a", "b", **of_another)}))

        # Two more batches, each so much younger that it begins a segment: now "a" in the first one may be cleaned away.
        for step, keys in enumerate((("a", "c"), ("d",)), start=1):
            later = batch(*keys, sequence=2 + 2 * step, timestamp=START + step * MINUTE)
            self.assert_appended(produce(connection, 9, "poison", {p: later for p in (*partitions, good)}))
            self.assert_appended(produce(connection, 9, "poisoned", {0: later}))
        for partition in (*partitions, good):
            wait_until(lambda: self.first_count("poison", partition) == 1, 120, f"poison-{partition} to be cleaned")
        log = wait_until(lambda: self.uncleanable("poisoned-0"), 120, "the batch sent directly to stop the cleaner")
        self.assertNotIn("Marking its partition (poison-", log)

    def assert_appended(self, produced):
        rows, _ = produced
        self.assertEqual({row["error_code"] for row in rows.values()}, {0})

    def first_count(self, topic, partition):
        try:
            return self.destination.raw_batches(topic, partition)[0].count
        except (FileNotFoundError, IndexError):
            return None  # the cleaner is just replacing the file

    def uncleanable(self, partition):
        """The broker's log when it says that the partition cannot be cleaned any more."""
        log = self.destination.broker_log(1)
        return log if f"Marking its partition ({partition})" in log else None


on_each_version(globals(), BrokerCases)

if __name__ == "__main__":
    unittest.main()
