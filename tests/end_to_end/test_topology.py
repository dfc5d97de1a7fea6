"""Brokers come, go, move, and are down, at real clusters of one and of three nodes: clients behind mirrorpid go on."""

import concurrent.futures
import itertools
import json
import os
import socket
import unittest
import urllib.error
import urllib.request

from tests.end_to_end import kafka, programs, salted_load
from tests.end_to_end.test_broker_cases import batch, produce
from tests.end_to_end.topic_reader import read_batches
from tests.end_to_end.versions import IS_LONG, on_each_version
from tests.proxy.peers import black_hole
from tests.support import kafka_wire, ports
from tests.support.mapping import mapped, region_of
from tests.support.mirrorpid import Mirrorpid, Source
from tests.support.process import wait_until

SOURCE_ID = "MkU3OEVBNTcwNTJENDM2Qg"
REGION = region_of(SOURCE_ID)
CONTROLLER, FAR, LAST, ADDED = 1, 1001, 2_147_483_647, 7  # node ids
UNSUPPORTED_VERSION, NOT_LEADER, REBOOTSTRAP_REQUIRED = 35, 6, 129
IDLE_MS = 10000
SECONDS = 240  # for a cluster to do what it does in a few of them
SEED = int(os.environ.get("MIRRORPID_SEED") or 1)


def setUpModule():
    programs.check_built()


class Proxy(Mirrorpid):
    """With an admin endpoint."""

    def __init__(self, bootstrap, *sources, **extra):
        self.admin_port = ports.free_ports()
        sources = sources or (Source(SOURCE_ID, SOURCE_ID),)
        super().__init__(sources, bootstrap, extra={"admin": {"listen": f"127.0.0.1:{self.admin_port}"}, **extra})

    def ask(self, path):
        """(status, body)"""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def is_ready(self):
        return self.ask("/readyz")[0] == 200

    def wait_ready(self):
        wait_until(self.is_ready, SECONDS, "mirrorpid to be ready")

    def counters(self):
        return json.loads(self.ask("/api/v1/status")[1])["sources"][0]["counters"]

    def knows(self, node, address):
        """Whether it has told, and not another address since, that this is where the node is."""
        lines = [line for line in self.log().splitlines() if f" id={node} " in f"{line} "]
        return bool(lines) and lines[-1].endswith("address=%s:%d" % address)


class TopologyCase:
    version = None

    def connect(self, proxy, node=None, timeout=60.0):
        address = proxy.address(SOURCE_ID) if node is None else proxy.node_address(SOURCE_ID, node)
        connection = kafka_wire.Connection(*address, timeout=timeout)
        self.addCleanup(connection.close)
        return connection

    def is_refused(self, proxy):
        """Whether nobody listens, neither at the source's port nor at a node's."""
        source = proxy.sources[SOURCE_ID]
        for port in (source.listen_port, source.first_port):
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
            except ConnectionRefusedError:
                continue
            return False
        return True

    def assert_closed(self, connection):
        """The proxy ends it without an answer."""
        with self.assertRaises((kafka_wire.Closed, ConnectionError)):
            connection.call("Metadata", 9, {"topics": []})

    def assert_produces(self, proxy, topic, node=None):
        rows, _ = produce(self.connect(proxy, node), 9, topic, {0: batch("k")})
        self.assertEqual(rows[0]["error_code"], 0)


