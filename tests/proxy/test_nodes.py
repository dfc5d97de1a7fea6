"""Nodes of the destination, their listeners, and the addresses that clients are told."""

import time
import unittest

from tests.proxy.peers import (
    CLUSTER_ID,
    OTHER_CLUSTER_ID,
    TIMEOUT,
    Client,
    ScriptedBroker,
    SessionCase,
    batch,
    kafka_batch,
    produce,
    proxy_for,
    records_of,
    wait_for_log,
)
from tests.support import ports
from tests.support.mapping import mapped, region_of
from tests.support.mirrorpid import Source
from tests.support.process import wait_until

HIDDEN = "broker.internal.example"  # must never reach a client


def endpoints(*nodes):
    return [{"node_id": node, "host": HIDDEN, "port": 9092} for node in nodes]


class Addresses(SessionCase):
    """Nodes 0 to 3 have listeners."""

    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(ScriptedBroker())
        cls.proxy = cls.enterClassContext(proxy_for(cls.broker))
        wait_for_log(cls.proxy, "node", "id=0")

    def setUp(self):
        self.connected, self.upstream = self.session()

    def exchange(self, api, version, response, request=None):
        """(raw response, its body) as the client gets it."""
        self.connected.send(api, version, request)
        self.upstream.answer(self.upstream.request(), response)
        return self.connected.response(api, version)[1]

    def assert_advertised(self, rows, *nodes):
        got = [(row.get("node_id", row.get("broker_id")), row["host"], row["port"]) for row in rows]
        self.assertEqual(got, [(node, *self.proxy.node_address("eu", node)) for node in nodes])

    def test_metadata_in_every_version_names_the_listeners_of_known_nodes_alone(self):
        for version in range(14):
            with self.subTest(version):
                body = {"brokers": endpoints(0, 7, 2), "controller_id": 7}
                answer = self.exchange("Metadata", version, body, {"topics": []})
                self.assert_advertised(answer["brokers"], 0, 2)
                self.assertEqual(answer.get("controller_id", 7), 7)
        wait_for_log(self.proxy, "has no listener", "node=7")

    def test_an_empty_list_of_brokers_stays_empty_and_unbinds_nothing(self):
        self.assertEqual(self.exchange("Metadata", 12, {})["brokers"], [])
        self.assert_advertised(self.exchange("Metadata", 12, {"brokers": endpoints(0)})["brokers"], 0)
        self.session(node=0)

    def test_describe_cluster(self):
        for version in range(3):
            with self.subTest(version):
                brokers = [{"broker_id": node, "host": HIDDEN, "port": 9092} for node in (1, 9)]
                answer = self.exchange("DescribeCluster", version, {"brokers": brokers, "cluster_id": "c"})
                self.assert_advertised(answer["brokers"], 1)

    def test_a_coordinator_on_an_unmapped_node_becomes_an_error_entry(self):
        for version in range(7):
            with self.subTest(version):
                if version < 4:
                    answer = self.exchange("FindCoordinator", version, endpoints(9)[0])
                    entries, known = [answer], self.exchange("FindCoordinator", version, endpoints(3)[0])
                else:
                    rows = [{"key": str(node), **endpoints(node)[0]} for node in (9, 3)]
                    entries = self.exchange("FindCoordinator", version, {"coordinators": rows})["coordinators"]
                    known = entries[1]
                row = entries[0]
                self.assertEqual((row["error_code"], row["node_id"], row["host"], row["port"]), (15, -1, "", -1))
                self.assert_advertised([known], 3)

    def test_a_leader_change_told_by_produce_fetch_and_share_acknowledge(self):
        for api, first, last in (("Produce", 10, 13), ("Fetch", 16, 18), ("ShareAcknowledge", 1, 2)):
            for version in range(first, last + 1):
                with self.subTest(api=api, version=version):
                    request = {"member_id": "m"} if "Share" in api else None
                    answer = self.exchange(api, version, {"node_endpoints": endpoints(1, 8)}, request)
                    self.assert_advertised(answer["node_endpoints"], 1)

    def fetched(self, records):
        partition = {"records": records, "current_leader": {"leader_id": 1, "leader_epoch": 4}}
        return {"responses": [{"partitions": [partition]}], "node_endpoints": endpoints(1)}

    def test_a_long_fetch_streams_and_its_addresses_are_blanked(self):
        for version in (16, 17, 18):
            for records in (batch(payload=b"x" * 70_000), bytes(5 << 20)):
                with self.subTest(version=version, size=len(records)):
                    answer = self.exchange("Fetch", version, self.fetched(records))
                    self.assertEqual(answer["responses"][0]["partitions"][0]["records"], records)
                    self.assertNotIn("node_endpoints", answer)
                    self.assertEqual({*b"".join(answer["_tags"].values())}, {0})

    def test_a_long_share_fetch_too(self):
        for version in (1, 2):
            records = batch(payload=b"x" * 100_000)
            body = {"responses": [{"partitions": [{"records": records}]}], "node_endpoints": endpoints(0, 1)}
            answer = self.exchange("ShareFetch", version, body, {"member_id": "m"})
            self.assertEqual(answer["responses"][0]["partitions"][0]["records"], records)
            self.assertEqual(answer["node_endpoints"], [])

    def test_a_short_share_fetch_names_the_listeners(self):
        body = {"responses": [{"partitions": [{"records": batch()}]}], "node_endpoints": endpoints(0, 6)}
        answer = self.exchange("ShareFetch", 2, body, {"member_id": "m"})
        self.assert_advertised(answer["node_endpoints"], 0)


