"""What the Python programs share: the job that they are given and the result that they print."""

import json
import sys


class Task:
    def __init__(self):
        given = json.loads(sys.argv[1])
        self.name = given["name"]
        self.bootstrap = given["bootstrap"]
        self.partitions = given["partitions"]
        self.replication = given["replication"]
        self.records = given["records"]
        self.group_protocol = given.get("group_protocol", "classic")
        self.group = self.name + "-group"
        self.tx = self.name + "-tx"

    def record(self, series, i):
        """(partition, key, value)"""
        value = f"{series} {i} " + "x" * (i % 200)
        return i % self.partitions, f"{series}-{i}".encode(), value.encode()

    def parts(self):
        """The plain records in three parts."""
        return [range(self.records * part // 3, self.records * (part + 1) // 3) for part in range(3)]

    def groups_of(self, groups):
        """Those of the job, by what follows its name."""
        return sorted(group.removeprefix(self.name) for group in groups if group.startswith(self.name))


def extend(offsets, partition, offset):
    """`offsets`: {partition: [offset of the first record, offset of the last one]}"""
    offsets.setdefault(partition, [offset, offset])[1] = offset


def next_offsets(read):
    """[(partition, offset behind the last record)]"""
    ends = {}
    for partition, offset, *_ in read:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    return ends.items()


def finish(result):
    result["read"].sort()
    print(json.dumps(result))
