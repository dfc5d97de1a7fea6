"""Other people's clients do one job twice at the same broker, directly and through mirrorpid, and must see the same:
topics, producers with and without transactions, fencing, groups and offsets (see clients/README.md). What they leave
behind in the log must be the same, too, with producer ids that the broker has handed out.

With MIRRORPID_LONG=1 all clients and all brokers, else a few. With MIRRORPID_CLIENT_TABLE=FILE a table of what was run
is written there.
"""

import collections
import os
import pathlib
import unittest

from tests.end_to_end import client_programs, client_table, kafka
from tests.end_to_end.collisions import IS_LONG, Proxy, check_built
from tests.end_to_end.topic_reader import read_batches
from tests.support.mirrorpid import Source

PARTITIONS = 3
RECORDS = 90
LOCAL_LIMIT = 1 << 62  # from here on an id carries the mark, which must never reach a broker
SERIES = ("committed", "second", "third")
CLIENTS = [client for client in client_programs.all_clients() if IS_LONG or client.is_short]
BROKERS = [("4.4.0", 3), ("3.9.2", 1)]
if IS_LONG:
    BROKERS = [(version, nodes) for version in ("3.7.2", "3.9.2", "4.0.2", "4.4.0") for nodes in (1, 3)]


def column(version, nodes):
    return f"{version}, {nodes} node{'s' if nodes > 1 else ''}"


table = client_table.Table([column(*broker) for broker in BROKERS])


def setUpModule():
    check_built()


def tearDownModule():
    path = os.environ.get("MIRRORPID_CLIENT_TABLE")
    if path:
        pathlib.Path(path).write_text(table.text(CLIENTS))


class Summary:
    """What two runs of a job must have in common in the log: for each partition the runs of records of one producer,
    epoch and kind, where producers are numbered in order of appearance. How a client cuts them into batches is its own
    affair."""

    def __init__(self, test, cluster, topic):
        self.producer_ids = []
        self.partitions = {}
        for partition, batches in read_batches(cluster, topic).items():
            runs = self.partitions[partition] = []
            next_sequence = {}
            for batch in batches:
                test.assertEqual(batch.crc, batch.computed_crc())
                if batch.producer_id not in self.producer_ids:
                    self.producer_ids.append(batch.producer_id)
                kind = (self.producer_ids.index(batch.producer_id), batch.producer_epoch)
                kind += (batch.is_transactional, batch.is_control)
                if batch.producer_id >= 0 and not batch.is_control:
                    expected = next_sequence.get(kind, 0)
                    test.assertEqual(batch.base_sequence, expected, f"sequence of {kind} in {partition}")
                    next_sequence[kind] = expected + batch.count
                if runs and runs[-1][0] == kind:
                    runs[-1][1] += batch.count
                else:
                    runs.append([kind, batch.count])


class Matrix:
    version = nodes = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(kafka.Cluster(cls.version, nodes=cls.nodes, log_requests=True))
        copies = min(cls.nodes, 3)
        source = Source("eu", "MkU3OEVBNTcwNTJENDM2Qg")
        cls.proxy = cls.enterClassContext(Proxy([source], cls.cluster, "__mirror_state", replication_factor=copies))

    def run_client(self, client):
        cell = column(self.version, self.nodes)
        if client.group_protocol == "consumer" and self.version < "4":
            self.skipTest(f"Kafka {self.version} has no group protocol '{client.group_protocol}'")
        table.note(client, cell, "differs")
        try:
            names = [f"{way}-{client.key}" for way in ("direct", "proxied")]
            addresses = [self.cluster.bootstrap[0], "{}:{}".format(*self.proxy.address("eu"))]
            commands = [client.command(self.task(*pair)) for pair in zip(names, addresses)]
        except unittest.SkipTest as skip:
            table.note(client, cell, "skipped", str(skip))
            raise
        direct, proxied = client_programs.run_together(*commands)
        self.assert_done(client, direct)
        self.assertEqual(proxied, direct)
        self.assert_same_log(client, *names)
        versions = self.assert_same_versions(*names)
        table.note(client, cell, "same", versions=versions)

    def task(self, name, bootstrap):
        return {
            "name": name,
            "bootstrap": bootstrap,
            "partitions": PARTITIONS,
            "replication": min(self.nodes, 3),
            "records": RECORDS,
        }

    def assert_done(self, client, result):
        """The job is done, whole and right."""
        self.assertTrue(result["topic_listed"])
        read = collections.defaultdict(list)
        for partition, offset, key, value in result["read"]:
            self.assertEqual(value.split(" ")[:2], key.split("-"))
            read[partition].append((offset, key))
        expected = [f"plain-{i}" for i in range(RECORDS)]
        if client.has_transactions:
            series = SERIES if not client.fences_the_second else ("committed", "third")
            expected += [f"{name}-{i}" for name in series for i in range(30)]
            self.assertTrue(result["fenced"])
            self.assertEqual(result["transaction_offsets"], {"0": 7})
        self.assertEqual(result["groups"], ["-group", "-tx"] if client.has_transactions else ["-group"])
        self.assertEqual(sorted(key for rows in read.values() for _, key in rows), sorted(expected))
        for partition, rows in read.items():
            keys = [key for _, key in rows]
            self.assertEqual(keys, sorted(keys, key=expected.index), f"the order in partition {partition}")
            self.assertEqual(result["group_offsets"][str(partition)], rows[-1][0] + 1)

    def assert_same_log(self, client, direct_topic, proxied_topic):
        direct, proxied = (Summary(self, self.cluster, topic) for topic in (direct_topic, proxied_topic))
        self.assertEqual(proxied.partitions, direct.partitions)
        for summary in (direct, proxied):
            for producer_id in summary.producer_ids:
                if client.has_transactions:
                    self.assertIn(producer_id, range(LOCAL_LIMIT))
                else:
                    self.assertEqual(producer_id, -1)
        if client.has_transactions:
            self.assertTrue(set(direct.producer_ids).isdisjoint(proxied.producer_ids))

    def assert_same_versions(self, direct_id, proxied_id):
        """Where both have sent a kind of request at all: whether there is, say, a heartbeat, time decides."""
        direct, proxied = map(self.cluster.request_versions, (direct_id, proxied_id))
        common = direct.keys() & proxied.keys()
        self.assertIn("FETCH", common)
        self.assertEqual({api: proxied[api] for api in common}, {api: direct[api] for api in common})
        return direct


def _test_of(client):
    def test(self):
        self.run_client(client)

    test.__name__ = "test_" + "".join(c if c.isalnum() else "_" for c in client.title).lower()
    return test


def _class_of(version, nodes):
    name = f"OnKafka{version.replace('.', '')}With{nodes}Node{'s' if nodes > 1 else ''}"
    body = {"version": version, "nodes": nodes, "__module__": __name__}
    body.update((test.__name__, test) for test in map(_test_of, CLIENTS))
    return type(name, (Matrix, unittest.TestCase), body)


for _version, _nodes in BROKERS:
    _class = _class_of(_version, _nodes)
    globals()[_class.__name__] = _class
del _class

if __name__ == "__main__":
    unittest.main()
