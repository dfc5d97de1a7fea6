"""Kafka's own command line tools, through mirrorpid: what they print and do is what they print and do directly.

With MIRRORPID_LONG=1 on all brokers, else on one.
"""

import json
import re
import unittest

from tests.end_to_end import kafka
from tests.end_to_end.collisions import IS_LONG, Proxy, check_built
from tests.end_to_end.topic_reader import read_batches
from tests.support.mirrorpid import Source

RECORDS = 2000
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
LOCAL_LIMIT = 1 << 62


def setUpModule():
    check_built()


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Tools:
    version = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(kafka.Cluster(cls.version, nodes=2, extra=AUTHORIZER))
        cls.proxy = cls.enterClassContext(
            Proxy([Source("eu", "MkU3OEVBNTcwNTJENDM2Qg")], cls.cluster, "__mirror_state", replication_factor=2)
        )
        cls.ways = {
            "direct": cls.cluster.bootstrap[0],
            "proxied": "{}:{}".format(*cls.proxy.address("eu")),
        }

    def tool(self, name, way, *arguments, **options):
        return self.cluster.tool(name, "--bootstrap-server", self.ways[way], *arguments, **options)

    def assert_same(self, name, *arguments):
        """Both ways print the same; returns that."""
        direct, proxied = (self.tool(name, way, *arguments) for way in ("direct", "proxied"))
        self.assertEqual(proxied, direct)
        return direct

    def is_since(self, version):
        return tuple(map(int, self.version.split("."))) >= tuple(map(int, version.split(".")))

    def assert_local_ids(self, topic):
        batches = [batch for found in read_batches(self.cluster, topic).values() for batch in found]
        self.assertTrue(batches)
        for batch in batches:
            self.assertIn(batch.producer_id, range(LOCAL_LIMIT))

    def produce_verifiably(self, way, topic, count):
        """By default the tool does not send again, and so without an id."""
        file = self.cluster.directory / "idempotent.properties"
        file.write_text("enable.idempotence=true\nretries=2147483647\n")
        option = "--command-config" if self.is_since("4.2") else "--producer.config"
        return self.tool("VerifiableProducer", way, "--topic", topic, "--max-messages", count, option, file)

    def test_topics_are_created_described_altered_and_deleted(self):
        create = ("--partitions", 3, "--replication-factor", 2, "--config", "retention.ms=3600000")
        self.tool("TopicCommand", "proxied", "--create", "--topic", "made", *create)
        self.tool("TopicCommand", "proxied", "--alter", "--topic", "made", "--partitions", 5)
        described = self.assert_same("TopicCommand", "--describe", "--topic", "made")
        self.assertIn("PartitionCount: 5", described)
        self.assertIn("retention.ms=3600000", described)
        self.assertIn("made", self.assert_same("TopicCommand", "--list").split())
        self.tool("TopicCommand", "proxied", "--delete", "--topic", "made")
        self.assertNotIn("made", self.assert_same("TopicCommand", "--list").split())

    def test_configurations_of_topics_and_brokers_are_altered_and_described(self):
        self.cluster.create_topic("configured")
        topic = ("--entity-type", "topics", "--entity-name", "configured")
        self.tool("ConfigCommand", "proxied", "--alter", *topic, "--add-config", "cleanup.policy=compact")
        self.assertIn("cleanup.policy=compact", self.assert_same("ConfigCommand", "--describe", *topic))
        broker = ("--entity-type", "brokers", "--entity-name", "2")
        self.tool("ConfigCommand", "proxied", "--alter", *broker, "--add-config", "log.cleaner.threads=2")
        self.assertIn("log.cleaner.threads=2", self.assert_same("ConfigCommand", "--describe", *broker))

    def test_access_control_lists_are_added_listed_and_removed(self):
        rule = ("--allow-principal", "User:mirror", "--operation", "Write", "--topic", "guarded")
        self.tool("AclCommand", "proxied", "--add", *rule)
        self.assertIn("principal=User:mirror", self.assert_same("AclCommand", "--list", "--topic", "guarded"))
        self.tool("AclCommand", "proxied", "--remove", "--force", *rule)
        self.assertNotIn("User:mirror", self.assert_same("AclCommand", "--list", "--topic", "guarded"))

    def test_the_verifiable_producer_and_consumer_count_the_same(self):
        counts = {}
        for way in self.ways:
            topic = f"verifiable-{way}"
            self.cluster.create_topic(topic, 3)
            rows = json_lines(self.produce_verifiably(way, topic, RECORDS))
            sent = [row for row in rows if row["name"] == "producer_send_success"]
            data = [row for row in rows if row["name"] == "tool_data"][0]
            group = ("--group-id", f"group-{way}", "--max-messages", RECORDS, "--reset-policy", "earliest", "--verbose")
            rows = json_lines(self.tool("VerifiableConsumer", way, "--topic", topic, *group))
            read = [row for row in rows if row["name"] == "record_data"]
            committed = [row for row in rows if row["name"] == "offsets_committed"]
            self.assertTrue(all(row["success"] for row in committed))
            ends = {}
            for row in committed:
                ends.update({entry["partition"]: entry["offset"] for entry in row["offsets"]})
            self.assert_local_ids(topic)
            counts[way] = {
                "sent": sorted(row["value"] for row in sent),
                "acked": (data["sent"], data["acked"]),
                "read": sorted(row["value"] for row in read),
                "committed": sum(ends.values()),
            }
        self.assertEqual(counts["proxied"], counts["direct"])
        self.assertEqual(counts["direct"]["acked"], (RECORDS, RECORDS))
        self.assertEqual(counts["direct"]["read"], counts["direct"]["sent"])
        self.assertEqual(counts["direct"]["committed"], RECORDS)

    def test_the_performance_tools_count_the_same(self):
        counts = {}
        for way, address in self.ways.items():
            topic = f"performance-{way}"
            self.cluster.create_topic(topic, 3)
            file = self.cluster.directory / f"{topic}.properties"
            file.write_text(f"bootstrap.servers={address}\n")
            # The option has had another name since 4.2, and the old one still works.
            options = ("--num-records", RECORDS, "--record-size", 300, "--throughput", -1, "--producer.config", file)
            produced = self.cluster.tool("ProducerPerformance", "--topic", topic, *options)
            last = produced.strip().splitlines()[-1]
            count = "--num-records" if self.is_since("4.2") else "--messages"
            consumed = self.tool("ConsumerPerformance", way, "--topic", topic, count, RECORDS, "--timeout", 60_000)
            row = [line.split(", ") for line in consumed.splitlines() if re.match(r"\d{4}-\d\d-\d\d", line)][-1]
            self.assert_local_ids(topic)
            counts[way] = {"sent": int(last.split()[0]), "read MB": row[2], "read": row[4]}
        self.assertEqual(counts["proxied"], counts["direct"])
        self.assertEqual(counts["direct"]["sent"], RECORDS)
        self.assertGreaterEqual(int(counts["direct"]["read"]), RECORDS)

    def test_groups_are_listed_described_reset_and_deleted(self):
        self.cluster.create_topic("grouped", 2)
        self.produce_verifiably("proxied", "grouped", 20)
        options = ("--topic", "grouped", "--group-id", "readers", "--max-messages", 20, "--reset-policy", "earliest")
        self.tool("VerifiableConsumer", "proxied", *options)
        self.assertIn("readers", self.assert_same("ConsumerGroupCommand", "--list").split())
        described = self.assert_same("ConsumerGroupCommand", "--describe", "--group", "readers")
        lags = [line.split()[5] for line in described.splitlines() if line.startswith("readers")]
        self.assertEqual(set(lags), {"0"})
        reset = ("--reset-offsets", "--group", "readers", "--topic", "grouped", "--to-offset", 3, "--execute")
        self.tool("ConsumerGroupCommand", "proxied", *reset)
        described = self.assert_same("ConsumerGroupCommand", "--describe", "--group", "readers")
        offsets = [line.split()[3] for line in described.splitlines() if line.startswith("readers")]
        self.assertIn("3", offsets)
        self.tool("ConsumerGroupCommand", "proxied", "--delete", "--group", "readers")
        self.assertNotIn("readers", self.assert_same("ConsumerGroupCommand", "--list").split())

    def test_offsets_and_versions_are_those_of_the_brokers(self):
        self.cluster.create_topic("versions", 2)
        self.produce_verifiably("proxied", "versions", 10)
        self.assertEqual(self.assert_same("GetOffsetShell", "--topic", "versions").count("versions:"), 2)
        answers = {}
        for way in self.ways:
            text = re.sub(r"127\.0\.0\.1:\d+|log4j:.*\n", "", self.tool("BrokerApiVersionsCommand", way))
            answers[way] = sorted(part.strip() for part in text.split("\n)"))  # a part for each node, in any order
        self.assertEqual(answers["proxied"], answers["direct"])


for _version in ("3.7.2", "3.9.2", "4.0.2", "4.4.0") if IS_LONG else ("4.4.0",):
    _name = f"OnKafka{_version.replace('.', '')}"
    globals()[_name] = type(_name, (Tools, unittest.TestCase), {"version": _version, "__module__": __name__})

if __name__ == "__main__":
    unittest.main()
