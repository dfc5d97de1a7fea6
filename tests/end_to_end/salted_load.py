"""A mirror tool in a few lines: idempotent batches that no real producer wrote, through mirrorpid as raw Produce
requests.

A load is one source cluster with many producers. In each partition it has one batch in hand, and sends that one until
it is acknowledged: again after a retriable error, and again over a new connection where the answer was lost, so a batch
may be there twice then, as it may be without mirrorpid. Every record says who wrote it: see `identity_of`.
"""

import collections
import itertools
import random
import threading
import time

from tests.support import kafka_batch, kafka_wire

NOT_ENOUGH_REPLICAS = 19
# Answers after which a client sends the same again, with fresh metadata where it is about the leader.
_RETRIABLE = {3, 5, 6, 7, 13, 19, 20, 56, 100}
_ABOUT_THE_LEADER = {3, 5, 6, 13, 56, 100}
_MAYBE_APPENDED = {6, 7, 20}  # 6 too: the leader may have appended it, and ceased to lead while it waited for replicas
_BATCH_TIMEOUT = 180  # seconds; only a failure lasts that long
_PAUSE = 0.02  # before a batch is sent again
_FIRST_ID_VERSION = 13  # of Produce
_ANSWER_TIMEOUT = 60  # seconds

# What a client speaks. Metadata 9 knows no topic ids.
Client = collections.namedtuple("Client", "metadata produce")
OLD = Client(9, 9)
BY_NAME = Client(12, 9)
BY_ID = Client(12, 13)

Identity = collections.namedtuple("Identity", "cluster_id pid partition")


def identity_of(batch):
    """(Identity, base sequence) as the payload of a batch says; all of its records must agree."""
    said = {tuple(record.value.split(b" ")[:4]) for record in batch.read_records()}
    if len(said) != 1:
        raise AssertionError(f"a batch of {said}")
    cluster_id, pid, partition, sequence = said.pop()
    return Identity(cluster_id.decode(), int(pid), int(partition)), int(sequence)


def build_batch(cluster_id, pid, partition, sequence, count=1):
    """A batch of a producer; its first record has the number `sequence`."""
    name = f"{cluster_id} {pid} {partition} {sequence}"
    records = [(None, f"{name} record {index}".encode()) for index in range(count)]
    return kafka_batch.build(records, producer_id=pid, producer_epoch=0, base_sequence=sequence)


def send_produce(connection, client, topic, topic_id, batches, acks=-1):
    rows = [{"index": partition, "records": data} for partition, data in batches.items()]
    entry = {"partition_data": rows}
    entry |= {"topic_id": topic_id} if client.produce >= _FIRST_ID_VERSION else {"name": topic}
    connection.send("Produce", client.produce, {"acks": acks, "timeout_ms": 20_000, "topic_data": [entry]})


def produce(connection, client, topic, topic_id, batches):
    """`batches`: {partition: bytes}; {partition: error code}."""
    send_produce(connection, client, topic, topic_id, batches)
    answer = connection.receive()
    return {row["index"]: row["error_code"] for row in answer["responses"][0]["partition_responses"]}


def numbered_pids():
    """0, 2^31, 1, 2^31 + 1, ...: of each two, the second has the natural slot of the first."""
    for pid in itertools.count():
        yield pid
        yield pid + (1 << 31)


class _Batch:
    def __init__(self, identity, sequence, data):
        self.identity = identity
        self.sequence = sequence
        self.data = data
        self.first_sent = None
        self.not_before = 0.0
        self.lost_answers = 0  # each may have left a copy


class _Lane:
    """One partition of a load: its producers, and the batch in hand."""

    def __init__(self, load, partition):
        self.partition = partition
        self.hand = None
        self._load = load
        self._random = random.Random(f"{load.seed} {partition}")
        self._fresh = iter(load.pids()) if callable(load.pids) else iter(load.pids)
        self._sequences = {}  # by pid
        self._left = load.batches

    def fill(self):
        if self.hand is None and self._left > 0:
            self._left -= 1
            pid = self._next_pid()
            sequence = self._sequences[pid]
            count = self._random.randint(1, 3)
            self._sequences[pid] += count
            identity = Identity(self._load.cluster_id, pid, self.partition)
            self.hand = _Batch(identity, sequence, build_batch(*identity, sequence, count))

    def _next_pid(self):
        """A new producer, or one of those that there are: none is ever done, so that all see what happens meanwhile."""
        if not self._sequences or self._random.random() < self._load.share_of_new:
            pid = next(self._fresh, None)
            if pid is not None:
                self._sequences[pid] = 0
                return pid
        return self._random.choice(list(self._sequences))


