"""Clusters whose producers meet under one mapped id, mirrored through mirrorpid into one topic of real Kafka: what the
destination's log and the state topic hold then. The state is on three brokers, as it is in production.

MIRRORPID_SEED=N chooses what is sent, and the other moments for the kills of test_collisions_faults.py.
"""

import collections
import unittest

from tests.end_to_end import collisions as support
from tests.end_to_end import salted_load, topic_reader
from tests.end_to_end.collisions import CONFIGS, FIRST, PID_LIMIT, REGION, SECOND, SEED, Judgement, Proxy, sources
from tests.end_to_end.salted_load import BY_ID, BY_NAME, NOT_ENOUGH_REPLICAS, OLD, Identity, Load
from tests.end_to_end.topic_reader import StateTopic
from tests.support import kafka_wire
from tests.support.mapping import mapped, region_of
from tests.support.process import wait_until

CLIENTS = (OLD, BY_NAME, BY_ID)
PARTITIONS = 3
LONE = "MkU3OEVBNTcwNTJENDM2Qg"  # a cluster that shares its region with nobody
REGIONS = {FIRST: REGION, SECOND: REGION, LONE: region_of(LONE)}
PIDS = (0, 1, 2, 1 + PID_LIMIT)

cluster = support.new_cluster()


def setUpModule():
    support.check_built()
    print(f"seed {SEED}")
    cluster.__enter__()
    unittest.addModuleCleanup(cluster.close)


def loads_of_every_client(cluster_id, topic, routes, pids=PIDS, batches=12, seed=SEED):
    """A load for each kind of client, each with producers of its own."""
    return [
        Load(cluster_id, topic, PARTITIONS, routes, seed=seed, client=client, batches=batches, share_of_new=1,
             pids=[pid + number * 100 for pid in pids]).start()
        for number, client in enumerate(CLIENTS)
    ]  # fmt: skip


def finish(loads):
    for load in loads:
        load.finish()


