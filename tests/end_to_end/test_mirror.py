"""Two real source clusters mirrored verbatim into one topic, through mirrorpid: what the destination's log holds then.

The sources are a Kafka 4.4 and a 3.9, with ordinary producers that own the same low producer ids on both. Each class
has a destination of another version, of two nodes, so that a mirror needs the listeners of both.
"""

import collections
import unittest

from tests.end_to_end import kafka, programs
from tests.support.mapping import mapped, region_of
from tests.support.mirrorpid import Mirrorpid, Source

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPIC = "orders"
PARTITIONS = 4
RECORDS = 240  # of each producer: three batches a partition
SOURCES = {
    "eu": kafka.Cluster("4.4.0", cluster_id="MkU3OEVBNTcwNTJENDM2Qg"),
    "us": kafka.Cluster("3.9.2", cluster_id="4L6g3nShT-eMCtK--X86sw"),
}
DESTINATIONS = {
    "4.4.0": kafka.Cluster("4.4.0", nodes=2, cluster_id="J6vyCXi7TYaxqdHPwUXoxA"),
    "3.9.2": kafka.Cluster("3.9.2", nodes=2, cluster_id="Rk1zQVhJc2lQVU5RbWZYdw"),
}
# What DumpLogSegments prints of a batch and mirroring must not change.
SAME_IN_DUMP = (
    *("count", "baseSequence", "lastSequence", "producerEpoch", "isTransactional", "isControl"),
    *("CreateTime", "size", "magic", "compresscodec"),
)

source_dumps = {}  # name: {partition: [(row of the dump, batch), ...]}, without control batches


def setUpModule():
    programs.check_built()
    clusters = [*SOURCES.values(), *DESTINATIONS.values()]
    kafka.start_all(clusters)
    for cluster in clusters:
        unittest.addModuleCleanup(cluster.close)
    for seed, cluster in enumerate(SOURCES.values()):
        cluster.create_topic(TOPIC, PARTITIONS)
        # One after the other: so the same kind of producer gets the same id on both sources, the worst case.
        for codec in CODECS:
            programs.load(programs.load_command(cluster.address(), TOPIC, codec, RECORDS, PARTITIONS, seed))
        for codec in ("zstd", "lz4"):
            options = {"transactional_id": f"tx-{codec}", "transaction_records": 40, "abort_every": 3}
            programs.load(programs.load_command(cluster.address(), TOPIC, codec, RECORDS, PARTITIONS, seed, **options))
    for name, cluster in SOURCES.items():
        source_dumps[name] = {
            partition: [pair for pair in pairs if not pair[0]["isControl"]]
            for partition, pairs in read_log(cluster, TOPIC).items()
        }


def read_log(cluster, topic):
    """{partition: [(row of the dump, batch on disk), ...]} in the order of the log."""
    dump = cluster.dump_logs([(topic, partition) for partition in range(PARTITIONS)])
    return {
        partition: list(zip(rows, cluster.raw_batches(topic, partition), strict=True))
        for (_, partition), rows in dump.items()
    }


def by_producer(pairs):
    groups = collections.defaultdict(list)
    for row, batch in pairs:
        groups[row["producerId"]].append((row, batch))
    return groups


class TheSources(unittest.TestCase):
    """What all the rest stands on."""

    def test_own_the_same_producer_ids_with_every_codec_and_transactions(self):
        owners = {name: set() for name in SOURCES}
        for name, partitions in source_dumps.items():
            rows = [row for pairs in partitions.values() for row, _ in pairs]
            owners[name] = {row["producerId"] for row in rows}
            self.assertEqual({row["compresscodec"] for row in rows}, set(CODECS))
            self.assertEqual({row["isTransactional"] for row in rows}, {True, False})
        self.assertEqual(owners["eu"], owners["us"])
        self.assertEqual(len(owners["eu"]), len(CODECS) + 2)


