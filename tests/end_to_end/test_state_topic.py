"""The state topic on real Kafka: made, refused, loaded, followed, and listed.

The brokers have an authorizer. On the plain port everybody may do everything; on the other one the user `mirror` logs
in, who may do what a test grants.
"""

import json
import os
import socket
import struct
import subprocess
import urllib.error
import urllib.request
import time
import unittest

from tests.end_to_end import kafka
from tests.end_to_end.topic_reader import RegistrationKey, StateTopic, text_of
from tests.support import kafka_batch, mirrorpid, ports, state_records
from tests.support.mapping import mapped, region_of
from tests.support.mirrorpid import Mirrorpid, Source
from tests.support.process import wait_until

FIRST, SECOND = "4L6g3nShT-eMCtK--X86sw", "5L6g3nShT-eMCtK--X86sw"  # of one region
REGION = region_of(FIRST)
LONE = "MkU3OEVBNTcwNTJENDM2Qg"
DAY_MS = 24 * 3600 * 1000
READ, WRITE, CREATE, DESCRIBE, DESCRIBE_CONFIGS = 3, 4, 5, 8, 10  # of Kafka's AclOperation
TOPIC, ALLOW = 2, 3  # of its ResourceType and AclPermissionType
UNKNOWN_TOPIC = 3
START_SECONDS = 120


