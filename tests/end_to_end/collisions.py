"""What the tests of collisions share: the two clusters of one region, proxies with a state topic, and the judgement of
what is in the destination's log in the end."""

import collections
import contextlib
import json
import os
import subprocess

from tests.end_to_end import kafka, salted_load, topic_reader
from tests.end_to_end.topic_reader import CollisionKey, StateTopic, read_batches
from tests.support import mirrorpid
from tests.support.mapping import mapped, region_of
from tests.support.mirrorpid import Mirrorpid, Source

# Defaults of public container images; the halves in which they differ do not count for the region.
FIRST, SECOND = "4L6g3nShT-eMCtK--X86sw", "5L6g3nShT-eMCtK--X86sw"
REGION = region_of(FIRST)
assert region_of(SECOND) == REGION
PID_LIMIT = 1 << 31  # from here on the low 31 bits are another producer's
STATE_PARTITIONS = 8
CONFIGS = {"min.insync.replicas": 2, "retention.ms": -1}  # the batches' own timestamps are old
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
_SALT_ATTEMPTS = 64  # more are possible, and never needed here

IS_LONG = bool(os.environ.get("MIRRORPID_LONG"))
SEED = int(os.environ.get("MIRRORPID_SEED") or 1)  # of what the loads send and when something is killed


def check_built():
    """Fails before anything has been started where the program is missing."""
    if not os.access(mirrorpid.program(), os.X_OK):
        raise FileNotFoundError(f"{mirrorpid.program()} is not built: cmake --build --preset release")


def new_cluster():
    """Three nodes; node 1 is the controller, so the others may be killed."""
    return kafka.Cluster("4.4.0", nodes=3, extra={"broker.session.timeout.ms": 6000})


def sources(*cluster_ids, **extra):
    """Sources that are named as their clusters, in the order of the configuration."""
    return [Source(cluster_id, cluster_id, extra=dict(extra)) for cluster_id in cluster_ids]