class Collisions(unittest.TestCase):
    def setUp(self):
        self.name = self.id().rpartition(".test_")[2][:60]
        self.topic = f"mirrored-{self.name}"
        self.state_topic = f"state-{self.name}"
        cluster.create_topic(self.topic, PARTITIONS, CONFIGS, replication_factor=3)

    def proxy(self, *cluster_ids, **extra):
        return Proxy(sources(*cluster_ids, **extra), cluster, self.state_topic)

    def judge(self, regions=None):
        return Judgement(self, cluster, self.topic, self.state_topic, regions or REGIONS)

    def state(self):
        return StateTopic(cluster, self.state_topic)

    def connect_to_leader(self, proxy, cluster_id, partition):
        leader = cluster.leaders(self.topic)[partition]
        return kafka_wire.Connection(*proxy.node_address(cluster_id, leader))

    def send(self, proxy, cluster_id, batches, client=BY_NAME):
        """Sends batches {partition: bytes} once, all to the node that leads them: {partition: error}."""
        (partition,) = batches
        topic_id = cluster.metadata(self.topic)["topic_id"]
        with self.connect_to_leader(proxy, cluster_id, partition) as connection:
            return salted_load.produce(connection, client, self.topic, topic_id, batches)

    def send_until_acknowledged(self, proxy, identity, sequence=0):
        """The errors that came before."""
        data = salted_load.build_batch(*identity, sequence)
        errors = []

        def is_through():
            error = self.send(proxy, identity.cluster_id, {identity.partition: data})[identity.partition]
            if error:
                errors.append(error)
            return error == 0

        wait_until(is_through, 120, f"{identity} to be acknowledged")
        return errors

    def test_two_clusters_of_one_region_never_share_an_id_in_the_log(self):
        with self.proxy(FIRST, SECOND) as proxy:
            loads = [
                load
                for cluster_id in (FIRST, SECOND)
                for load in loads_of_every_client(cluster_id, self.topic, [proxy])
            ]
            finish(loads)
            log = proxy.log()
        judged = self.judge()
        judged.assert_all(*loads)
        self.assertEqual(len(judged.mapped_ids()), 2 * len(CLIENTS) * len(PIDS) * PARTITIONS)
        # One of the two keeps its ids but for those past 31 bits; the other one keeps none.
        owners = {judged.state.owner_of(REGION, partition) for partition in range(support.STATE_PARTITIONS)}
        self.assertEqual(len(owners), 1)
        (warning,) = [line for line in log.splitlines() if "sources share a region" in line]
        (salted,) = {FIRST, SECOND} - owners
        self.assertRegex(warning, f"owner=.*{owners.pop()}.* salted=.*{salted}")
        owners = {judged.state.owner_of(REGION, 0)}
        natural = set(judged.mapped_ids()) - judged.salted()
        self.assertEqual(len(natural), len(CLIENTS) * (len(PIDS) - 1) * PARTITIONS)
        self.assertEqual({identity.cluster_id for identity in natural}, owners)
        for dump in cluster.dump_logs([(self.topic, partition, 1) for partition in range(PARTITIONS)]).values():
            self.assertEqual({row["isvalid"] for row in dump}, {True})

    def test_the_first_batch_of_a_salted_producer_is_acknowledged_when_its_record_is_in_the_topic_and_not_before(self):
        with self.proxy(FIRST, SECOND) as proxy:
            for pid, client in enumerate(CLIENTS):
                identity = Identity(SECOND, pid, 0)
                with self.subTest(client=client):
                    before = self.judge()
                    self.assertNotIn(before.collision_key(identity), before.state.collisions())
                    errors = self.send_until_acknowledged(proxy, identity)
                    self.assertEqual(set(errors), {NOT_ENOUGH_REPLICAS})
                    judged = self.judge()
                    self.assertIn(judged.collision_key(identity), judged.state.collisions())
                    judged.assert_kept_apart()
        self.assertEqual(len(self.judge().state.of(topic_reader.ClaimKey)), len(CLIENTS))

    def test_a_producer_with_many_requests_in_flight_keeps_its_order_while_it_waits_for_its_salt(self):
        """As an idempotent client does it: what was told to come again is sent again, in order."""
        topic_id = cluster.metadata(self.topic)["topic_id"]
        with self.proxy(FIRST, SECOND) as proxy:
            for number, client in enumerate(CLIENTS * 4):
                connection = self.enterContext(self.connect_to_leader(proxy, SECOND, 0))
                left = list(range(20))
                while left:
                    for sequence in left:
                        data = salted_load.build_batch(SECOND, number, 0, sequence)
                        salted_load.send_produce(connection, client, self.topic, topic_id, {0: data})
                    errors = {}
                    for sequence in left:
                        (row,) = connection.receive()["responses"][0]["partition_responses"]
                        errors[sequence] = row["error_code"]
                    self.assertLessEqual(set(errors.values()), {0, NOT_ENOUGH_REPLICAS})
                    left = [sequence for sequence, error in errors.items() if error]
        order = collections.defaultdict(list)
        for identity, sequence, _ in self.judge().said:
            order[identity].append(sequence)
        self.assertEqual(len(order), 4 * len(CLIENTS))
        for identity, sequences in order.items():
            self.assertEqual(sequences, list(range(20)), identity)

    def test_batches_that_nobody_answers_get_their_salts_too(self):
        topic_id = cluster.metadata(self.topic)["topic_id"]
        with self.proxy(FIRST, SECOND) as proxy:
            for number, client in enumerate(CLIENTS):
                connection = self.enterContext(self.connect_to_leader(proxy, SECOND, 0))
                for sequence in range(20):
                    data = salted_load.build_batch(SECOND, number, 0, sequence)
                    salted_load.send_produce(connection, client, self.topic, topic_id, {0: data}, acks=0)
                connection.call("ApiVersions", 0)  # by now all of them are through
        judged = self.judge()
        judged.assert_kept_apart()
        self.assertEqual(
            [(identity.pid, sequence) for identity, sequence, _ in judged.said],
            [(number, sequence) for number in range(len(CLIENTS)) for sequence in range(20)],
        )

    def test_one_cluster_s_pid_and_the_pid_2_31_above_it_are_two_producers(self):
        with self.proxy(LONE) as proxy:
            for pid in (5, 5 + PID_LIMIT, 5 + 2 * PID_LIMIT, 7 + PID_LIMIT, 7):
                self.send_until_acknowledged(proxy, Identity(LONE, pid, 0))
        judged = self.judge()
        judged.assert_kept_apart()
        judged.assert_no_slot_has_two_records()
        natural = {identity.pid for identity in judged.mapped_ids()} - {identity.pid for identity in judged.salted()}
        self.assertEqual(natural, {5, 7})

    def test_the_producer_whose_natural_id_would_be_minus_1_is_salted(self):
        with self.proxy(LONE, region=0xFFFFFFFF) as proxy:
            for pid in (PID_LIMIT - 2, PID_LIMIT - 1):
                self.send_until_acknowledged(proxy, Identity(LONE, pid, 0))
        judged = self.judge({LONE: 0xFFFFFFFF})
        judged.assert_kept_apart()
        self.assertEqual(judged.salted(), {Identity(LONE, PID_LIMIT - 1, 0)})

    def test_sources_that_share_no_region_write_their_registrations_once_and_nothing_else(self):
        records = []
        for _ in range(2):
            with self.proxy(FIRST, LONE) as proxy:
                pids = (0, 1, 2)
                loads = [
                    load
                    for cluster_id in (FIRST, LONE)
                    for load in loads_of_every_client(cluster_id, self.topic, [proxy], pids, batches=4)
                ]
                finish(loads)
            state = self.state()
            self.assertEqual(len(state.records), 2 * support.STATE_PARTITIONS)
            registered = [
                (record.log_partition, record.key.region, record.key.source_cluster_id, record.value.partitions)
                for record in state.of(topic_reader.RegistrationKey)
            ]
            records.append(sorted(registered))
        expected = [
            (partition, REGIONS[cluster_id], cluster_id, support.STATE_PARTITIONS)
            for partition in range(support.STATE_PARTITIONS)
            for cluster_id in (FIRST, LONE)
        ]
        self.assertEqual(records, [sorted(expected)] * 2)
        self.judge().assert_kept_apart()

    def test_no_slot_changes_hands_when_sources_and_traffic_come_in_the_other_order_after_a_restart(self):
        loads = []
        for seed, order in enumerate(((FIRST, SECOND), (SECOND, FIRST))):
            with self.proxy(*order) as proxy:
                for cluster_id in order:
                    loads += loads_of_every_client(cluster_id, self.topic, [proxy], seed=seed)
                    finish(loads)
        judged = self.judge()
        judged.assert_kept_apart()
        judged.assert_no_slot_has_two_records()
        first_copies = [sequence for _, sequence, _ in judged.said if sequence == 0]
        self.assertGreaterEqual(len(first_copies), 2 * len(judged.mapped_ids()) * 9 // 10)  # both runs were there

    def test_state_list_tells_what_is_in_the_topic(self):
        with self.proxy(FIRST, SECOND, LONE) as proxy:
            salted = [Identity(SECOND, 3, 0), Identity(SECOND, 3, 1), Identity(FIRST, 4 + PID_LIMIT, 2)]
            for identity in (*salted, Identity(FIRST, 3, 0), Identity(LONE, 3, 0)):
                self.send_until_acknowledged(proxy, identity)
            listed = proxy.state_list()
            of_second = proxy.state_list("--source", SECOND)
        state = self.state()
        expected = [
            {
                "cluster_id": key.source_cluster_id,
                "topic_id": key.topic_id,
                "partition": key.partition,
                "pid": str(key.original_pid),
                "salt": str(value.salt),
                "region": (REGION + value.salt) % (1 << 32),
                "mapped": str(mapped((REGION + value.salt) % (1 << 32), key.original_pid)),
                "colliding_cluster_id": value.colliding_cluster_id,
                "timestamp_ms": value.timestamp_ms,
            }
            for key, value in ((record.key, record.value) for record in state.collisions().values())
        ]
        self.assertEqual(len(expected), len(salted))
        self.assertCountEqual([{name: row[name] for name in expected[0]} for row in listed["assignments"]], expected)
        self.assertEqual({row["cluster_id"] for row in of_second["assignments"]}, {SECOND})
        self.assertEqual(len(of_second["assignments"]), 2)

        regions = {row["region"]: row for row in listed["regions"]}
        self.assertEqual(set(regions), {REGION, REGIONS[LONE]})
        owners = [state.owner_of(REGION, partition) for partition in range(support.STATE_PARTITIONS)]
        self.assertEqual(
            {row["cluster_id"]: row["log_partitions"] for row in regions[REGION]["owners"]},
            {owner: owners.count(owner) for owner in owners},
        )
        self.assertEqual([row["cluster_id"] for row in regions[REGIONS[LONE]]["owners"]], [LONE])
        self.assertEqual(regions[REGIONS[LONE]]["salted"], [])

    def test_two_proxies_that_start_at_the_same_moment_on_no_topic_agree(self):
        one, other = self.proxy(FIRST, SECOND), self.proxy(SECOND, FIRST)
        loads = []
        with support.started_together(one, other):
            for cluster_id in (FIRST, SECOND):
                loads += loads_of_every_client(cluster_id, self.topic, [one, other])
            finish(loads)
        self.judge().assert_all(*loads)

    def test_a_topic_that_is_deleted_and_created_again_is_a_new_topic(self):
        with self.proxy(FIRST, SECOND) as proxy:
            loads = [
                Load(cluster_id, self.topic, PARTITIONS, [proxy], seed=SEED, client=client,
                     pids=[pid + number * 100 for pid in PIDS])
                for cluster_id in (FIRST, SECOND)
                for number, client in enumerate(CLIENTS)
            ]  # fmt: skip
            for load in loads:
                self.addCleanup(load.abandon)
                load.start()
            for load in loads:
                load.wait_for(lambda: len(load.acknowledged) >= 20)
            before = self.judge()
            before.assert_kept_apart()
            with cluster.connect() as connection:
                answer = connection.call("DeleteTopics", 5, {"topic_names": [self.topic]})
            self.assertEqual([row["error_code"] for row in answer["responses"]], [0])
            wait_until(lambda: cluster.metadata(self.topic)["error_code"] == 3, 60, "the topic to go")
            cluster.create_topic(self.topic, PARTITIONS, CONFIGS, replication_factor=3)
            for load in loads:
                count = len(load.acknowledged)
                load.wait_for(lambda: len(load.acknowledged) >= count + 20)
            for load in loads:
                load.stop()
        after = self.judge()
        self.assertNotEqual(after.topic_id, before.topic_id)
        after.assert_kept_apart()
        after.assert_no_slot_has_two_records()
        keys = {record.key.topic_id for record in after.state.of(topic_reader.CollisionKey)}
        self.assertEqual(keys, {before.topic_id, after.topic_id})


if __name__ == "__main__":
    unittest.main()