class SecuredCluster(kafka.Cluster):
    """With one more listener, for those who log in."""

    def _properties(self, node):
        properties = super()._properties(node)
        if node not in self._login_ports:
            self._login_ports[node] = ports.free_ports()
        for name in ("listeners", "advertised.listeners"):
            properties[name] += f",LOGIN://127.0.0.1:{self._login_ports[node]}"
        properties["listener.security.protocol.map"] += ",LOGIN:SASL_PLAINTEXT"
        properties["sasl.enabled.mechanisms"] = "PLAIN"
        properties["listener.name.login.plain.sasl.jaas.config"] = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="unused" password="unused" user_mirror="secret";'
        )
        properties["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        properties["super.users"] = "User:ANONYMOUS"
        return properties

    def launch(self):
        self._login_ports = {}
        super().launch()

    @property
    def login_bootstrap(self):
        return [f"127.0.0.1:{port}" for port in self._login_ports.values()]


cluster = SecuredCluster("4.4.0", nodes=2)


def setUpModule():
    if not os.access(mirrorpid.program(), os.X_OK):
        raise FileNotFoundError(f"{mirrorpid.program()} is not built: cmake --build --preset release")
    cluster.__enter__()
    unittest.addModuleCleanup(cluster.close)


# --- Records ---


def string(text):
    return struct.pack(">h", len(text)) + text.encode()


def now_ms():
    return int(time.time() * 1000)


def registration(cluster_id, region, partitions, nonce):
    key = struct.pack(">hI", 100, region) + string(cluster_id) + struct.pack(">QQ", 0, nonce)
    return key, struct.pack(">hiq", 0, partitions, now_ms())


def collision(topic_id, partition, cluster_id, pid, salt, colliding=FIRST):
    key = struct.pack(">h", 3) + topic_id + struct.pack(">i", partition) + string(cluster_id) + struct.pack(">q", pid)
    name = bytes([len(colliding) + 1]) + colliding.encode()
    return key, struct.pack(">hq", 0, salt) + name + struct.pack(">q", now_ms()) + b"\0"


def write(topic, by_partition, batch_size=2000):
    """Appends records [(key, value), ...] to partitions {number: records}."""
    leaders = cluster.leaders(topic)
    connections = {}
    try:
        for partition, records in by_partition.items():
            leader = leaders[partition]
            if leader not in connections:
                connections[leader] = cluster.connect(leader)
            for start in range(0, len(records), batch_size):
                batch = kafka_batch.build(records[start : start + batch_size], timestamp=now_ms())
                data = [{"name": topic, "partition_data": [{"index": partition, "records": batch}]}]
                answer = connections[leader].call("Produce", 9, {"topic_data": data})
                row = answer["responses"][0]["partition_responses"][0]
                if row["error_code"]:
                    raise RuntimeError(f"write to {topic}-{partition}: error {row['error_code']}")
    finally:
        for connection in connections.values():
            connection.close()


def end_offsets(topic):
    return {partition: cluster.end_offset(topic, partition) for partition in cluster.leaders(topic)}


def is_gone(topic):
    return all(cluster.metadata(topic, node)["error_code"] == UNKNOWN_TOPIC for node in cluster.nodes)


def topic_configs(topic):
    with cluster.connect() as connection:
        question = {"resources": [{"resource_type": TOPIC, "resource_name": topic, "configuration_keys": None}]}
        (answer,) = connection.call("DescribeConfigs", 2, question)["results"]
    return {config["name"]: config["value"] for config in answer["configs"]}


class StateTopicCase(unittest.TestCase):
    def setUp(self):
        self.topic = "state-" + self.id().rpartition(".test_")[2][:80]

    def proxy(self, *sources, partitions=4, replication_factor=2, bootstrap=None, client=None, **state):
        """mirrorpid with a state topic; by default of one source that shares its region with nobody."""
        settings = {"topic": self.topic, "partitions": partitions, "replication_factor": replication_factor, **state}
        destination = {"bootstrap_servers": bootstrap or cluster.bootstrap, "client": client or {}}
        made = Mirrorpid(
            list(sources) or [Source("lone", LONE)], cluster.bootstrap,
            extra={
                "destination": destination,
                "state": settings,
                "admin": {"listen": f"127.0.0.1:{ports.free_ports()}"},
            },
        )  # fmt: skip
        self.addCleanup(made.close)
        return made

    def readiness(self, proxy):
        """The status of /readyz."""
        try:
            url = f"http://{proxy.extra['admin']['listen']}/readyz"
            with urllib.request.urlopen(url, timeout=START_SECONDS) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def assert_closed_and_not_ready(self, proxy):
        self.assertEqual(self.readiness(proxy), 503)
        for source in proxy.sources.values():
            for port in (source.listen_port, source.first_port):
                with self.assertRaises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", port), START_SECONDS)

    def assert_becomes_ready(self, proxy):
        self.assertTrue(proxy.wait_started())
        wait_until(lambda: self.readiness(proxy) == 200, START_SECONDS, "readiness")

    def refusal(self, proxy):
        """Starts it, which it must refuse with exit code 1; the line that says why."""
        proxy.launch(fresh_ports=True)
        log = proxy.wait_for_end(START_SECONDS, exit_code=1)
        return [line for line in log.splitlines() if " error " in line][-1]

    def run_list(self, proxy, *arguments, exit_code=0):
        command = [mirrorpid.program(), "state", "list", "--config", proxy.directory / "mirrorpid.yaml", *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=START_SECONDS)
        self.assertEqual(done.returncode, exit_code, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def list(self, proxy, *arguments):
        return json.loads(self.run_list(proxy, "--format", "json", *arguments)[0])


class Making(StateTopicCase):
    def test_a_missing_topic_is_made_compacted_and_replicated_and_every_source_registered_in_each_partition(self):
        sources = [Source("a", FIRST), Source("b", SECOND), Source("free", "lkc-1", extra={"region": 7})]
        with self.proxy(*sources, partitions=5):
            state = StateTopic(cluster, self.topic)
        self.assertEqual(state.partitions, 5)
        self.assertEqual({len(p["replica_nodes"]) for p in cluster.metadata(self.topic)["partitions"]}, {2})
        configs = topic_configs(self.topic)
        self.assertEqual(configs["cleanup.policy"], "compact")
        self.assertEqual(configs["min.insync.replicas"], "2")
        self.assertEqual(configs["unclean.leader.election.enable"], "false")
        self.assertGreaterEqual(int(configs["delete.retention.ms"]), DAY_MS)
        expected = {(p, *source) for p in range(5) for source in ((REGION, FIRST), (REGION, SECOND), (7, "lkc-1"))}
        registered = [(r.log_partition, r.key.region, r.key.source_cluster_id) for r in state.of(RegistrationKey)]
        self.assertEqual(sorted(registered), sorted(expected))
        self.assertEqual(len(state.records), len(registered))

    def test_a_second_start_writes_nothing(self):
        with self.proxy():
            before = end_offsets(self.topic)
        with self.proxy():
            self.assertEqual(end_offsets(self.topic), before)
        self.assertEqual(set(before.values()), {1})

    def test_a_topic_that_is_there_is_used_and_advised_upon(self):
        cluster.create_topic(self.topic, 4, configs={"cleanup.policy": "compact", "delete.retention.ms": 1000})
        with self.proxy() as proxy:
            log = proxy.stop()
        self.assertIn("config=delete.retention.ms value=1000", log)
        self.assertEqual(set(end_offsets(self.topic).values()), {1})


class Refusals(StateTopicCase):
    def test_a_replication_factor_that_the_cluster_does_not_have(self):
        line = self.refusal(self.proxy(replication_factor=3))
        self.assertIn("replication factor 3, for the destination has 2 brokers", line)
        self.assertIn("state.replication_factor", line)

    def test_a_topic_that_is_not_compacted_alone(self):
        for number, policy in enumerate(("delete", "compact,delete")):
            with self.subTest(policy):
                topic = f"{self.topic}-{number}"
                cluster.create_topic(topic, 4, configs={"cleanup.policy": policy})
                line = self.refusal(self.proxy(topic=topic))
                self.assertIn(f"has cleanup.policy '{policy}', and must have 'compact' alone", line)

    def test_another_number_of_partitions(self):
        cluster.create_topic(self.topic, 3, configs={"cleanup.policy": "compact"})
        self.assertIn("has 3 partitions and `state.partitions` says 4", self.refusal(self.proxy()))

    def test_partitions_that_were_added(self):
        cluster.create_topic(self.topic, 4, configs={"cleanup.policy": "compact"})
        write(self.topic, {p: [registration(LONE, region_of(LONE), 3, p)] for p in range(4)})
        self.assertIn("had 3 partitions when", self.refusal(self.proxy()))

    def test_a_name_that_brokers_do_not_take(self):
        cluster.create_topic("a_name_of_a_state")  # in metrics it would be the same
        line = self.refusal(self.proxy(topic="a.name.of.a.state"))
        self.assertIn("does not take 'a.name.of.a.state'", line)
        self.assertIn("state.topic", line)

    def test_a_name_that_brokers_keep_for_themselves_is_refused_before_anything_is_made(self):
        proxy = self.proxy(topic="__consumer_offsets")
        proxy.launch(fresh_ports=True)
        log = proxy.wait_for_end(START_SECONDS, exit_code=2)
        self.assertIn("'__consumer_offsets' is a name that brokers keep for themselves", log)

    def test_a_record_that_cannot_be_decoded(self):
        cluster.create_topic(self.topic, 4, configs={"cleanup.policy": "compact"})
        write(self.topic, {2: [registration(LONE, region_of(LONE), 4, 1), (b"\0\3too short", b"")]})
        line = self.refusal(self.proxy())
        self.assertIn(f"the record at offset 1 of partition 2 of the state topic '{self.topic}'", line)

    def test_a_region_that_changed(self):
        with self.proxy(Source("free", "lkc-1", extra={"region": 42})):
            pass
        line = self.refusal(self.proxy(Source("free", "lkc-1", extra={"region": 43})))
        self.assertIn("registered with region 42 and configured with 43", line)

    def test_a_login_that_is_refused(self):
        line = self.refusal(self.proxy(bootstrap=cluster.login_bootstrap, client=login("wrong")))
        self.assertIn("refuses the login", line)
        self.assertIn("sasl.*", line)
        self.assertNotIn("wrong", line)

    def test_each_permission_that_is_missing_is_named_until_all_are_there(self):
        proxy = self.proxy(bootstrap=cluster.login_bootstrap, client=login("secret"))
        self.assertIn(self.not_allowed("Describe"), self.refusal(proxy))
        self.grant(DESCRIBE)
        self.wait_for(proxy, self.not_allowed("Create"))
        self.grant(CREATE)
        self.wait_for(proxy, self.not_allowed("DescribeConfigs"))
        self.grant(DESCRIBE_CONFIGS)
        self.grant(WRITE)
        self.wait_for(proxy, self.not_allowed("Read"))
        self.grant(READ)
        self.wait_for(proxy, "started")

    def test_a_topic_that_may_not_be_written(self):
        cluster.create_topic(self.topic, 4, configs={"cleanup.policy": "compact"})
        self.grant(DESCRIBE_CONFIGS)
        self.grant(READ)
        proxy = self.proxy(bootstrap=cluster.login_bootstrap, client=login("secret"))
        for source in proxy.sources.values():
            source.choose_ports()
        self.wait_for(proxy, self.not_allowed("Write"))

    def not_allowed(self, operation):
        return f"does not allow {operation} on the state topic '{self.topic}'"

    def wait_for(self, proxy, outcome):
        """Starts it until this is what becomes of it: a grant is known everywhere a moment later."""
        wait_until(lambda: outcome in self.outcome(proxy), START_SECONDS, outcome)

    def outcome(self, proxy):
        proxy.launch()
        try:
            proxy.wait_started()
        except RuntimeError:
            return [line for line in proxy.log().splitlines() if " error " in line][-1]
        proxy.stop()
        return "started"

    def grant(self, operation):
        acl = {"resource_type": TOPIC, "resource_name": self.topic, "principal": "User:mirror", "host": "*"}
        with cluster.connect() as connection:
            question = {"creations": [{**acl, "operation": operation, "permission_type": ALLOW}]}
            (result,) = connection.call("CreateAcls", 2, question)["results"]
        self.assertEqual(result["error_code"], 0)


def login(password):
    return {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
        "sasl.username": "mirror", "sasl.password": password,
    }  # fmt: skip


class Loading(StateTopicCase):
    PARTITIONS = 50

    def test_a_hundred_thousand_salts_are_loaded_before_anybody_is_served(self):
        count = 100_000
        cluster.create_topic(self.topic, self.PARTITIONS, configs={"cleanup.policy": "compact"})
        by_partition = {
            p: [registration(id, REGION, self.PARTITIONS, nonce + p) for id, nonce in ((FIRST, 0), (SECOND, 1000))]
            for p in range(self.PARTITIONS)
        }
        topic_id = os.urandom(16)
        name = text_of(topic_id)
        for number in range(count):
            partition, pid = number % 200, number // 200
            at = state_records.log_partition_of(name, partition, self.PARTITIONS)
            by_partition[at].append(collision(topic_id, partition, SECOND, pid, 1 + number))
        write(self.topic, by_partition)

        sources = [Source("a", FIRST), Source("b", SECOND)]
        with self.proxy(*sources, partitions=self.PARTITIONS) as proxy:
            log = proxy.stop()
            (line,) = [line for line in log.splitlines() if "the state topic is loaded" in line]
            print(f"\n{line}")
            listed = self.list(proxy)["assignments"]
        self.assertIn(f" salted={count} ", line)
        self.assertLess(log.index("the state topic is loaded"), log.index("serving listeners="))
        self.assertLess(int(line.rpartition("milliseconds=")[2]), 120_000)
        self.assertEqual(len(listed), count)
        self.assertEqual(sum(end_offsets(self.topic).values()), count + 2 * self.PARTITIONS)

    def test_a_cluster_that_is_down_is_waited_for_with_closed_listeners(self):
        lone = kafka.Cluster("4.4.0")
        with lone:
            lone.kill(1)
            proxy = self.proxy(bootstrap=lone.bootstrap, replication_factor=1)
            proxy.launch(fresh_ports=True)
            waiting = "the state topic is not there yet"
            wait_until(lambda: waiting in proxy.log(), START_SECONDS, "the proxy to say that it waits")
            self.assert_closed_and_not_ready(proxy)
            lone.start(1)
            self.assert_becomes_ready(proxy)
            proxy.stop()

    def test_a_stop_while_the_cluster_is_down(self):
        proxy = self.proxy(bootstrap=[f"127.0.0.1:{ports.free_ports()}"])
        proxy.launch(fresh_ports=True)
        wait_until(lambda: "the state topic is not there yet" in proxy.log(), START_SECONDS, "the proxy to wait")
        self.assertIn(proxy.process.terminate(), (0, 1))

    def test_registrations_that_cannot_be_written_are_tried_until_they_can(self):
        with self.proxy():  # makes the topic
            pass
        cluster.kill(2)
        proxy = self.proxy(Source("a", FIRST), write_timeout="2s")
        proxy.launch(fresh_ports=True)
        wait_until(lambda: "cannot be written" in proxy.log(), START_SECONDS, "a write to fail")
        self.assert_closed_and_not_ready(proxy)
        cluster.start(2)
        self.assert_becomes_ready(proxy)
        log = proxy.stop()
        self.assertIn("the state topic is written again", log)
        records = StateTopic(cluster, self.topic).of(RegistrationKey)
        registered = {record.log_partition for record in records if record.key.region == REGION}
        self.assertEqual(registered, set(range(4)))


class Following(StateTopicCase):
    def test_what_others_write_is_read_while_serving(self):
        with self.proxy() as proxy:
            records = [(b"\x7f\0unknown", b"x"), (b"\0\3too short", b"x"), collision(b"T" * 16, 0, "nobody", 1, 2)]
            write(self.topic, {1: records})
            wait_until(lambda: log_lines(proxy, "is left out") == 1, START_SECONDS, "the records to be read")
            wait_until(lambda: log_lines(proxy, "cannot be decoded") == 1, START_SECONDS, "the broken one, too")
            log = proxy.stop()
        self.assertIn("partition=1 offset=2", log)  # the registration is 0, and what is unknown is skipped in silence
        self.assertIn("partition=1 offset=3", log)

    def test_a_topic_that_is_deleted_ends_the_proxy(self):
        proxy = self.proxy()
        with proxy:
            with cluster.connect(cluster.controllers[0]) as connection:
                connection.call("DeleteTopics", 4, {"topic_names": [self.topic]})
            log = proxy.wait_for_end(START_SECONDS, exit_code=1)
        self.assertIn("does not exist any more", log)

    def test_a_topic_that_is_made_anew_ends_the_proxy(self):
        proxy = self.proxy()
        with proxy:
            write(self.topic, {p: [(b"\x7f\0unknown", b"x")] * 3 for p in range(4)})
            with cluster.connect(cluster.controllers[0]) as connection:
                connection.call("DeleteTopics", 4, {"topic_names": [self.topic]})
            wait_until(lambda: is_gone(self.topic), START_SECONDS, "the topic to be gone")
            cluster.create_topic(self.topic, 4, configs={"cleanup.policy": "compact"})
            write(self.topic, {p: [(b"\x7f\0unknown", b"x")] for p in range(4)})
            log = proxy.wait_for_end(START_SECONDS, exit_code=1)
        self.assertRegex(log, "is shorter than what was read of it|does not exist any more")


def log_lines(proxy, text):
    return sum(text in line for line in proxy.log().splitlines())


class Listing(StateTopicCase):
    def test_assignments_and_regions_are_listed_and_nothing_is_written(self):
        sources = [Source("a", FIRST), Source("b", SECOND), Source("lone", LONE)]
        topics = {text: raw for raw in (bytes([n]) * 16 for n in (1, 2)) for text in [text_of(raw)]}
        with self.proxy(*sources) as proxy:
            proxy.stop()
            self.check_listing(proxy, topics)

    def check_listing(self, proxy, topics):
        owner = {p: StateTopic(cluster, self.topic).owner_of(REGION, p) for p in range(4)}
        records = {}
        salted = {}
        for text, raw in topics.items():
            for partition in (0, 1):
                at = state_records.log_partition_of(text, partition, 4)
                other = SECOND if owner[at] == FIRST else FIRST
                salted[text, partition, 5] = other
                record = collision(raw, partition, other, 5, 99, colliding=owner[at])
                records.setdefault(at, []).append(record)
        write(self.topic, records)
        before = end_offsets(self.topic)

        listed = self.list(proxy)
        self.assertEqual(listed["partitions"], 4)
        found = {(a["topic_id"], a["partition"], int(a["pid"])): a for a in listed["assignments"]}
        self.assertEqual({key: a["cluster_id"] for key, a in found.items()}, salted)
        names = {FIRST: "a", SECOND: "b"}
        for assignment in found.values():
            self.assertEqual(assignment["source"], names[assignment["cluster_id"]])
            self.assertEqual(assignment["salt"], "99")
            self.assertEqual(assignment["region"], REGION + 99)
            self.assertEqual(int(assignment["mapped"]), mapped(REGION + 99, 5))
            self.assertEqual({assignment["cluster_id"], assignment["colliding_cluster_id"]}, {FIRST, SECOND})
            self.assertLess(assignment["age_seconds"], 3600)
        regions = {region["region"]: region for region in listed["regions"]}
        self.assertEqual(set(regions), {REGION, region_of(LONE)})
        self.assertEqual(regions[region_of(LONE)]["salted"], [])
        self.assertEqual(regions[region_of(LONE)]["owners"][0]["log_partitions"], 4)
        owned = {entry["cluster_id"]: entry["log_partitions"] for entry in regions[REGION]["owners"]}
        self.assertEqual(owned, {id: list(owner.values()).count(id) for id in set(owner.values())})

        one = next(iter(topics))
        self.assertEqual({a["topic_id"] for a in self.list(proxy, "--topic", one)["assignments"]}, {one})
        by_name = self.list(proxy, "--source", "a")["assignments"]
        self.assertEqual(by_name, self.list(proxy, "--source", FIRST)["assignments"])
        self.assertEqual(len(by_name), list(salted.values()).count(FIRST))

        out, err = self.run_list(proxy)
        self.assertEqual(out.count("salt 99, "), len(salted))
        self.assertIn(f"region {REGION} (0x{REGION:08x}):", out)
        self.assertIn(f"{len(salted)} salted producers", err)
        self.assertEqual(end_offsets(self.topic), before)

    def test_a_topic_that_is_not_there_is_not_made(self):
        cluster.create_topic(self.topic, 3)  # so the start is refused, and a configuration is there
        proxy = self.proxy()
        self.refusal(proxy)
        with cluster.connect(cluster.controllers[0]) as connection:
            connection.call("DeleteTopics", 4, {"topic_names": [self.topic]})
        wait_until(lambda: is_gone(self.topic), START_SECONDS, "the topic to be gone")
        _, err = self.run_list(proxy, exit_code=1)
        self.assertIn(f"has no topic '{self.topic}'", err)
        self.assertTrue(is_gone(self.topic))


if __name__ == "__main__":
    unittest.main()
