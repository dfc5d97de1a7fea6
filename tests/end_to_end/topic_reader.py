"""What is in a topic of replicated partitions, fetched from their leaders, batch by batch as it stands there, and what
the records of a state topic among them say."""

import base64
import collections

from tests.support import kafka_batch, state_records

_FETCH_BYTES = 8 << 20


def read_batches(cluster, topic, node=1):
    """{partition: [batch, ...]} up to the high watermark of each. `node` is one to ask for the leaders."""
    leaders = {p["partition_index"]: p["leader_id"] for p in cluster.metadata(topic, node)["partitions"]}
    batches = {}
    for leader in set(leaders.values()):
        with cluster.connect(leader) as connection:
            for partition in (p for p, node in leaders.items() if node == leader):
                batches[partition] = list(_read_partition(connection, topic, partition))
    return dict(sorted(batches.items()))


def _read_partition(connection, topic, partition):
    offset, end = 0, None
    while end is None or offset < end:
        asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": _FETCH_BYTES}
        question = {"max_wait_ms": 0, "topics": [{"topic": topic, "partitions": [asked]}]}
        row = connection.call("Fetch", 11, question)["responses"][0]["partitions"][0]
        if row["error_code"]:
            raise RuntimeError(f"fetch of {topic}-{partition} at {offset}: error {row['error_code']}")
        end = row["high_watermark"] if end is None else end
        batches = kafka_batch.split(row["records"] or b"")
        if not batches and offset < end:
            raise RuntimeError(f"fetch of {topic}-{partition} at {offset}: nothing, where {end} is the end")
        for batch in batches:
            offset = batch.last_offset + 1
            yield batch


# The keys and values of the state topic's records. A topic id is its text of 22 characters.
CollisionKey = collections.namedtuple("CollisionKey", "topic_id partition source_cluster_id original_pid")
CollisionValue = collections.namedtuple("CollisionValue", "salt colliding_cluster_id timestamp_ms")
RegistrationKey = collections.namedtuple("RegistrationKey", "region source_cluster_id nonce")
RegistrationValue = collections.namedtuple("RegistrationValue", "partitions timestamp_ms")
ClaimKey = collections.namedtuple("ClaimKey", "topic_id partition nonce")
ClaimValue = collections.namedtuple("ClaimValue", "source_cluster_id original_pid salt timestamp_ms")
_TUPLES = {
    "collision": (CollisionKey, CollisionValue),
    "registration": (RegistrationKey, RegistrationValue),
    "claim": (ClaimKey, ClaimValue),
}

# A record of the state topic. The value of a tombstone is None; `time` is the one that Kafka keeps for it, in ms: of
# its append where the topic says so.
StateRecord = collections.namedtuple("StateRecord", "log_partition offset time key value key_bytes")


def _state_record(log_partition, record):
    decoded = state_records.decode(record.key, record.value)
    if decoded is None:
        raise ValueError(f"a record of an unknown type at {log_partition}, {record.offset}: {record.key.hex()}")
    kind, key, value = decoded
    key_tuple, value_tuple = _TUPLES[kind]
    key, value = key_tuple(**key), None if value is None else value_tuple(**value)
    return StateRecord(log_partition, record.offset, record.timestamp, key, value, record.key)


class StateTopic:
    """All records of a state topic at one moment."""

    def __init__(self, cluster, topic, node=1):
        batches = read_batches(cluster, topic, node)
        self.partitions = len(batches)
        self.records = [
            _state_record(partition, record)
            for partition, found in batches.items()
            for batch in found
            for record in batch.read_records()
        ]

    def of(self, kind):
        """All records of a type, for example ClaimKey; tombstones too."""
        return [record for record in self.records if isinstance(record.key, kind)]

    def collisions(self):
        """{key: the last record of it}: what salts there are now."""
        last = {record.key: record for record in self.of(CollisionKey)}
        return {key: record for key, record in last.items() if record.value is not None}

    def owner_of(self, region, log_partition):
        """The cluster id that was first to register a region there."""
        for record in self.of(RegistrationKey):
            if record.key.region == region and record.log_partition == log_partition and record.value is not None:
                return record.key.source_cluster_id
        return None

    def log_partition_of(self, topic_id, partition):
        return state_records.log_partition_of(topic_id, partition, self.partitions)


_64_BITS = (1 << 64) - 1


def drawn_salt(collision_key, attempt):
    """The salt that an identity tries at an attempt, from 0 on, signed as it is written: SplitMix64 started at FNV-1a
    of the bytes of its key."""
    seed = 0xCBF29CE484222325
    for byte in collision_key:
        seed = (seed ^ byte) * 0x100000001B3 & _64_BITS
    z = seed + (attempt + 1) * 0x9E3779B97F4A7C15 & _64_BITS
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _64_BITS
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _64_BITS
    z ^= z >> 31
    return z - (1 << 64 if z >> 63 else 0)


def text_of(topic_id):
    """A topic id as Kafka prints it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