class Load:
    """Sends on a thread of its own, until it is stopped or has sent `batches` in each partition.

    `routes` are proxies (Mirrorpid) with a source that is named as the cluster: each connection goes through one of
    them, chosen by the seed, and where there are several a load changes often. `pids` is a list, or a function whose
    numbers never end."""

    def __init__(
        self,
        cluster_id,
        topic,
        partitions,
        routes,
        *,
        seed,
        client=BY_NAME,
        pids=numbered_pids,
        batches=float("inf"),
        share_of_new=0.2,
    ):
        self.cluster_id = cluster_id
        self.topic = topic
        self.client = client
        self.routes = list(routes)
        self.seed = f"{seed} {cluster_id} {client}"
        self.pids = pids
        self.batches = batches
        self.share_of_new = share_of_new
        self.acknowledged = []  # _Batch, in the order of their answers
        self.identities = set()  # those with a batch acknowledged
        self.refusals = 0  # answers 19
        self._lanes = [_Lane(self, partition) for partition in range(partitions)]
        self._random = random.Random(self.seed)
        self._connections = {}  # by node; None: the one that is asked for metadata
        self._leaders = None
        self._topic_id = None
        self._stopping = False
        self._failure = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # --- The test's side ---

    def start(self):
        self._thread.start()
        return self

    def wait_for(self, condition, seconds=_BATCH_TIMEOUT):
        """Waits until `condition()`, which is looked at after every answer; raises what the load failed with."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._failure or condition(), seconds):
                raise TimeoutError(f"load {self.seed}: {len(self.acknowledged)} acknowledged, {self.refusals} refused")
        if self._failure:
            raise self._failure

    def finish(self):
        """Waits until all is acknowledged that it has to send."""
        self._thread.join(_BATCH_TIMEOUT * 2)
        if self._failure:
            raise self._failure
        if self._thread.is_alive():
            raise TimeoutError(f"load {self.seed} does not end")

    def stop(self):
        """Lets it send what it has in hand, and no more."""
        self._stopping = True
        self.finish()

    def abandon(self):
        """Ends it where it is; for cleaning up."""
        self._failure = self._failure or RuntimeError(f"load {self.seed} was abandoned")
        if self._thread.is_alive():
            self._thread.join()

    # --- The thread's side ---

    def _run(self):
        try:
            while not self._failure and self._send_round():
                pass
        except Exception as error:  # noqa: it is raised where the test waits
            self._failure = self._failure or error
        finally:
            for node in list(self._connections):
                self._drop(node)
            with self._changed:
                self._changed.notify_all()

    def _send_round(self):
        """False when there is nothing more to send."""
        if not self._stopping:
            for lane in self._lanes:
                lane.fill()
        waiting = [lane for lane in self._lanes if lane.hand]
        if not waiting:
            return False
        now = time.monotonic()
        due = [lane for lane in waiting if lane.hand.not_before <= now]
        if not due:
            time.sleep(min(lane.hand.not_before for lane in waiting) - now)
            return True
        for lane in due:
            lane.hand.first_sent = lane.hand.first_sent or now
            if now - lane.hand.first_sent > _BATCH_TIMEOUT:
                raise TimeoutError(f"{lane.hand.identity} {lane.hand.sequence}: no way in {_BATCH_TIMEOUT} s")
        if len(self.routes) > 1 and self._random.random() < 0.1:
            self._drop(self._random.choice([None, *self._connections]))
        try:
            leaders = self._ask_leaders()
        except (OSError, kafka_wire.WireError):
            self._drop(None)
            self._put_off(due)
            return True
        for node in {leaders.get(lane.partition, -1) for lane in due}:
            self._send(node, [lane for lane in due if leaders.get(lane.partition, -1) == node])
        return True

    def _send(self, node, lanes):
        if node < 0:
            self._leaders = None
            return self._put_off(lanes)
        try:
            connection = self._connect(node)
        except OSError:
            self._leaders = None
            return self._put_off(lanes)
        batches = {lane.partition: lane.hand.data for lane in lanes}
        try:
            errors = produce(connection, self.client, self.topic, self._topic_id, batches)
        except (OSError, kafka_wire.WireError):
            self._drop(node)
            self._leaders = None
            for lane in lanes:
                lane.hand.lost_answers += 1
            return self._put_off(lanes)
        with self._changed:
            for lane in lanes:
                self._hear(lane, errors[lane.partition])
            self._changed.notify_all()

    def _hear(self, lane, error):
        if error == 0:
            self.acknowledged.append(lane.hand)
            self.identities.add(lane.hand.identity)
            lane.hand = None
            return
        if error not in _RETRIABLE:
            raise AssertionError(f"{lane.hand.identity} {lane.hand.sequence}: error {error}")
        self.refusals += error == NOT_ENOUGH_REPLICAS
        lane.hand.lost_answers += error in _MAYBE_APPENDED
        if error in _ABOUT_THE_LEADER:
            self._leaders = None
        self._put_off([lane])

    def _put_off(self, lanes):
        for lane in lanes:
            lane.hand.not_before = time.monotonic() + _PAUSE

    def _ask_leaders(self):
        if self._leaders is None:
            question = {"topics": [{"name": self.topic}]}
            entry = self._connect(None).call("Metadata", self.client.metadata, question)["topics"][0]
            self._topic_id = entry.get("topic_id")
            self._leaders = {p["partition_index"]: p["leader_id"] for p in entry["partitions"]}
        return self._leaders

    def _connect(self, node):
        """To a node's listener, or to the source's own."""
        if node not in self._connections:
            proxy = self._random.choice(self.routes)
            source = self.cluster_id
            address = proxy.address(source) if node is None else proxy.node_address(source, node)
            self._connections[node] = kafka_wire.Connection(*address, timeout=_ANSWER_TIMEOUT)
        return self._connections[node]

    def _drop(self, node):
        connection = self._connections.pop(node, None)
        if connection:
            connection.close()
