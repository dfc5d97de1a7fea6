"""A reader of the state topic's records, of its own: an oracle for tests of the program."""

import base64
import struct


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, size):
        if size < 0 or self.at + size > len(self.data):
            raise ValueError(f"too short at byte {self.at}")
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))[0]

    def string(self):
        return self.take(self.number("h")).decode()

    def varint(self):
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def end(self):
        if self.at != len(self.data):
            raise ValueError(f"more behind byte {self.at}")


def topic_id(reader):
    return base64.urlsafe_b64encode(reader.take(16)).decode().rstrip("=")


def collision(key, value):
    name = {"topic_id": topic_id(key), "partition": key.number("i"), "source_cluster_id": key.string(),
            "original_pid": key.number("q")}
    if value is None:
        return name, None
    says = {"salt": value.number("q"), "colliding_cluster_id": value.take(value.varint() - 1).decode(),
            "timestamp_ms": value.number("q")}
    for _ in range(value.varint()):  # tagged fields: none are known
        value.varint()
        value.take(value.varint())
    return name, says


def registration(key, value):
    name = {"region": key.number("I"), "source_cluster_id": key.string(), "nonce": key.take(16).hex()}
    return name, value and {"partitions": value.number("i"), "timestamp_ms": value.number("q")}


def claim(key, value):
    name = {"topic_id": topic_id(key), "partition": key.number("i"), "nonce": key.take(16).hex()}
    return name, value and {"source_cluster_id": value.string(), "original_pid": value.number("q"),
                            "salt": value.number("q"), "timestamp_ms": value.number("q")}


TYPES = {3: collision, 100: registration, 101: claim}


def decode(key, value):
    """(kind, key, value) of a record; the value is None of a deleted one. None for a type that is not known."""
    key = Reader(key)
    value = None if value is None else Reader(value)
    read = TYPES.get(key.number("h"))
    if read is None:
        return None
    if value and (version := value.number("h")) != 0:
        raise ValueError(f"version {version}")
    name, says = read(key, value)
    key.end()
    if value:
        value.end()
    return read.__name__, name, says


def log_partition_of(topic_id_text, partition, partitions):
    """The partition of the state topic that decides: Java's String.hashCode, and its absolute value."""
    value = 0
    for character in f"{topic_id_text}:{partition}":
        value = (value * 31 + ord(character)) & 0xFFFFFFFF
    if value >= 1 << 31:
        value = (1 << 32) - value
    return 0 if value == 1 << 31 else value % partitions


def draw_salt(collision_key, attempt):
    """The salt that an identity, named by the bytes of its key, tries at an attempt: FNV-1a, then SplitMix64."""
    ones = (1 << 64) - 1
    seed = 0xCBF29CE484222325
    for byte in collision_key:
        seed = ((seed ^ byte) * 0x100000001B3) & ones
    z = (seed + (attempt + 1) * 0x9E3779B97F4A7C15) & ones
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & ones
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & ones
    z ^= z >> 31
    return z - (1 << 64) if z >> 63 else z
