"""Producers of the destination's own behind a source's listener: idempotence, transactions, fencing and what operators do
about them are as without mirrorpid, and the log holds the ids that the destination handed out.

Raw requests in every version that the brokers speak, Kafka's Java client, librdkafka, and Kafka's own tools.
With MIRRORPID_LONG=1 on two more releases.
"""

import pathlib
import unittest

from tests.end_to_end import kafka, kafka_jars, programs
from tests.end_to_end.collisions import IS_LONG
from tests.support import kafka_batch, kafka_wire
from tests.support.mapping import mapped, region_of
from tests.support.mirrorpid import Mirrorpid, Source
from tests.support.process import wait_until

SOURCE_ID = "MkU3OEVBNTcwNTJENDM2Qg"
REGION = region_of(SOURCE_ID)
MARK = 1 << 62
PARTITIONS = 2
NO_COORDINATOR_YET = (14, 15, 16)  # loading, not available, not it
CONCURRENT_TRANSACTIONS = 51
UNKNOWN_SERVER_ERROR = -1
FENCED = (47, 90)
COMMIT, ABORT = True, False
WITH_IDS = (
    *("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit"),
    *("DescribeProducers", "DescribeTransactions", "ListTransactions"),
)
JAVA_PROGRAM = pathlib.Path(__file__).with_name("Transactions.java")

DESTINATIONS = {version: kafka.Cluster(version, nodes=2) for version in ("4.4.0", "3.9.2")}


def setUpModule():
    programs.check_built()
    kafka.start_all(DESTINATIONS.values())
    for cluster in DESTINATIONS.values():
        unittest.addModuleCleanup(cluster.close)


