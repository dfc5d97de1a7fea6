"""Collisions while something dies: proxies killed at any moment, two of them at once, and the brokers of the state
topic. Whatever happens, no two producers share an id in the destination's log, each keeps its own from its first batch
to its last, and nothing is salted that the state topic does not say.

With MIRRORPID_LONG=1 there are 50 kills, else 5. MIRRORPID_SEED=N chooses other moments.
"""

import random
import time
import unittest

from tests.end_to_end import collisions, salted_load, topic_reader
from tests.end_to_end.collisions import CONFIGS, FIRST, IS_LONG, PID_LIMIT, REGION, SECOND, SEED
from tests.end_to_end.collisions import Judgement, Proxy, sources
from tests.end_to_end.salted_load import BY_ID, BY_NAME, NOT_ENOUGH_REPLICAS, OLD, Identity, Load
from tests.end_to_end.topic_reader import StateTopic
from tests.support import kafka_wire
from tests.support.process import wait_until

KILLS = 50 if IS_LONG else 5
PARTITIONS = 3
REGIONS = {FIRST: REGION, SECOND: REGION}
COMPACTED = {"cleanup.policy": "compact", "delete.retention.ms": 2 * 86_400_000}
LAST_MOMENT = 0.05  # seconds: a kill comes up to so much later than what it waits for

cluster = collisions.new_cluster()


def setUpModule():
    collisions.check_built()
    print(f"seed {SEED}, {KILLS} kills")
    cluster.__enter__()
    unittest.addModuleCleanup(cluster.close)