class MirroredThrough:
    """The tests of one destination version; `via` is the version of the cluster in the middle of the chain."""

    version = via = None

    @classmethod
    def setUpClass(cls):
        cls.destination = DESTINATIONS[cls.version]
        cls.proxy = cls.enterClassContext(
            Mirrorpid(
                [Source(name, cluster.cluster_id) for name, cluster in SOURCES.items()],
                bootstrap=cls.destination.bootstrap,
            )
        )
        cls.destination.create_topic("mirrored", PARTITIONS)
        cls.results = programs.mirror(
            *((cluster.address(), cls.proxy.address(name), TOPIC, "mirrored") for name, cluster in SOURCES.items())
        )

    def assert_holds(self, cluster, topic, expected):
        """`expected`: {partition: {producer id: [(row, batch) of the source, ...]}}. Nothing else may be there."""
        for partition, pairs in read_log(cluster, topic).items():
            found = by_producer(pairs)
            self.assertEqual(set(found), set(expected[partition]), f"producer ids in partition {partition}")
            for producer_id, wanted in expected[partition].items():
                with self.subTest(partition=partition, producer_id=producer_id):
                    self.assertEqual(len(found[producer_id]), len(wanted))
                    for (row, batch), (source_row, source_batch) in zip(found[producer_id], wanted):
                        self.assert_same_but_for_the_id(row, batch, source_row, source_batch)

    def assert_same_but_for_the_id(self, row, batch, source_row, source_batch):
        self.assertTrue(row["isvalid"], "the CRC")
        self.assertEqual({name: row[name] for name in SAME_IN_DUMP}, {name: source_row[name] for name in SAME_IN_DUMP})
        # In the bytes: all but base offset, leader epoch, CRC and producer id.
        for first, last in ((8, 12), (16, 17), (21, 43), (51, None)):
            self.assertEqual(batch.data[first:last], source_batch.data[first:last], f"bytes {first} to {last}")

    def expected_of(self, *names):
        """What the named sources leave behind in a destination."""
        expected = {partition: {} for partition in range(PARTITIONS)}
        for name in names:
            region = region_of(SOURCES[name].cluster_id)
            for partition, pairs in source_dumps[name].items():
                for producer_id, group in by_producer(pairs).items():
                    expected[partition][mapped(region, producer_id)] = group
        return expected

    def test_every_producer_keeps_apart_and_every_batch_is_the_source_s_byte_for_byte(self):
        for result in self.results:
            self.assertEqual(result["errors"], [])
            self.assertGreater(result["control_batches_left_out"], 0)
        self.assert_holds(self.destination, "mirrored", self.expected_of("eu", "us"))

    def test_a_consumer_that_checks_crcs_reads_all_of_it_through_mirrorpid(self):
        counts = {
            partition: sum(row["count"] for name in SOURCES for row, _ in source_dumps[name][partition])
            for partition in range(PARTITIONS)
        }
        consumed = programs.consume(self.proxy.address("eu"), "mirrored")
        self.assertEqual({entry["partition"]: entry["records"] for entry in consumed["partitions"]}, counts)
        self.assertEqual(consumed, programs.consume(self.destination.address(), "mirrored"))

    def test_a_chain_of_two_keeps_the_value_that_the_first_one_made(self):
        middle = DESTINATIONS[self.via]
        topic = f"chain-to-{self.version}"
        for cluster in (middle, self.destination):
            cluster.create_topic(topic, PARTITIONS)
        with (
            Mirrorpid([Source("a", SOURCES["eu"].cluster_id)], bootstrap=middle.bootstrap) as first,
            Mirrorpid([Source("b", middle.cluster_id)], bootstrap=self.destination.bootstrap) as second,
        ):
            programs.mirror((SOURCES["eu"].address(), first.address("a"), TOPIC, topic))
            # The middle has producers of its own, too; they get its region.
            programs.load(programs.load_command(middle.address(), topic, "gzip", RECORDS, PARTITIONS, 77))
            programs.mirror((middle.address(), second.address("b"), topic, topic))
        expected = self.expected_of("eu")
        self.assertTrue(all(expected.values()))
        for partition, pairs in read_log(middle, topic).items():
            own = {pid: group for pid, group in by_producer(pairs).items() if pid >= 0}
            self.assertEqual(len(own), 1)
            for producer_id, group in own.items():
                expected[partition][mapped(region_of(middle.cluster_id), producer_id)] = group
        self.assert_holds(self.destination, topic, expected)

    def test_without_mirrorpid_the_same_load_shares_ids_or_is_acknowledged_and_lost(self):
        self.destination.create_topic("control", PARTITIONS)
        routes = [(cluster.address(), self.destination.address(), TOPIC, "control") for cluster in SOURCES.values()]
        results = programs.mirror(*routes, may_be_refused=True)
        acknowledged = sum(result["batches"] - len(result["errors"]) for result in results)
        refused = collections.Counter(error["code"] for result in results for error in result["errors"])

        origins = collections.defaultdict(set)  # producer id: the sources whose records stand under it
        in_log = 0
        for partition, pairs in read_log(self.destination, "control").items():
            sources = {batch.records: name for name in SOURCES for _, batch in source_dumps[name][partition]}
            for row, batch in pairs:
                origins[row["producerId"]].add(sources[batch.records])
                in_log += 1
        shared = sorted(producer_id for producer_id, names in origins.items() if len(names) > 1)
        lost = acknowledged - in_log
        print(
            f"\nwithout mirrorpid, on Kafka {self.version}: {acknowledged} batches acknowledged, {in_log} in the log, "
            f"{lost} lost; producer ids of both sources: {shared}; refused, by error code: {dict(refused)}"
        )
        self.assertTrue(shared or lost > 0, "nothing went wrong, so the tests above prove nothing")


class OnKafka44(MirroredThrough, unittest.TestCase):
    version, via = "4.4.0", "3.9.2"


class OnKafka39(MirroredThrough, unittest.TestCase):
    version, via = "3.9.2", "4.4.0"


if __name__ == "__main__":
    unittest.main()
