"""MirrorMaker 2, exactly once, from a real source through mirrorpid into a real destination: its producers own ids of
the destination, and keep their transactions.

It takes minutes, so it runs with MIRRORPID_LONG=1 only."""

import re
import unittest

from tests.end_to_end import kafka, kafka_jars, programs
from tests.end_to_end.collisions import IS_LONG, Proxy
from tests.end_to_end.topic_reader import read_batches
from tests.support import ports
from tests.support.mirrorpid import Source
from tests.support.process import Process, wait_until

VERSION = "4.3.1"  # of MirrorMaker: registries have no newer one
TOPIC = "orders"
PARTITIONS = 2
RECORDS = 300  # of each producer
FIRST_RECORDS_TIMEOUT = 300  # seconds; 40 on a quiet machine
LOCAL_LIMIT = 1 << 62

_PROPERTIES = """
clusters=src,dst
src.bootstrap.servers={source}
dst.bootstrap.servers={destination}
src->dst.enabled=true
src->dst.topics=orders
src->dst.groups=readers
src->dst.sync.group.offsets.enabled=true
src->dst.sync.group.offsets.interval.seconds=1
src->dst.emit.checkpoints.interval.seconds=1
src->dst.offset.lag.max=0
dst->src.enabled=false
dst->src.emit.heartbeats.enabled=false
dst.exactly.once.source.support=enabled
# The workers of exactly once want a server for each other.
dedicated.mode.enable.internal.rest=true
listeners=http://127.0.0.1:{rest_port}
# Or aborted records are copied as if they were committed.
src.consumer.isolation.level=read_committed
# Or the whole class path is looked through three times.
plugin.discovery=service_load
tasks.max=1
refresh.topics.interval.seconds=5
refresh.groups.interval.seconds=5
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
"""


def setUpModule():
    if not IS_LONG:
        raise unittest.SkipTest("MirrorMaker 2 takes minutes: MIRRORPID_LONG=1")
    programs.check_built()


def committed_records(batches):
    """[(key, value), ...] of a partition without those of transactions that were aborted, and how many those are."""
    records = {}
    pending = {}
    aborted = 0
    for batch in batches:
        if batch.is_control:
            (marker,) = batch.read_records()
            is_commit = int.from_bytes(marker.key[2:4], "big") == 1
            for offset, record in pending.pop(batch.producer_id, []):
                if is_commit:
                    records[offset] = record
                aborted += not is_commit
            continue
        rows = [(record.offset, (record.key, record.value)) for record in batch.read_records()]
        if batch.is_transactional:
            pending.setdefault(batch.producer_id, []).extend(rows)
        else:
            records.update(rows)
    if pending:
        raise AssertionError(f"transactions of {list(pending)} are open")
    return [records[offset] for offset in sorted(records)], aborted