class Faults(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")
        self.name = self.id().rpartition(".test_")[2][:60]
        self.topic = f"mirrored-{self.name}"
        self.state_topic = f"state-{self.name}"

    def create_topics(self, timed=True):
        """Timed: both topics keep the time of each append."""
        times = collisions.APPEND_TIME if timed else {}
        cluster.create_topic(self.topic, PARTITIONS, {**CONFIGS, **times}, replication_factor=3)
        if timed:
            configs = {**times, **COMPACTED, "min.insync.replicas": 2}
            cluster.create_topic(self.state_topic, collisions.STATE_PARTITIONS, configs, replication_factor=3)

    def proxy(self):
        return Proxy(sources(FIRST, SECOND), cluster, self.state_topic, write_timeout="3s")

    def start_loads(self, proxies):
        """Two loads of each source, all with producers past 31 bits among theirs; each has its own."""
        loads = []
        for cluster_id in (FIRST, SECOND):
            for number, client in enumerate((OLD, BY_ID)):
                def pids(number=number):
                    return (pid * 2 + number for pid in salted_load.numbered_pids())

                load = Load(cluster_id, self.topic, PARTITIONS, proxies, seed=SEED, client=client,
                            pids=pids)  # fmt: skip
                self.addCleanup(load.abandon)
                loads.append(load.start())
        return loads

    def wait_for_a_moment(self, loads):
        """Returns when one of the loads has gone on for a while, or has just been refused."""
        load = self.random.choice(loads)
        if self.random.random() < 0.5:
            goal = len(load.acknowledged) + self.random.randint(1, 60)
            load.wait_for(lambda: len(load.acknowledged) >= goal)
        else:
            goal = load.refusals + self.random.randint(1, 20)
            load.wait_for(lambda: load.refusals >= goal)
        time.sleep(self.random.uniform(0, LAST_MOMENT))

    def wait_for_more(self, loads, count=15):
        """Until each load has gone on, and each that is salted with producers that are new."""
        for load in loads:
            acknowledged, identities = len(load.acknowledged), len(load.identities)
            load.wait_for(lambda: len(load.acknowledged) >= acknowledged + count)
            load.wait_for(lambda: len(load.identities) > identities)

    def stop(self, loads):
        for load in loads:
            load.stop()

    def judge(self, node=1):
        return Judgement(self, cluster, self.topic, self.state_topic, REGIONS, node)

    def judge_killed(self, loads):
        judged = self.judge()
        print(f"{len(judged.said)} batches of {len(judged.mapped_ids())} producers, {len(judged.salted())} salted")
        judged.assert_all(*loads)
        judged.assert_recorded_before_used()
        self.assertGreater(len(judged.salted()), 20)
        self.assertGreater(sum(load.refusals for load in loads), 20)
        return judged

    def test_a_proxy_that_is_killed_at_any_moment_gives_every_producer_the_id_that_it_had(self):
        self.create_topics()
        with self.proxy() as proxy:
            loads = self.start_loads([proxy])
            for _ in range(KILLS):
                self.wait_for_a_moment(loads)
                proxy.kill()
                if self.random.random() < 0.4:
                    proxy.start_and_kill(self.random.uniform(0, 1))
                proxy.start()
            self.wait_for_more(loads)
            self.stop(loads)
        self.judge_killed(loads)

    def test_two_proxies_between_which_the_sources_change_agree_also_when_they_are_killed(self):
        self.create_topics()
        with self.proxy() as one, self.proxy() as other:
            loads = self.start_loads([one, other])
            for _ in range(KILLS):
                self.wait_for_a_moment(loads)
                proxy = self.random.choice([one, other])
                proxy.kill()
                if self.random.random() < 0.5:
                    self.wait_for_a_moment(loads)  # the other one is alone for a while
                proxy.start()
            self.wait_for_more(loads)
            self.stop(loads)
        self.judge_killed(loads)

    def test_the_leader_of_the_state_topic_is_killed_while_salts_are_claimed(self):
        self.create_topics(timed=False)
        with self.proxy() as proxy:
            loads = self.start_loads([proxy])
            self.wait_for_more(loads)
            # Node 1 is the controller, too. Partitions 0 to 2 of the mirrored topic are claimed for in these:
            state = StateTopic(cluster, self.state_topic)
            topic_id = topic_reader.text_of(cluster.metadata(self.topic)["topic_id"])
            asked = {state.log_partition_of(topic_id, partition) for partition in range(PARTITIONS)}
            leaders = [node for partition, node in cluster.leaders(self.state_topic).items() if partition in asked]
            victim = max((2, 3), key=leaders.count)
            self.wait_for_a_moment(loads)
            cluster.kill(victim)
            refusals = sum(load.refusals for load in loads)
            try:
                self.wait_for_more(loads)
                self.assertGreater(sum(load.refusals for load in loads), refusals)
            finally:
                cluster.start(victim)
            self.wait_for_more(loads)
            self.stop(loads)
        self.judge().assert_all(*loads)

    # --- A state topic that cannot be written ---

    def send(self, connection, batches, client=BY_NAME):
        topic_id = cluster.metadata(self.topic)["topic_id"]
        return salted_load.produce(connection, client, self.topic, topic_id, batches)

    def test_a_state_topic_that_cannot_be_written_holds_back_the_batches_that_need_it_and_no_others(self):
        cluster.create_topic(self.topic, 2, CONFIGS, leaders=[1, 1], replication_factor=3)
        configs = {**COMPACTED, "min.insync.replicas": 3}
        cluster.create_topic(self.state_topic, collisions.STATE_PARTITIONS, configs, replication_factor=3)
        with self.proxy() as proxy:
            self.hold_back(proxy)
        judged = self.judge()
        judged.assert_kept_apart()
        judged.assert_no_slot_has_two_records()
        copies = [sequence for identity, sequence, _ in judged.said if identity == Identity(SECOND, 2, 0)]
        self.assertEqual(copies, [0])

    def hold_back(self, proxy):
        addresses = (proxy.node_address(cluster_id, 1) for cluster_id in (FIRST, SECOND))
        owner, other = (self.enterContext(kafka_wire.Connection(*address)) for address in addresses)

        def batch(cluster_id, pid, partition, sequence=0):
            return {partition: salted_load.build_batch(cluster_id, pid, partition, sequence)}

        def is_through(connection, batches):
            return set(self.send(connection, batches).values()) == {0}

        known = [batch(SECOND, 1, partition) for partition in (0, 1)]
        wait_until(lambda: is_through(other, known[0]) and is_through(other, known[1]), 60, "a salt for each partition")
        cluster.kill(3)
        try:
            wait_until(self.lacks_a_replica, 60, "the state topic to lack a replica")
            new = batch(SECOND, 2, 0)
            mixed = {**new, **batch(SECOND, 1, 1, 1)}
            # By now the proxy wants to hear the topic's id anew, and holds back all that goes there by name until then.
            answers = []
            wait_until(lambda: answers.append(self.send(other, mixed)) or answers[-1][1] == 0, 60, "the salted batch")
            self.assertEqual({answer[0] for answer in answers}, {NOT_ENOUGH_REPLICAS})
            # Also when a write has failed for good, and not only while one is under way.
            wait_until(lambda: "the state topic cannot be written" in proxy.log(), 60, "a write to fail")
            for sequence, client in enumerate((OLD, BY_NAME, BY_ID)):
                with self.subTest(client=client):
                    self.assertEqual(self.send(other, new, client), {0: NOT_ENOUGH_REPLICAS})
                    natural = {**batch(FIRST, 1, 0, sequence), **batch(FIRST, 2, 1, sequence)}
                    self.assertEqual(self.send(owner, natural, client), {0: 0, 1: 0})
                    self.assertEqual(self.send(other, batch(SECOND, 1, 1, 2 + sequence), client), {1: 0})
            state = StateTopic(cluster, self.state_topic)
            self.assertNotIn(2, [record.key.original_pid for record in state.of(topic_reader.CollisionKey)])
        finally:
            cluster.start(3)
        wait_until(lambda: is_through(other, new), 120, "the batch that was held back to get through")

    def lacks_a_replica(self):
        partitions = cluster.metadata(self.state_topic)["partitions"]
        return all(3 not in partition["isr_nodes"] and partition["leader_id"] > 0 for partition in partitions)


if __name__ == "__main__":
    unittest.main()