class OwnProducers:
    version = None

    @classmethod
    def setUpClass(cls):
        cls.destination = DESTINATIONS.get(cls.version) or cls.enterClassContext(kafka.Cluster(cls.version, nodes=2))
        cls.proxy = cls.enterClassContext(Mirrorpid([Source("eu", SOURCE_ID)], bootstrap=cls.destination.bootstrap))
        with cls.destination.connect() as connection:
            rows = connection.call("ApiVersions", 3)["api_keys"]
        names = {row["api_key"]: kafka_wire.API_NAMES.get(row["api_key"]) for row in rows}
        cls.versions = {
            names[row["api_key"]]: range(row["min_version"], row["max_version"] + 1)
            for row in rows
            if names[row["api_key"]] in WITH_IDS
        }

    # --- Through mirrorpid ---

    def bootstrap(self):
        return programs.endpoint(self.proxy.address("eu"))

    def connect(self, node):
        connection = kafka_wire.Connection(*self.proxy.node_address("eu", node))
        self.addCleanup(connection.close)
        return connection

    def coordinator(self, key, key_type):
        """A connection to the coordinator of a group (0) or a transactional id (1)."""
        with self.destination.connect() as connection:

            def find():
                answer = connection.call("FindCoordinator", 3, {"key": key, "key_type": key_type})
                return answer if answer["error_code"] == 0 else None

            return self.connect(wait_until(find, 60, f"the coordinator of {key}")["node_id"])

    def call(self, connection, api, version, body):
        """A call that is made again while a coordinator is not ready, or still ends the last transaction."""

        def ask():
            answer = connection.call(api, version, body)
            return None if self.error_of(answer) in (*NO_COORDINATOR_YET, CONCURRENT_TRANSACTIONS) else answer

        return wait_until(ask, 60, f"{api} v{version}")

    def error_of(self, answer):
        """The first error anywhere in an answer, or 0."""
        if isinstance(answer, list):
            return next(filter(None, map(self.error_of, answer)), 0)
        if not isinstance(answer, dict):
            return 0
        own = answer.get("error_code") or answer.get("partition_error_code")
        return own or self.error_of(list(answer.values()))

    def init(self, transactional_id, version=4):
        """(connection to the coordinator, producer id as a client has it, epoch)"""
        coordinator = self.coordinator(transactional_id, 1)
        answer = self.call(coordinator, "InitProducerId", version, {"transactional_id": transactional_id})
        self.assertEqual(answer["error_code"], 0)
        self.assertEqual(answer["producer_id"] & MARK, MARK)
        return coordinator, answer["producer_id"], answer["producer_epoch"]

    def produce(self, topic, transactional_id, pid, epoch, partition=0):
        data = kafka_batch.build(
            [(b"k", b"v")],
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=0,
            attributes=kafka_batch.TRANSACTIONAL,
        )
        with kafka_wire.Connection(*self.proxy.node_address("eu", self.destination.leaders(topic)[partition])) as leader:
            partitions = [{"index": partition, "records": data}]
            body = {"transactional_id": transactional_id, "topic_data": [{"name": topic, "partition_data": partitions}]}
            # Right behind AddPartitionsToTxn a leader may not have heard of it yet.
            self.assertEqual(self.error_of(self.call(leader, "Produce", 9, body)), 0)

    def add_partitions(self, coordinator, version, topic, transactional_id, pid, epoch):
        body = {"transactional_id": transactional_id, "producer_id": pid, "producer_epoch": epoch}
        body["topics"] = [{"name": topic, "partitions": list(range(PARTITIONS))}]
        answer = self.call(
            coordinator, "AddPartitionsToTxn", version, body if version < 4 else {"transactions": [body]}
        )
        self.assertEqual(self.error_of(answer), 0)

    def begin(self, topic, transactional_id):
        """An open transaction with a record in each partition: (coordinator, producer id, epoch)."""
        coordinator, pid, epoch = self.init(transactional_id)
        self.add_partitions(coordinator, 3, topic, transactional_id, pid, epoch)
        for partition in range(PARTITIONS):
            self.produce(topic, transactional_id, pid, epoch, partition)
        return coordinator, pid, epoch

    def end(self, coordinator, version, transactional_id, pid, epoch, committed):
        body = {"transactional_id": transactional_id, "producer_id": pid, "producer_epoch": epoch}
        return self.call(coordinator, "EndTxn", version, {**body, "committed": committed})

    # --- What the destination has ---

    def directly(self, transactional_id):
        """The destination's own word on a transactional id."""
        node = self.destination_coordinator(transactional_id)
        with self.destination.connect(node) as connection:
            answer = connection.call("DescribeTransactions", 0, {"transactional_ids": [transactional_id]})
            return answer["transaction_states"][0]

    def destination_coordinator(self, transactional_id):
        with self.destination.connect() as connection:
            return connection.call("FindCoordinator", 3, {"key": transactional_id, "key_type": 1})["node_id"]

    def stored(self, topic):
        return [batch for p in range(PARTITIONS) for batch in self.destination.raw_batches(topic, p)]

    def markers(self, topic, pid):
        """Control batches of a producer in the log."""
        return [batch for batch in self.stored(topic) if batch.is_control and batch.producer_id == pid]

    def is_open(self, topic, pid):
        """Whether a producer has a transaction open anywhere in a topic, by the word of its leaders."""
        for partition, node in self.destination.leaders(topic).items():
            with self.destination.connect(node) as connection:
                asked = {"topics": [{"name": topic, "partition_indexes": [partition]}]}
                row = connection.call("DescribeProducers", 0, asked)["topics"][0]["partitions"][0]
            for state in row["active_producers"]:
                if state["producer_id"] == pid and state["current_txn_start_offset"] >= 0:
                    return True
        return False

    # --- Raw requests ---

    def test_no_version_that_the_broker_speaks_is_hidden(self):
        rows = self.connect(1).call("ApiVersions", 3)["api_keys"]
        proxied = {row["api_key"]: range(row["min_version"], row["max_version"] + 1) for row in rows}
        self.assertEqual(set(self.versions), set(WITH_IDS))
        for api, versions in self.versions.items():
            self.assertEqual(proxied[kafka_wire.APIS[api].key], versions, api)

    def test_every_version_of_init_producer_id_hands_out_a_marked_id_and_takes_it_back(self):
        for version in self.versions["InitProducerId"]:
            with self.subTest(version=version):
                txid = f"init-{version}"
                coordinator, pid, epoch = self.init(txid, version)
                self.assertEqual(self.directly(txid)["producer_id"], pid - MARK)
                if version >= 3:
                    body = {"transactional_id": txid, "producer_id": pid, "producer_epoch": epoch}
                    again = self.call(coordinator, "InitProducerId", version, body)
                    self.assertEqual((again["error_code"], again["producer_id"]), (0, pid))
                    self.assertEqual(again["producer_epoch"], epoch + 1)
                answer = self.call(coordinator, "InitProducerId", version, {})
                self.assertEqual(answer["error_code"], 0)
                self.assertEqual(answer["producer_id"] & MARK, MARK)

    def test_a_transaction_in_every_version_of_its_requests_commits_and_aborts(self):
        self.destination.create_topic("raw", PARTITIONS)
        topic_id = self.destination.metadata("raw")["topic_id"]
        own = {}  # producer id: how its transaction ended
        for step in range(7):
            version = {
                api: self.versions[api][min(step, len(self.versions[api]) - 1)]
                for api in ("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")
            }
            for committed in (COMMIT, ABORT):
                with self.subTest(version=version, committed=committed):
                    txid = group = f"raw-{step}-{committed}"
                    coordinator, pid, epoch = self.init(txid)
                    own[pid - MARK] = committed
                    named = {"transactional_id": txid, "producer_id": pid, "producer_epoch": epoch, "group_id": group}
                    self.add_partitions(coordinator, version["AddPartitionsToTxn"], "raw", txid, pid, epoch)
                    for partition in range(PARTITIONS):
                        self.produce("raw", txid, pid, epoch, partition)
                    answer = self.call(coordinator, "AddOffsetsToTxn", version["AddOffsetsToTxn"], named)
                    self.assertEqual(self.error_of(answer), 0)
                    topic = {"topic_id": topic_id} if version["TxnOffsetCommit"] >= 6 else {"name": "raw"}
                    topic["partitions"] = [{"partition_index": 0, "committed_offset": 7}]
                    members = self.coordinator(group, 0)
                    offsets = {**named, "topics": [topic]}
                    answer = self.call(members, "TxnOffsetCommit", version["TxnOffsetCommit"], offsets)
                    self.assertEqual(self.error_of(answer), 0)
                    answer = self.end(coordinator, version["EndTxn"], txid, pid, epoch, committed)
                    self.assertEqual(answer["error_code"], 0)
                    if version["EndTxn"] >= 5:
                        self.assertEqual((answer["producer_id"], answer["producer_epoch"]), (pid, epoch + 1))
        for pid, committed in own.items():
            wait_until(lambda: not self.is_open("raw", pid), 60, f"the end of the transaction of {pid}")
            types = {batch.read_records()[0].key[3] for batch in self.markers("raw", pid)}
            self.assertEqual(types, {1 if committed else 0})
        self.assertEqual({batch.producer_id for batch in self.stored("raw")}, set(own))
        committed_records = PARTITIONS * sum(own.values())
        for address in (self.proxy.address("eu"), self.destination.address()):
            self.assertEqual(programs.consume(address, "raw", "read_committed")["records"], committed_records)

    def test_a_producer_whose_transactional_id_was_taken_over_is_fenced(self):
        self.destination.create_topic("fenced", PARTITIONS)
        coordinator, pid, epoch = self.begin("fenced", "taken")
        _, second, second_epoch = self.init("taken")
        self.assertEqual(second, pid)
        self.assertGreater(second_epoch, epoch)
        answer = self.end(coordinator, 3, "taken", pid, epoch, COMMIT)
        self.assertIn(answer["error_code"], FENCED)
        body = {"transactional_id": "taken", "producer_id": pid, "producer_epoch": epoch}
        self.assertIn(coordinator.call("InitProducerId", 4, body)["error_code"], FENCED)

    def test_what_an_operator_asks_names_marked_ids_and_is_asked_by_them(self):
        self.destination.create_topic("asked", PARTITIONS)
        coordinator, pid, epoch = self.begin("asked", "asked")
        described = coordinator.call("DescribeTransactions", 0, {"transactional_ids": ["asked", "nobody"]})
        known, unknown = described["transaction_states"]
        self.assertEqual(known, {**self.directly("asked"), "producer_id": pid})
        self.assertNotEqual(unknown["error_code"], 0)
        self.assertLess(unknown["producer_id"], MARK)
        for version in self.versions["ListTransactions"]:
            for filters in ([], [pid], [pid - MARK]):
                answer = coordinator.call("ListTransactions", version, {"producer_id_filters": filters})
                listed = {entry["transactional_id"]: entry["producer_id"] for entry in answer["transaction_states"]}
                self.assertEqual(listed["asked"], pid)
                self.assertTrue(not filters or len(listed) == 1)
        for partition, node in self.destination.leaders("asked").items():
            question = {"topics": [{"name": "asked", "partition_indexes": [partition]}]}
            with self.destination.connect(node) as connection:
                direct = connection.call("DescribeProducers", 0, question)["topics"][0]["partitions"][0]
            proxied = self.connect(node).call("DescribeProducers", 0, question)["topics"][0]["partitions"][0]
            for state in direct["active_producers"]:
                state["producer_id"] += MARK
            self.assertTrue(direct["active_producers"])
            self.assertEqual(proxied, direct)
        self.assertEqual(self.end(coordinator, 3, "asked", pid, epoch, ABORT)["error_code"], 0)

    def write_markers(self, topic, partition, version, *pids, epoch=0):
        topics = [{"name": topic, "partition_indexes": [partition]}]
        markers = [{"producer_id": pid, "producer_epoch": epoch, "topics": topics} for pid in pids]
        leader = self.connect(self.destination.leaders(topic)[partition])
        answer = leader.call("WriteTxnMarkers", version, {"markers": markers})["markers"]
        return {entry["producer_id"]: entry["topics"][0]["partitions"][0]["error_code"] for entry in answer}

    def test_a_marker_with_the_destination_s_own_id_ends_its_transaction_and_a_source_s_ends_nobody_s(self):
        for version in self.versions["WriteTxnMarkers"]:
            with self.subTest(version=version):
                topic = f"markers-{version}"
                self.destination.create_topic(topic, PARTITIONS)
                _, pid, epoch = self.begin(topic, topic)
                own = pid - MARK
                source = [own, own + (1 << 31), 123_456]  # the first is what a source may call its producer, too
                expected = dict.fromkeys(source[:1] + source[2:], 0)
                self.assertEqual(self.write_markers(topic, 0, version, source[0], source[2], epoch=epoch), expected)
                self.assertEqual(self.write_markers(topic, 0, version, source[1]), {source[1]: 0})
                self.assertTrue(self.is_open(topic, own))
                self.assertEqual(self.markers(topic, own), [])
                for mark in (mapped(REGION, own), mapped(REGION, source[2])):
                    self.assertTrue(self.markers(topic, mark))
                for partition in range(PARTITIONS):
                    self.assertEqual(self.write_markers(topic, partition, version, pid, epoch=epoch), {pid: 0})
                self.assertFalse(self.is_open(topic, own))
                self.assertEqual(len(self.markers(topic, own)), PARTITIONS)

    def test_a_marker_that_would_be_mapped_to_minus_1_is_refused_and_writes_nothing(self):
        self.destination.create_topic("minus-1", PARTITIONS)
        _, pid, _ = self.begin("minus-1", "minus-1")
        before = len(self.stored("minus-1"))
        last = Source("last", SOURCE_ID, extra={"region": 0xFFFFFFFF})
        with Mirrorpid([last], bootstrap=self.destination.bootstrap) as proxy:
            topics = [{"name": "minus-1", "partition_indexes": [0]}]
            body = {"markers": [{"producer_id": 0x7FFFFFFF, "topics": topics}]}
            with kafka_wire.Connection(
                *proxy.node_address("last", self.destination.leaders("minus-1")[0])
            ) as connection:
                (marker,) = connection.call("WriteTxnMarkers", 1, body)["markers"]
        self.assertEqual(marker["producer_id"], 0x7FFFFFFF)
        self.assertEqual(marker["topics"][0]["partitions"][0]["error_code"], UNKNOWN_SERVER_ERROR)
        self.assertTrue(self.is_open("minus-1", pid - MARK))
        self.assertEqual(len(self.stored("minus-1")), before)

    # --- Clients ---

    def java(self, command, topic, identity, address=None):
        """The lines that Transactions.java printed, as {first word: rest}."""
        bootstrap = programs.endpoint(address or self.proxy.address("eu"))
        output = programs.run_java(kafka_jars.get(self.version), JAVA_PROGRAM, command, bootstrap, topic, identity)
        return dict(line.split(" ", 1) for line in output.splitlines() if " " in line)

    def test_kafka_s_java_client_commits_aborts_and_is_read_as_it_should_be(self):
        self.destination.create_topic("java", PARTITIONS)
        self.assertEqual(self.java("load", "java", "java-load")["offset"], "8")
        for address in (self.proxy.address("eu"), self.destination.address()):
            told = self.java("consume", "java", "java-load", address)
            self.assertEqual(told["read"], "{committed=60, idempotent=10}")
        self.assert_own_ids("java", "java-load")

    def test_kafka_s_java_client_is_fenced_by_a_second_one(self):
        self.destination.create_topic("java-fenced", PARTITIONS)
        told = self.java("fence", "java-fenced", "java-fence")
        self.assertEqual(told, {"first": "fenced", "second": "committed"})
        self.assertEqual(self.java("consume", "java-fenced", "java-fence")["read"], "{second=10}")
        self.assert_own_ids("java-fenced", "java-fence")

    def test_kafka_s_java_admin_client_ends_the_transaction_that_it_was_shown(self):
        self.destination.create_topic("java-admin", PARTITIONS)
        told = self.java("admin", "java-admin", "java-admin")
        own = self.directly("java-admin")["producer_id"]
        shown = str(MARK + own)
        self.assertEqual((told["active"], told["described"], told["refenced"]), (shown,) * 3)
        self.assertEqual((told["listed"], told["open"]), (f"[java-admin={shown}]", "false"))
        self.assertEqual(self.java("consume", "java-admin", "java-admin")["read"], "{}")

    def test_librdkafka_commits_aborts_and_is_read_as_it_should_be(self):
        self.destination.create_topic("rdkafka", PARTITIONS)
        options = {"transactional_id": "rdkafka", "transaction_records": 20, "abort_every": 3}
        address = self.proxy.address("eu")
        (told,) = programs.load(programs.load_command(address, "rdkafka", "lz4", 180, PARTITIONS, 1, **options))
        self.assertEqual((told["acknowledged"], told["committed"], told["aborted"]), (180, 6, 3))
        programs.load(programs.load_command(address, "rdkafka", "none", 60, PARTITIONS, 2))
        proxied = programs.consume(address, "rdkafka", "read_committed")
        self.assertEqual(proxied, programs.consume(self.destination.address(), "rdkafka", "read_committed"))
        self.assertEqual(proxied["records"], 180)
        self.assert_own_ids("rdkafka", "rdkafka")

    def assert_own_ids(self, topic, transactional_id):
        """Every batch has an id of the destination's own, and those in transactions the one of this identity."""
        stored = self.stored(topic)
        self.assertTrue(all(0 <= batch.producer_id < MARK for batch in stored))
        own = self.directly(transactional_id)["producer_id"]
        self.assertEqual({batch.producer_id for batch in stored if batch.is_transactional}, {own})

    # --- Tools ---

    def transactions(self, *arguments):
        """The rows that kafka-transactions prints, as dictionaries by the words above them."""
        output = self.destination.tool("TransactionsCommand", "--bootstrap-server", self.bootstrap(), *arguments)
        lines = [line.split("\t") for line in output.splitlines()]
        head = next((number for number, line in enumerate(lines) if "ProducerId" in map(str.strip, line)), len(lines))
        names, *rows = [list(map(str.strip, line)) for line in lines[head:]] or [[]]
        return [dict(zip(names, row)) for row in rows if len(row) == len(names)]

    def test_kafka_transactions_ends_the_very_transaction_that_it_listed(self):
        self.destination.create_topic("hanging", PARTITIONS)
        identities = ("hanging-1", "hanging-2")
        for identity in identities:
            self.begin("hanging", identity)
        own = {identity: self.directly(identity)["producer_id"] for identity in identities}
        shown = {identity: str(MARK + pid) for identity, pid in own.items()}
        listed = {row["TransactionalId"]: row["ProducerId"] for row in self.transactions("list")}
        self.assertEqual({identity: listed[identity] for identity in identities}, shown)
        (described,) = self.transactions("describe", "--transactional-id", "hanging-1")
        self.assertEqual(described["ProducerId"], shown["hanging-1"])

        for partition in range(PARTITIONS):
            where = ("--topic", "hanging", "--partition", partition)
            active = {row["ProducerId"]: row for row in self.transactions("describe-producers", *where)}
            self.assertEqual(set(active), set(shown.values()))
            row = active[shown["hanging-1"]]
            if partition == 0:
                how = ("--start-offset", row["CurrentTransactionStartOffset"])
            else:
                # The first transaction of a partition has no coordinator's epoch there yet, and any is good.
                how = ("--producer-id", row["ProducerId"], "--producer-epoch", row["ProducerEpoch"])
                how += ("--coordinator-epoch", 0)
            self.transactions("abort", *where, *how)
        self.assertFalse(self.is_open("hanging", own["hanging-1"]))
        self.assertTrue(self.is_open("hanging", own["hanging-2"]))
        self.assertEqual(len(self.markers("hanging", own["hanging-1"])), PARTITIONS)
        self.assertEqual(self.markers("hanging", own["hanging-2"]), [])


class OnKafka44(OwnProducers, unittest.TestCase):
    version = "4.4.0"


class OnKafka39(OwnProducers, unittest.TestCase):
    version = "3.9.2"


@unittest.skipUnless(IS_LONG, "MIRRORPID_LONG is not set")
class OnKafka40(OwnProducers, unittest.TestCase):
    version = "4.0.2"


@unittest.skipUnless(IS_LONG, "MIRRORPID_LONG is not set")
class OnKafka36(OwnProducers, unittest.TestCase):
    version = "3.6.2"


if __name__ == "__main__":
    unittest.main()
