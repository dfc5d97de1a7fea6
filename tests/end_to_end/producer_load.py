"""Ordinary idempotent producers under load: how they are started, and the judgement of what has arrived."""

import collections
import json
import re

from tests.end_to_end import kafka_jars, programs
from tests.end_to_end.topic_reader import read_batches
from tests.support.process import Process

_LOCAL_LIMIT = 1 << 62
_END_TIMEOUT = 300  # seconds
_SETTINGS = """
enable.idempotence=true
retries=2147483647
batch.size=2000
linger.ms=5
max.in.flight.requests.per.connection=5
reconnect.backoff.max.ms=200
"""


class ProducerLoad:
    """A child process that sends the records 0 to `count` to a topic, or fewer if it is stopped; each kind knows how to
    tell their numbers."""

    stopped_exit_code = 0

    def __init__(self, command, cluster, topic, count):
        self.cluster = cluster
        self.topic = topic
        self.count = count
        name = f"load-{topic}"
        self.out = cluster.directory / f"{name}.out"
        self.process = Process(command, cluster.directory / f"{name}.log", stdout=self.out)

    def sent(self):
        """How many records are in the log by now."""
        ends = (self.cluster.end_offset(self.topic, p, n) for p, n in self.cluster.leaders(self.topic).items() if n > 0)
        return sum(end or 0 for end in ends)

    def is_past(self, share):
        if self.process.exit_code is not None:
            raise AssertionError(f"the load ended too early: {self.process.exit_code}\n{self.process.log_tail()}")
        return self.sent() > self.count * share

    def stop(self):
        """Lets it send what it has in hand."""
        exit_code = self.process.terminate(_END_TIMEOUT)
        if exit_code != self.stopped_exit_code:
            raise AssertionError(f"the load ended with {exit_code}\n{self.process.log_tail()}")
        self.count = self.acknowledged()

    def finish(self):
        """Waits until it has sent all."""
        exit_code = self.process.wait(_END_TIMEOUT)
        if exit_code != 0 or self.acknowledged() != self.count:
            raise AssertionError(f"{exit_code}, {self.acknowledged()} acknowledged\n{self.process.log_tail()}")

    def assert_exactly_once(self, test):
        """Every record is there once, and in its producer's order; its ids are the destination's."""
        numbers = collections.Counter()
        for partition, batches in read_batches(self.cluster, self.topic).items():
            found = [self.number(record) for batch in batches for record in batch.read_records()]
            test.assertEqual(found, sorted(found), f"the order in partition {partition}")
            numbers.update(found)
            for batch in batches:
                test.assertIn(batch.producer_id, range(_LOCAL_LIMIT))
        missing = set(range(self.count)) - set(numbers)
        test.assertGreater(self.count, 0)
        test.assertEqual(missing, set(), "lost")
        test.assertEqual([number for number, copies in numbers.items() if copies > 1], [], "doubled")
        test.assertEqual(len(numbers), self.count)


class JavaLoad(ProducerLoad):
    """Kafka's own client, by its VerifiableProducer."""

    stopped_exit_code = 143

    def __init__(self, cluster, address, topic, count, rate):
        settings = cluster.directory / f"load-{topic}.properties"
        settings.write_text(_SETTINGS)
        command = [kafka_jars.java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-cp", f"{kafka_jars.get(cluster.version)}/*"]
        command += [kafka_jars.tool_class(cluster.version, "VerifiableProducer")]
        command += ["--bootstrap-server", address, "--topic", topic, "--max-messages", count, "--throughput", rate]
        option = "--command-config" if cluster.version >= "4.2" else "--producer.config"
        super().__init__([*command, option, settings], cluster, topic, count)

    def acknowledged(self):
        lines = (json.loads(line) for line in self.out.read_text().splitlines() if line.startswith("{"))
        return sum(line["name"] == "producer_send_success" for line in lines)

    @staticmethod
    def number(record):
        return int(record.value)


class LibrdkafkaLoad(ProducerLoad):
    def __init__(self, cluster, address, topic, count, partitions, per_second):
        command = programs.load_command(address, topic, "none", count, partitions, seed=1, per_second=per_second)
        super().__init__(command, cluster, topic, count)

    def acknowledged(self):
        done = json.loads(self.out.read_text())
        return done["acknowledged"] if done["acknowledged"] == done["records"] else -1

    @staticmethod
    def number(record):
        return int(re.match(rb"seed-1-record-(\d+);", record.value)[1])