class Proxy(Mirrorpid):
    """mirrorpid with a state topic."""

    def __init__(self, source_list, cluster, state_topic, **state):
        settings = {"topic": state_topic, "partitions": STATE_PARTITIONS, "replication_factor": 3, **state}
        super().__init__(source_list, cluster.bootstrap, extra={"state": settings})

    def start_and_kill(self, seconds):
        """Starts it again and kills it so soon that it may not be ready."""
        self.launch()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            raise AssertionError(f"mirrorpid ended by itself\n{self.process.log_tail()}")

    def command(self, *arguments):
        """Runs another command with the same configuration: (exit code, stdout, stderr)."""
        command = [mirrorpid.program(), *arguments, "--config", self.directory / "mirrorpid.yaml"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def state_list(self, *arguments):
        exit_code, out, err = self.command("state", "list", "--format", "json", *arguments)
        if exit_code:
            raise AssertionError(f"state list: exit code {exit_code}\n{out}\n{err}")
        return json.loads(out)


@contextlib.contextmanager
def started_together(*proxies):
    """Proxies that begin at the same moment, as replicas do that are deployed."""
    with contextlib.ExitStack() as stack:
        for proxy in proxies:
            stack.callback(proxy.close)
            proxy.launch(fresh_ports=True)
        for proxy in proxies:
            if not proxy.wait_started():
                raise RuntimeError(f"mirrorpid did not start\n{proxy.process.log_tail()}")
        yield
        for proxy in proxies:
            proxy.stop()


class Judgement:
    """The destination's log and the state topic, read once, and what must be true of them.

    `regions` are the sources' by cluster id. `test` is the test case whose assertions are used."""

    def __init__(self, test, cluster, topic, state_topic, regions, node=1):
        self.test = test
        self.cluster = cluster
        self.topic = topic
        self.regions = regions
        self.log = read_batches(cluster, topic, node)  # before the state: what it salts must be there by then
        self.state = StateTopic(cluster, state_topic, node)
        self.topic_id = topic_reader.text_of(cluster.metadata(topic, node)["topic_id"])
        self.said = []  # (identity, base sequence, batch), partition after partition
        for partition, batches in self.log.items():
            for batch in batches:
                identity, sequence = salted_load.identity_of(batch)
                test.assertEqual(identity.partition, partition, "a batch in another partition")
                self.said.append((identity, sequence, batch))

    def is_natural(self, identity):
        """Whether its natural slot is this identity's by rule: of the region's owner, below 2^31, and not -1."""
        region = self.regions[identity.cluster_id]
        owner = self.state.owner_of(region, self.state.log_partition_of(self.topic_id, identity.partition))
        is_own = owner == identity.cluster_id and identity.pid < PID_LIMIT
        return is_own and mapped(region, identity.pid) != -1

    def collision_key(self, identity):
        return CollisionKey(self.topic_id, identity.partition, identity.cluster_id, identity.pid)

    def history(self, identity):
        """For people: what the state topic says of it."""
        key = self.collision_key(identity)
        lines = [f"topic {self.topic_id}, log partition {self.state.log_partition_of(*key[:2])}"]
        for record in self.state.records:
            claimed = getattr(record.value, "source_cluster_id", None), getattr(record.value, "original_pid", None)
            if record.key == key or (record.key[:2] == key[:2] and claimed == key[2:]):
                lines.append(f"{record.log_partition}, {record.offset}: {record.key} {record.value}")
        return "\n".join(lines)

    def mapped_ids(self):
        """{identity: the mapped ids that its batches have, in order of appearance}"""
        ids = collections.defaultdict(list)
        for identity, _, batch in self.said:
            if batch.producer_id not in ids[identity]:
                ids[identity].append(batch.producer_id)
        return dict(ids)

    def salted(self):
        return {identity for identity in self.mapped_ids() if not self.is_natural(identity)}

    def assert_kept_apart(self):
        """One id an identity, one identity an id, and each is what the rules and the state topic say."""
        holders = {}
        for identity, ids in self.mapped_ids().items():
            if len(ids) != 1:
                self.test.fail(f"{identity} has the ids {ids}; {self.history(identity)}")
            slot = identity.partition, ids[0]
            self.test.assertEqual(holders.setdefault(slot, identity), identity, f"two share the id {ids[0]}")
            self.test.assertLess(ids[0], -1, f"{identity} in the log")
        self.assert_ids_are_in_the_topic()

    def assert_ids_are_in_the_topic(self):
        collisions = self.state.collisions()
        for identity, (mapped_id,) in self.mapped_ids().items():
            region = self.regions[identity.cluster_id]
            record = collisions.get(self.collision_key(identity))
            if self.is_natural(identity):
                self.test.assertEqual(mapped_id, mapped(region, identity.pid), identity)
                self.test.assertIsNone(record, f"{identity} is natural and has a record")
                continue
            self.test.assertIsNotNone(record, f"{identity} is salted, {mapped_id} is in the log, and no record says so")
            salt = record.value.salt
            self.test.assertNotEqual(salt, 0)
            self.test.assertEqual(mapped_id, mapped((region + salt) % (1 << 32), identity.pid), identity)
            self.test.assertEqual(record.log_partition, self.state.log_partition_of(*record.key[:2]))
            drawn = (topic_reader.drawn_salt(record.key_bytes, attempt) for attempt in range(_SALT_ATTEMPTS))
            self.test.assertTrue(any(salt == one for one in drawn), f"nobody draws {salt} for {identity}")
            owner = self.state.owner_of(region, record.log_partition)
            whose = owner if identity.pid < PID_LIMIT else identity.cluster_id
            self.test.assertEqual(record.value.colliding_cluster_id, whose, identity)

    def assert_no_slot_has_two_records(self):
        """Also of identities that never reached the log; and nobody was ever given another salt."""
        holders, salts = {}, {}
        for record in self.state.of(CollisionKey):
            key, value = record.key, record.value
            self.test.assertIsNotNone(value, f"{key} was deleted")
            region = (self.regions[key.source_cluster_id] + value.salt) % (1 << 32)
            slot = key.topic_id, key.partition, mapped(region, key.original_pid)
            self.test.assertEqual(holders.setdefault(slot, key), key, "two records for one slot")
            self.test.assertEqual(salts.setdefault(key, value.salt), value.salt, f"two salts of {key}")

    def assert_recorded_before_used(self):
        """Where Kafka keeps the time of append in both topics: the first record of a salted identity is not younger
        than its first batch."""
        recorded, used = {}, {}
        for record in self.state.of(CollisionKey):
            recorded.setdefault(record.key, record.time)
        for identity, _, batch in self.said:
            self.test.assertTrue(batch.has_append_time)
            used.setdefault(identity, batch.max_timestamp)
        for identity in self.salted():
            self.test.assertLessEqual(recorded[self.collision_key(identity)], used[identity], identity)

    def assert_delivered(self, *loads):
        """All that the loads sent is there, in each producer's order, and no more often than answers were lost."""
        copies = collections.Counter()
        order = collections.defaultdict(list)
        data = {}
        for identity, sequence, batch in self.said:
            copies[identity, sequence] += 1
            if copies[identity, sequence] == 1:
                order[identity].append(sequence)
            data[identity, sequence] = batch
        sent = {(batch.identity, batch.sequence): batch for load in loads for batch in load.acknowledged}
        self.test.assertEqual(len(sent), sum(len(load.acknowledged) for load in loads))
        self.test.assertEqual(set(copies) - set(sent), set(), "nobody sent it")
        self.test.assertEqual(set(sent) - set(copies), set(), "acknowledged and lost")
        for key, batch in sent.items():
            self.test.assertLessEqual(copies[key], 1 + batch.lost_answers, f"copies of {key}")
            self.assert_same_but_for_the_id(data[key], batch.data)
        for identity, sequences in order.items():
            self.test.assertEqual(sequences, sorted(sequences), f"the order of {identity}")

    def assert_same_but_for_the_id(self, stored, sent):
        self.test.assertEqual(stored.crc, stored.computed_crc())
        if stored.has_append_time:  # then the broker writes two fields anew
            self.test.assertEqual(stored.data[51:], sent[51:])
            return
        for first, last in ((8, 12), (16, 17), (21, 43), (51, None)):
            self.test.assertEqual(stored.data[first:last], sent[first:last], f"bytes {first} to {last}")

    def assert_all(self, *loads):
        self.assert_kept_apart()
        self.assert_no_slot_has_two_records()
        self.assert_delivered(*loads)