class Listeners(SessionCase):
    """Two brokers, the nodes 0 and 1."""

    def setUp(self):
        self.broker = self.enterContext(ScriptedBroker(0))
        self.other = self.enterContext(ScriptedBroker(1))
        self.broker.nodes = {0: ("127.0.0.1", self.broker.port), 1: ("127.0.0.1", self.other.port)}

    def start(self, **options):
        self.proxy = self.enterContext(proxy_for(self.broker, **options))
        wait_for_log(self.proxy, "node", "id=0")

    def test_the_listener_of_a_node_reaches_that_node_and_nothing_else(self):
        self.start()
        for node, broker in ((0, self.broker), (1, self.other)):
            client = self.client(node=node)
            client.send("ApiVersions", 0)
            upstream, request = self.upstream_of(client, broker)
            upstream.answer(request, {"api_keys": []})
            client.response("ApiVersions", 0)
        self.assertEqual((self.broker.dialled, self.other.dialled), (1, 1))

    def test_a_client_with_cached_metadata_finds_the_nodes_at_the_same_ports_after_a_restart(self):
        self.start()
        self.session(node=0)
        before = [self.proxy.node_address("eu", node) for node in range(4)]
        self.proxy.stop()
        self.proxy.start()
        self.assertEqual([self.proxy.node_address("eu", node) for node in range(4)], before)
        self.session(node=0)  # the first connection of all, to a node's own port

    def test_a_node_that_moves_is_followed_and_its_listener_stays(self):
        self.start()
        third = self.enterContext(ScriptedBroker(1))
        client = self.client(node=1)
        client.send("ApiVersions", 0)
        old, request = self.upstream_of(client, self.other)
        old.answer(request, {"api_keys": []})
        client.response("ApiVersions", 0)
        self.broker.nodes[1] = ("127.0.0.1", third.port)
        wait_for_log(self.proxy, "node", "id=1", f"address=127.0.0.1:{third.port}")
        moved = self.client(node=1)
        moved.send("ListOffsets", 1)
        new, request = self.upstream_of(moved, third)
        new.answer(request)
        self.assertEqual(moved.response("ListOffsets", 1)[0], 1)
        client.send("ListOffsets", 1)  # the old connection lives on
        old.answer(old.request())
        self.assertEqual(client.response("ListOffsets", 1)[0], 2)

    def test_a_failed_dial_makes_the_proxy_look_again_at_once(self):
        self.start()
        third = self.enterContext(ScriptedBroker(1))
        self.other.close()
        self.broker.nodes[1] = ("127.0.0.1", third.port)
        looks, begin = self.broker.looks, time.monotonic()
        client = self.client(node=1)
        client.send("ListOffsets", 1)
        self.assertEqual(client.read_to_end(), b"")
        wait_for_log(self.proxy, "cannot be reached", "node=1", "refused")
        wait_until(lambda: self.broker.looks > looks, TIMEOUT, "a look at the cluster")
        self.assertLess(time.monotonic() - begin, 5)  # the regular interval

    def test_a_broker_list_that_becomes_empty_forgets_nothing(self):
        self.start()
        nodes, self.broker.nodes = self.broker.nodes, {}
        looks = self.broker.looks
        # A request for a look: a node that has never been.
        client = self.client(node=3)
        client.send("ListOffsets", 1)
        wait_until(lambda: self.broker.looks > looks, TIMEOUT, "a look at the cluster")
        self.session(node=0)
        self.broker.nodes = nodes
        client.close()

    def test_the_listener_of_an_unknown_node_closes_within_five_seconds_and_says_why(self):
        self.start()
        client = self.client(node=3)
        begin = time.monotonic()
        client.send("ListOffsets", 1)
        self.assertEqual(client.read_to_end(), b"")
        self.assertLess(time.monotonic() - begin, 8)
        wait_for_log(self.proxy, "warn", "node=3", "the destination has no such node", "source=eu")

    def test_a_node_that_becomes_known_while_its_client_waits_is_reached(self):
        self.start()
        client = self.client(node=3)
        client.send("ListOffsets", 1)
        self.broker.nodes[3] = ("127.0.0.1", self.other.port)
        upstream, request = self.upstream_of(client, self.other)
        upstream.answer(request)
        self.assertEqual(client.response("ListOffsets", 1)[0], 1)

    def test_node_ids_far_apart_by_a_map(self):
        ids = [0, 7, 1001, 100_000, 2_147_483_647]
        first = ports.free_ports(len(ids))
        self.broker.nodes = {node: ("127.0.0.1", self.broker.port) for node in (*ids, 8)}
        nodes = {node: f"127.0.0.1:{first + i}" for i, node in enumerate(ids)}
        source = Source("eu", CLUSTER_ID, nodes=0, extra={"nodes": {"map": {str(k): v for k, v in nodes.items()}}})
        self.start(sources=[source])
        client, upstream = self.session()
        client.send("Metadata", 12)
        upstream.answer(upstream.request(), {"brokers": endpoints(*ids, 8)})
        brokers = client.response("Metadata", 12)[1]["brokers"]
        self.assertEqual([(row["node_id"], f"{row['host']}:{row['port']}") for row in brokers], list(nodes.items()))
        wait_for_log(self.proxy, "has no listener", "node=8", "source=eu")
        for i in range(len(ids)):
            node_client = Client(("127.0.0.1", first + i))
            self.addCleanup(node_client.close)
            node_client.send("ListOffsets", 1)
            node_upstream, request = self.upstream_of(node_client)
            node_upstream.answer(request)
            self.assertEqual(node_client.response("ListOffsets", 1)[0], 1)

    def test_what_is_advertised_may_differ_from_what_is_bound(self):
        port = ports.free_ports()
        nodes = {"map": {"0": {"advertise": "balancer.example:443", "listen_port": port}}}
        self.start(sources=[Source("eu", CLUSTER_ID, nodes=0, extra={"nodes": nodes})])
        client, upstream = self.session()
        client.send("Metadata", 12)
        upstream.answer(upstream.request(), {"brokers": endpoints(0)})
        (row,) = client.response("Metadata", 12)[1]["brokers"]
        self.assertEqual((row["host"], row["port"]), ("balancer.example", 443))
        Client(("127.0.0.1", port)).close()

    def test_a_producer_id_that_would_become_minus_1_is_refused(self):
        self.start(sources=[Source("eu", "lkc-1", extra={"region": 0xFFFFFFFF})])
        client, upstream = self.session()
        for producer_id, base_offset in ((0x7FFFFFFF, 1), (0x7FFFFFFE, 0)):
            client.send("Produce", 9, produce(batch(producer_id), acks=0))
            (got,) = kafka_batch.split(records_of(upstream.request()))
            self.assertEqual(got.base_offset, base_offset)
        wait_for_log(self.proxy, "would be mapped to -1", "producer_id=2147483647")

    def test_two_sources_have_ports_and_regions_of_their_own(self):
        sources = [Source("eu", CLUSTER_ID), Source("us", OTHER_CLUSTER_ID)]
        sources.append(Source("odd", "lkc-1", extra={"region": 42}))
        self.start(sources=sources)
        for name, region in (("eu", region_of(CLUSTER_ID)), ("us", region_of(OTHER_CLUSTER_ID)), ("odd", 42)):
            client, upstream = self.session(source=name)
            client.send("Produce", 9, produce(batch(5), acks=0))
            (got,) = kafka_batch.split(records_of(upstream.request()))
            self.assertEqual(got.producer_id, mapped(region, 5))
            client.send("Metadata", 12)
            upstream.answer(upstream.request(), {"brokers": endpoints(1)})
            (row,) = client.response("Metadata", 12)[1]["brokers"]
            self.assertEqual((row["host"], row["port"]), self.proxy.node_address(name, 1))


if __name__ == "__main__":
    unittest.main()