class OneNode(TopologyCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = kafka.Cluster(cls.version, extra={"connections.max.idle.ms": IDLE_MS})
        cls.enterClassContext(cls.cluster)

    def tearDown(self):
        if not self.cluster.is_running(1):  # a test has failed
            self.cluster.start(1)

    def test_a_connection_that_the_broker_ends_because_it_is_idle_ends_for_the_client(self):
        with Proxy(self.cluster.bootstrap) as proxy:
            clients = [self.connect(proxy), self.connect(proxy, 1), self.cluster.connect()]
            for client in clients:
                client.call("ApiVersions", 0)
            for client in clients:
                self.assertEqual(client.sock.recv(1), b"")
                client.close()
            self.assertNotIn("left requests unanswered", proxy.log())

    def test_an_outage_is_outlived_by_a_proxy_that_was_there_and_by_those_that_start_in_it(self):
        self.cluster.create_topic("outage")
        bootstrap = self.cluster.bootstrap
        state = {"topic": "__mirror_state_late", "partitions": 4, "replication_factor": 1}
        stateful = Proxy(bootstrap, state=state)
        self.addCleanup(stateful.close)
        with Proxy(bootstrap) as before:
            before.wait_ready()
            self.assert_produces(before, "outage", 1)
            self.cluster.kill(1)
            self.assert_closed(self.connect(before, 1))
            stateful.launch(fresh_ports=True)
            with Proxy(bootstrap) as late:
                # Without a state topic it serves, and can reach nobody.
                self.assertEqual(late.ask("/livez")[0], 200)
                self.assertEqual(late.ask("/readyz")[0], 503)
                self.assert_closed(self.connect(late))
                self.assert_closed(self.connect(late, 1))
                for text in ("node=bootstrap", "node=1"):
                    lines = [line for line in late.log().splitlines() if "cannot be reached" in line and text in line]
                    self.assertTrue(lines, text)
                # With one nobody is let in before it is loaded.
                waiting = "the state topic is not there yet"
                wait_until(lambda: waiting in stateful.log(), SECONDS, "the proxy to say that it waits")
                self.assertEqual(stateful.ask("/livez")[0], 200)
                self.assertEqual(stateful.ask("/readyz")[0], 503)
                self.assertTrue(self.is_refused(stateful))
                self.assertFalse(late.is_ready())

                self.cluster.start(1)
                for proxy in (before, late, stateful):
                    proxy.wait_ready()
                    self.assert_produces(proxy, "outage")
                    self.assert_produces(proxy, "outage", 1)
        stateful.stop()

    def test_bootstrap_servers_that_are_down_or_say_nothing_are_passed_over(self):
        self.cluster.create_topic("bootstrap")
        listener, fillers = black_hole()
        self.addCleanup(lambda: [sock.close() for sock in (listener, *fillers)])
        servers = [f"127.0.0.1:{port}" for port in (ports.free_ports(), listener.getsockname()[1])]
        with Proxy([*servers, *self.cluster.bootstrap], limits={"connect_timeout": "1s"}) as proxy:
            proxy.wait_ready()
            self.assert_produces(proxy, "bootstrap")
            self.assert_produces(proxy, "bootstrap", 1)

    def test_a_client_that_means_another_node_is_told_and_counted_and_goes_on(self):
        with Proxy(self.cluster.bootstrap) as proxy:
            proxy.wait_ready()
            connection = self.connect(proxy, 1)
            right = {"cluster_id": self.cluster.cluster_id, "node_id": 1}
            errors = [
                connection.call("ApiVersions", 5, question)["error_code"]
                for question in (right, {**right, "node_id": 2}, {**right, "cluster_id": kafka.random_cluster_id()}, {})
            ]
            if self.version < "4.4":
                self.assertEqual(errors, [UNSUPPORTED_VERSION] * 4)
            else:
                self.assertEqual(errors, [0, REBOOTSTRAP_REQUIRED, REBOOTSTRAP_REQUIRED, 0])
                self.assertEqual(proxy.counters()["rebootstraps"], 2)
            self.assertEqual(connection.call("Metadata", 9, {"topics": []})["brokers"][0]["node_id"], 1)

    def test_the_mapping_does_not_depend_on_where_a_sequence_begins_or_how_epochs_rise(self):
        self.cluster.create_topic("epochs")
        with Proxy(self.cluster.bootstrap) as proxy:
            proxy.wait_ready()
            for epoch, sequence in ((3, 100), (3, 101), (4, 0), (9, 7), (9, 2_147_483_647)):
                data = batch("k", producer_id=77, epoch=epoch, sequence=sequence)
                rows, _ = produce(self.connect(proxy, 1), 9, "epochs", {0: data})
                self.assertEqual(rows[0]["error_code"], 0)
        stored = self.cluster.raw_batches("epochs", 0)
        self.assertEqual([entry.producer_id for entry in stored], [mapped(REGION, 77)] * 5)
        self.assertEqual([entry.producer_epoch for entry in stored], [3, 3, 4, 9, 9])


class ThreeNodes(TopologyCase):
    """Nodes 1, 1001 and 2147483647; node 1 is the controller."""

    PARTITIONS = 6

    @classmethod
    def setUpClass(cls):
        cls.cluster = kafka.Cluster(
            cls.version, node_ids=(CONTROLLER, FAR, LAST), extra={"broker.session.timeout.ms": 6000}
        )
        cls.enterClassContext(cls.cluster)
        by_map = Source(SOURCE_ID, SOURCE_ID, node_ids=(CONTROLLER, ADDED, FAR, LAST))
        by_range = Source("range", "4L6g3nShT-eMCtK--X86sw", first_node_id=FAR - 1, nodes=3)
        cls.proxy = cls.enterClassContext(Proxy(cls.cluster.bootstrap, by_map, by_range))
        cls.proxy.wait_ready()

    def nodes_in(self, connection, version=9):
        brokers = connection.call("Metadata", version, {"topics": []})["brokers"]
        return {broker["node_id"]: (broker["host"], broker["port"]) for broker in brokers}

    def test_1_the_listener_of_each_node_reaches_that_node_and_no_other(self):
        nodes = list(self.cluster.nodes)
        self.cluster.create_topic("own", 3, leaders=nodes)
        for node in nodes:
            connection = self.connect(self.proxy, node)
            self.assertEqual(self.nodes_in(connection), {n: self.proxy.node_address(SOURCE_ID, n) for n in nodes})
            rows, _ = produce(connection, 9, "own", {partition: batch("k") for partition in range(3)})
            errors = {nodes[partition]: row["error_code"] for partition, row in rows.items()}
            self.assertEqual(errors, {n: 0 if n == node else NOT_LEADER for n in nodes})
            if self.version >= "4.4":
                for meant in nodes:
                    question = {"cluster_id": self.cluster.cluster_id, "node_id": meant}
                    error = connection.call("ApiVersions", 5, question)["error_code"]
                    self.assertEqual(error, 0 if meant == node else REBOOTSTRAP_REQUIRED)

    def test_1_a_range_has_the_nodes_that_are_in_it(self):
        connection = kafka_wire.Connection(*self.proxy.address("range"))
        self.addCleanup(connection.close)
        self.assertEqual(self.nodes_in(connection), {FAR: self.proxy.node_address("range", FAR)})
        for node in (CONTROLLER, LAST):
            found = [line for line in self.proxy.log().splitlines() if "has no listener" in line]
            self.assertTrue([line for line in found if f"node={node}" in line and "source=range" in line], node)

    def test_2_loads_go_on_while_nodes_move_die_come_and_go_and_leaders_change(self):
        """Nothing that was acknowledged is lost, its order stays, and a producer has one id wherever its leader is."""
        topic = "moving"
        self.cluster.create_topic(topic, self.PARTITIONS, {"min.insync.replicas": 2}, replication_factor=3)
        self.cluster.create_topic("librdkafka", 2, {"min.insync.replicas": 2}, replication_factor=3)
        self.cluster.create_topic("java", 2, {"min.insync.replicas": 2}, replication_factor=3)
        load = salted_load.Load(
            SOURCE_ID, topic, self.PARTITIONS, [self.proxy], seed=SEED, pids=itertools.count, share_of_new=0.05
        )
        self.addCleanup(load.abandon)
        load.start()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            clients = [pool.submit(self.librdkafka, 4000), pool.submit(self.java, 4000)]
            steps = [self.move, self.kill, self.add_and_remove, self.restart_the_proxy]
            for step in steps + [self.restart_the_controller] * IS_LONG:
                step()
                self.elect_leaders()
                seen = len(load.acknowledged)
                load.wait_for(lambda: len(load.acknowledged) > seen + 2 * self.PARTITIONS, SECONDS)
            for client in clients:
                client.result()
        load.stop()
        self.judge(load, topic)

    # --- What happens meanwhile ---

    def move(self):
        """Node 1001 stops, and comes up at another port."""
        self.cluster.stop(FAR)
        self.cluster.move(FAR)
        wait_until(lambda: self.proxy.knows(FAR, self.cluster.address(FAR)), SECONDS, "the proxy to follow the node")
        self.assertEqual(self.nodes_in(self.connect(self.proxy, FAR))[FAR], self.proxy.node_address(SOURCE_ID, FAR))

    def kill(self):
        """Node 2147483647 dies, and its leaders move; it comes back with its port."""
        self.cluster.kill(LAST)
        wait_until(lambda: LAST not in self.cluster.leaders("moving").values(), SECONDS, "leaders to move")
        self.assert_closed(self.connect(self.proxy, LAST))
        self.cluster.start(LAST)
        self.nodes_in(self.connect(self.proxy, LAST))

    def add_and_remove(self):
        """Node 7 comes, has a leader, and goes."""
        self.cluster.add(ADDED)
        wait_until(lambda: self.proxy.knows(ADDED, self.cluster.address(ADDED)), SECONDS, "the proxy to know the node")
        self.cluster.create_topic("added", leaders=[ADDED])
        self.assert_produces(self.proxy, "added", ADDED)
        self.cluster.remove(ADDED)
        wait_until(lambda: ADDED not in self.nodes_in(self.connect(self.proxy)), SECONDS, "the node to be gone")
        self.assert_closed(self.connect(self.proxy, ADDED))

    def restart_the_proxy(self):
        """Clients with cached metadata find the nodes at the same ports."""
        before = self.proxy.sources[SOURCE_ID].first_port
        self.proxy.stop()
        self.proxy.start()
        self.proxy.kill()
        self.proxy.start()
        self.assertEqual(self.proxy.sources[SOURCE_ID].first_port, before)
        self.nodes_in(self.connect(self.proxy, FAR))  # a node's own port, before any other

    def restart_the_controller(self):
        """The only one, so meanwhile nothing can be decided."""
        self.cluster.stop(CONTROLLER)
        self.assert_closed(self.connect(self.proxy, CONTROLLER))
        self.cluster.start(CONTROLLER)
        self.nodes_in(self.connect(self.proxy, CONTROLLER))

    def elect_leaders(self):
        """Each partition gets its preferred leader again, once that is in sync."""
        replicas = {row["partition_index"]: row["replica_nodes"] for row in self.cluster.metadata("moving")["partitions"]}

        def are_preferred():
            with self.cluster.connect() as connection:
                connection.call("ElectLeaders", 2)
            return all(replicas[partition][0] == leader for partition, leader in self.cluster.leaders("moving").items())

        wait_until(are_preferred, SECONDS, "the preferred leaders")

    def librdkafka(self, records):
        options = {"per_second": 200, "set": "message.timeout.ms=200000"}
        command = programs.load_command(self.proxy.address(SOURCE_ID), "librdkafka", "lz4", records, 2, 1, **options)
        (done,) = programs.load(command)
        self.assertEqual(done["acknowledged"], records)

    def java(self, records):
        path = self.cluster.directory / "java.properties"
        path.write_text("bootstrap.servers=%s:%d\ndelivery.timeout.ms=200000\n" % self.proxy.address(SOURCE_ID))
        arguments = ["--num-records", records, "--record-size", 100, "--throughput", 200, "--producer.config", path]
        output = self.cluster.tool("ProducerPerformance", "--topic", "java", *arguments, timeout=2 * SECONDS)
        self.assertIn(f"{records} records sent", output)
        self.assertNotIn("TimeoutException", output)

    # --- And in the end ---

    def judge(self, load, topic):
        stored = {}  # identity: [(sequence, producer id), ...] in the order of the log
        for partition, batches in read_batches(self.cluster, topic).items():
            for entry in batches:
                identity, sequence = salted_load.identity_of(entry)
                self.assertEqual(identity.partition, partition)
                stored.setdefault(identity, []).append((sequence, entry.producer_id))
        for identity, found in stored.items():
            self.assertEqual({producer_id for _, producer_id in found}, {mapped(REGION, identity.pid)}, identity)
            first_copies = list(dict.fromkeys(sequence for sequence, _ in found))
            self.assertEqual(first_copies, sorted(first_copies), identity)
        for sent in load.acknowledged:
            copies = [sequence for sequence, _ in stored.get(sent.identity, [])].count(sent.sequence)
            self.assertGreaterEqual(copies, 1, (sent.identity, sent.sequence))
            self.assertLessEqual(copies, 1 + sent.lost_answers, (sent.identity, sent.sequence))


on_each_version(globals(), OneNode, ThreeNodes)

if __name__ == "__main__":
    unittest.main()