class MirrorMaker:
    source_version = destination_version = None

    @classmethod
    def setUpClass(cls):
        cls.jars = kafka_jars.get(VERSION, "mirror-maker")
        cls.source = kafka.Cluster(cls.source_version)
        cls.destination = kafka.Cluster(cls.destination_version)
        kafka.start_all([cls.source, cls.destination])
        cls.addClassCleanup(cls.source.close)
        cls.addClassCleanup(cls.destination.close)
        source = Source("eu", cls.source.cluster_id)
        cls.proxy = cls.enterClassContext(Proxy([source], cls.destination, "__mirror_state", replication_factor=1))

    def start(self):
        directory = self.proxy.directory
        file = directory / "mirror-maker.properties"
        destination = programs.endpoint(self.proxy.address("eu"))
        file.write_text(
            _PROPERTIES.format(
                source=self.source.bootstrap[0], destination=destination, rest_port=ports.free_ports()
            )
        )
        logging = f"-Dlog4j2.configurationFile={self.source.directory}/log4j2.properties"
        command = [kafka_jars.java(), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", logging]
        command += ["-cp", f"{self.jars}/*", "org.apache.kafka.connect.mirror.MirrorMaker", file]
        process = Process(command, directory / "mirror-maker.log")
        self.addCleanup(process.kill)
        return process

    def produce(self, seed):
        """Plain records, and transactions of which every third is aborted."""
        address = self.source.address()
        programs.load(programs.load_command(address, TOPIC, "none", RECORDS, PARTITIONS, seed))
        options = {"transactional_id": "tx", "transaction_records": 30, "abort_every": 3}
        programs.load(programs.load_command(address, TOPIC, "none", RECORDS, PARTITIONS, seed + 1, **options))

    def consume_at_source(self):
        """A group that has read all there is."""
        count = programs.consume(self.source.address(), TOPIC, "read_committed")["records"]
        properties = self.source.directory / "consumer.properties"
        properties.write_text("isolation.level=read_committed\n")
        option = "--command-config" if self.source_version >= "4.2" else "--consumer.config"
        options = ("--topic", TOPIC, "--group-id", "readers", "--max-messages", count, option, properties)
        self.source.tool(
            "VerifiableConsumer", "--bootstrap-server", self.source.bootstrap[0], *options, "--reset-policy", "earliest"
        )

    def lags(self):
        """{partition: records that the group has still to read at the destination}"""
        described = self.destination.tool(
            *("ConsumerGroupCommand", "--bootstrap-server", self.destination.bootstrap[0]),
            *("--describe", "--group", "readers"),
        )
        rows = re.findall(rf"^readers +src\.{TOPIC} +(\d+) +(\d+) +(\d+) +(\d+)", described, re.MULTILINE)
        return {int(partition): int(lag) for partition, _, _, lag in rows}

    def assert_mirrored(self, process):
        source = {p: committed_records(batches) for p, batches in read_batches(self.source, TOPIC).items()}
        wanted = sum(len(records) for records, _ in source.values())

        def is_done():
            if process.exit_code is not None:
                raise AssertionError(f"MirrorMaker ended: {process.exit_code}\n{process.log_tail()}")
            try:
                read = programs.consume(self.destination.address(), f"src.{TOPIC}", "read_committed")
            except AssertionError:
                return False  # there is no such topic yet
            return read["records"] >= wanted

        wait_until(is_done, FIRST_RECORDS_TIMEOUT, f"{wanted} records at the destination\n{process.log_tail()}")
        mirrored = read_batches(self.destination, f"src.{TOPIC}")
        for partition, batches in mirrored.items():
            records, aborted = committed_records(batches)
            self.assertEqual(records, source[partition][0])
            self.assertEqual(aborted, 0)
            self.assertGreater(source[partition][1], 0, "nothing was aborted at the source")
            for batch in batches:
                self.assertTrue(batch.is_transactional)
                self.assertIn(batch.producer_id, range(LOCAL_LIMIT))

    def test_exactly_once_through_mirrorpid(self):
        self.source.create_topic(TOPIC, PARTITIONS)
        self.produce(seed=1)
        process = self.start()
        self.assert_mirrored(process)
        self.produce(seed=3)
        self.proxy.kill()  # in the middle of it, or nearly
        self.proxy.start()
        self.assert_mirrored(process)
        self.consume_at_source()
        # The last marker of a transaction is not a record, and counts.
        wait_until(
            lambda: len(lags := self.lags()) == PARTITIONS and max(lags.values()) <= 1,
            *(FIRST_RECORDS_TIMEOUT, "the group's offsets at the destination"),
        )
        self.assert_mirrored(process)
        self.assertEqual(re.findall(r"^.*ProducerFenced.*$", process.log(), re.MULTILINE), [])


class From44To44(MirrorMaker, unittest.TestCase):
    source_version, destination_version = "4.4.0", "4.4.0"


class From39To39(MirrorMaker, unittest.TestCase):
    source_version, destination_version = "3.9.2", "3.9.2"


if __name__ == "__main__":
    unittest.main()
