"""Producers under load while something restarts: ordinary idempotent ones of Kafka's own client and of librdkafka, and a
mirror's with and without salts. Nothing is lost, nothing that a broker can tell apart is doubled, order is kept, and
nobody's id changes.

The restart of all brokers takes minutes, so it runs with MIRRORPID_LONG=1 only."""

import time
import unittest

from tests.end_to_end import kafka
from tests.end_to_end.collisions import CONFIGS, FIRST, IS_LONG, REGION, SECOND, SEED, Judgement, Proxy, sources
from tests.end_to_end.collisions import check_built
from tests.end_to_end.producer_load import JavaLoad, LibrdkafkaLoad
from tests.end_to_end.programs import endpoint
from tests.end_to_end.salted_load import BY_ID, OLD, Load
from tests.support.process import wait_until

PARTITIONS = 3
VERSIONS = ("4.4.0", "3.9.2") if IS_LONG else ("4.4.0",)
KILLS = 6 if IS_LONG else 3
RECORDS = 60_000 if IS_LONG else 30_000
JAVA_RATE = 4000  # records a second
NEVER_ENDING = 10_000_000
SECONDS_DOWN = 0.5


def setUpModule():
    check_built()


class ProxyIsKilled:
    version = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(kafka.Cluster(cls.version))

    def kill_under(self, start_load):
        source = sources(FIRST)[0]
        with Proxy([source], self.cluster, f"state-{self.id()[-20:]}", replication_factor=1) as proxy:
            load = start_load(proxy.address(FIRST))
            self.addCleanup(load.process.kill)
            for kill in range(KILLS):
                wait_until(lambda: load.is_past((kill + 0.5) / (KILLS + 1)), 180, f"the load to reach kill {kill}")
                proxy.kill()
                time.sleep(SECONDS_DOWN * (kill % 2))  # so that connections are also refused
                proxy.start()
            load.finish()
            load.assert_exactly_once(self)

    def test_kafka_s_own_producer_delivers_exactly_once_and_in_order(self):
        self.cluster.create_topic("java", PARTITIONS)
        self.kill_under(lambda address: JavaLoad(self.cluster, endpoint(address), "java", RECORDS, JAVA_RATE))

    def test_librdkafka_delivers_exactly_once_and_in_order(self):
        self.cluster.create_topic("librdkafka", PARTITIONS)
        self.kill_under(lambda address: LibrdkafkaLoad(self.cluster, address, "librdkafka", RECORDS, PARTITIONS, 10_000))


class BrokersRestart:
    version = None

    @classmethod
    def setUpClass(cls):
        extra = {"broker.session.timeout.ms": 6000, "transaction.state.log.min.isr": 2}
        cls.cluster = cls.enterClassContext(kafka.Cluster(cls.version, nodes=3, controllers=3, extra=extra))

    def start_mirrors(self, proxy):
        """Two sources that share a region, so one of them is salted."""
        loads = []
        for cluster_id, client in ((FIRST, BY_ID if self.version >= "4.1" else OLD), (SECOND, OLD)):
            load = Load(cluster_id, "mirrored", PARTITIONS, [proxy], seed=SEED, client=client)
            self.addCleanup(load.abandon)
            loads.append(load.start())
        return loads

    def restart_each(self, loads):
        for node in (2, 3, 1):
            self.wait_for_more(loads)
            leaders = self.cluster.leaders("mirrored")
            self.cluster.stop(node)
            self.wait_for_more(loads)
            self.assertNotIn(node, self.leaders_of_others(node))
            self.assertIn(node, leaders.values(), "no leader moved")
            self.cluster.start(node)
            wait_until(lambda: self.is_whole(node), 180, f"node {node} to follow again")
            self.elect_preferred_leaders()

    def leaders_of_others(self, node):
        other = next(n for n in self.cluster.nodes if n != node)
        return {p["leader_id"] for p in self.cluster.metadata("mirrored", other)["partitions"]}

    def is_whole(self, node):
        topics = ("mirrored", "java", "librdkafka")
        rows = [row for topic in topics for row in self.cluster.metadata(topic)["partitions"]]
        return all(len(row["isr_nodes"]) == 3 for row in rows)

    def elect_preferred_leaders(self):
        options = ("--election-type", "preferred", "--all-topic-partitions")
        self.cluster.tool("LeaderElectionCommand", "--bootstrap-server", self.cluster.bootstrap[0], *options)
        wait_until(lambda: len(set(self.cluster.leaders("mirrored").values())) == 3, 60, "the leaders to move back")

    def wait_for_more(self, loads):
        for load in loads:
            goal = len(load.acknowledged) + 20
            load.wait_for(lambda: len(load.acknowledged) >= goal)

    def test_nothing_is_lost_or_doubled_and_every_identity_keeps_its_id_while_leaders_move(self):
        for topic in ("mirrored", "java", "librdkafka"):
            self.cluster.create_topic(topic, PARTITIONS, CONFIGS, leaders=[1, 2, 3], replication_factor=3)
        with Proxy(sources(FIRST, SECOND), self.cluster, "__mirror_state") as proxy:
            address = proxy.address(FIRST)
            mirrors = self.start_mirrors(proxy)
            java = JavaLoad(self.cluster, endpoint(address), "java", NEVER_ENDING, JAVA_RATE // 5)
            librdkafka = LibrdkafkaLoad(self.cluster, address, "librdkafka", NEVER_ENDING, PARTITIONS, 1000)
            for load in (java, librdkafka):
                self.addCleanup(load.process.kill)
                wait_until(lambda: load.is_past(0), 120, "the load to begin")
            self.restart_each(mirrors)
            for load in (*mirrors, java, librdkafka):
                load.stop()
            java.assert_exactly_once(self)
            librdkafka.assert_exactly_once(self)
        judged = Judgement(self, self.cluster, "mirrored", "__mirror_state", {FIRST: REGION, SECOND: REGION})
        judged.assert_all(*mirrors)
        self.assertGreater(len(judged.salted()), 5)


def _add_classes():
    for version in VERSIONS:
        for cases in (ProxyIsKilled, BrokersRestart) if IS_LONG else (ProxyIsKilled,):
            name = f"{cases.__name__}OnKafka{version.replace('.', '')}"
            globals()[name] = type(name, (cases, unittest.TestCase), {"version": version, "__module__": __name__})


_add_classes()

if __name__ == "__main__":
    unittest.main()
