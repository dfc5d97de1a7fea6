"""Logins at real brokers, through mirrorpid: by bare tokens and by requests, plain and over TLS, and again and again on
a connection that lives."""

import concurrent.futures
import json
import shutil
import unittest

from tests.end_to_end import kafka, programs, secured
from tests.end_to_end.versions import VERSIONS, on_each_version
from tests.support import kafka_batch, kafka_wire
from tests.support.authority import Authority
from tests.support.mapping import mapped, region_of
from tests.support.mirrorpid import Mirrorpid, Source
from tests.support.process import wait_until

SOURCE_ID = "MkU3OEVBNTcwNTJENDM2Qg"
LOGIN_LIFETIME = 5000  # ms
LOAD_SECONDS, LOAD_PER_SECOND = 16, 300  # several lifetimes
UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 33, 34, 58

clusters = {}
authority = None


def setUpModule():
    global authority
    programs.check_built()
    if not shutil.which("openssl"):
        raise unittest.SkipTest("the openssl command, which makes the certificates, is not installed")
    authority = Authority()
    for name in ("broker", "server"):
        authority.issue(name)
    for version in VERSIONS:
        clusters[version] = secured.SecuredCluster(version, authority, LOGIN_LIFETIME)
    kafka.start_all(clusters.values())
    for cluster in clusters.values():
        unittest.addModuleCleanup(cluster.close)


class Logins:
    version = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = clusters[cls.version]
        cls.proxies = {listener: cls.enterClassContext(cls.proxy_for(listener)) for listener in secured.PROTOCOLS}
        for proxy in cls.proxies.values():
            wait_until(lambda: " node " in proxy.log() and "id=1" in proxy.log(), 120, "the proxy to know node 1")

    @classmethod
    def proxy_for(cls, listener):
        """TLS on both sides, or on none."""
        properties = secured.librdkafka_properties(listener, authority)
        destination = {"bootstrap_servers": cls.cluster.login_bootstrap(listener), "client": properties}
        source = {}
        if listener == "secure":
            destination["tls"] = {"ca_file": authority / "ca.pem"}
            source["tls"] = {"cert_file": authority / "server.pem", "key_file": authority / "server.key"}
        return Mirrorpid([Source("eu", SOURCE_ID, extra=source)], bootstrap=[], extra={"destination": destination})

    def connect(self, listener="login", node=None):
        proxy = self.proxies[listener]
        address = proxy.address("eu") if node is None else proxy.node_address("eu", node)
        client = secured.Client(address, authority.client_context() if listener == "secure" else None)
        self.addCleanup(client.close)
        return client

    def assert_produces(self, client, topic, sequence=0):
        records = kafka_batch.build([(b"k", b"v")], producer_id=5, producer_epoch=0, base_sequence=sequence)
        partition = {"index": 0, "records": records}
        answer = client.call("Produce", 9, {"topic_data": [{"name": topic, "partition_data": [partition]}]})
        self.assertEqual(answer["responses"][0]["partition_responses"][0]["error_code"], 0)

    def test_every_mechanism_by_both_versions_of_the_handshake_plain_and_over_tls(self):
        for listener in secured.PROTOCOLS:
            self.cluster.create_topic(f"logins-{listener}")
            for mechanism in secured.MECHANISMS:
                for version in (0, 1):
                    with self.subTest(listener=listener, mechanism=mechanism, version=version):
                        for node in (None, 1):
                            client = self.connect(listener, node)
                            client.call("ApiVersions", 0)
                            client.login(mechanism, version)
                            self.assert_produces(client, f"logins-{listener}")
            for batch in self.cluster.raw_batches(f"logins-{listener}", 0):
                self.assertEqual(batch.producer_id, mapped(region_of(SOURCE_ID), 5))

    def test_a_request_may_follow_the_last_token_at_once(self):
        client = self.connect()
        client.handshake("PLAIN", 0)
        client.send_token(b"\0mirror\0secret")
        client.send("Metadata", 9, {"topics": []})
        self.assertEqual(client.receive_token(), b"")
        self.assertEqual([broker["node_id"] for broker in client.receive()["brokers"]], [1])

    def test_a_wrong_password_ends_the_connection_and_is_not_in_the_log(self):
        client = self.connect()
        client.handshake("PLAIN", 0)
        client.send_token(b"\0mirror\0guessed")
        with self.assertRaises((kafka_wire.Closed, ConnectionError)):
            client.receive_token()
        wait_until(lambda: "refuses a login" in self.proxies["login"].log(), 60, "a line in the log")
        with self.assertRaises(secured.RefusedLogin) as refused:
            self.connect().login("PLAIN", 1, iter_login(b"\0mirror\0guessed"))
        self.assertEqual(refused.exception.args[0], FAILED)
        for proxy in self.proxies.values():
            self.assertNotIn("guessed", proxy.log())
            self.assertNotIn("secret", proxy.log())

    def test_a_bearer_token_that_is_refused_is_told_before_the_connection_ends(self):
        client = self.connect()
        client.handshake("OAUTHBEARER", 0)
        client.send_token(b"n,,\1auth=Bearer no.token.\1\1")
        self.assertIn("status", json.loads(client.receive_token()))
        client.send_token(b"\1")
        with self.assertRaises((kafka_wire.Closed, ConnectionError)):
            client.receive_token()

    def test_a_mechanism_that_the_broker_does_not_have_is_told(self):
        for version in (0, 1):
            with self.assertRaises(secured.RefusedLogin) as refused:
                self.connect().handshake("GSSAPI", version)
            self.assertEqual(refused.exception.args[0], UNSUPPORTED_MECHANISM)
            self.assertEqual(set(refused.exception.args[1]), set(secured.MECHANISMS))

    def test_a_handshake_where_no_login_is_due_changes_nothing(self):
        with Mirrorpid([Source("eu", SOURCE_ID)], bootstrap=self.cluster.bootstrap) as proxy:
            client = secured.Client(proxy.address("eu"))
            self.addCleanup(client.close)
            for version in (0, 1):
                with self.assertRaises(secured.RefusedLogin) as refused:
                    client.handshake("PLAIN", version)
                self.assertEqual(refused.exception.args[0], ILLEGAL_STATE)
                self.assertEqual([broker["node_id"] for broker in client.call("Metadata", 9)["brokers"]], [1])

    def test_a_second_login_between_two_batches(self):
        self.cluster.create_topic("again")
        for mechanism in secured.MECHANISMS:
            for version in (0, 1):
                with self.subTest(mechanism=mechanism, version=version):
                    client = self.connect()
                    first = client.login(mechanism, version)
                    self.assertIn(first, (LOGIN_LIFETIME, None))
                    self.assert_produces(client, "again")
                    client.login(mechanism, version)
                    self.assert_produces(client, "again", 1)

    def test_without_a_second_login_the_broker_ends_the_connection_when_its_time_is_over(self):
        client = self.connect()
        client.login("PLAIN", 1)

        def is_ended():
            try:
                client.call("Metadata", 9, {"topics": []})
            except (kafka_wire.Closed, ConnectionError):
                return True

        wait_until(is_ended, 120, "the broker to end the connection")

    def test_clients_that_log_in_again_under_load_lose_nothing(self):
        """Java clients do so on their connections; librdkafka of this age lets the broker end them, and connects."""
        connections = self.proxies["login"].log().count("connected to a broker")
        loads = {}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for listener, mechanism in (("login", "PLAIN"), ("login", "SCRAM-SHA-512"), ("secure", "OAUTHBEARER")):
                topic = f"java-{mechanism.lower()}"
                self.cluster.create_topic(topic)
                loads[topic] = pool.submit(self.java_load, listener, mechanism, topic)
            self.cluster.create_topic("librdkafka")
            loads["librdkafka"] = pool.submit(self.librdkafka_load, "secure", "librdkafka")
            for topic, load in loads.items():
                with self.subTest(topic=topic):
                    load.result()
                    self.assertGreaterEqual(self.cluster.end_offset(topic, 0), LOAD_SECONDS * LOAD_PER_SECOND)
        for proxy in self.proxies.values():
            self.assertNotIn("cannot be read", proxy.log())
        self.assertNotIn("Failed re-authentication", self.cluster.broker_log())
        # Of each of the two Java clients there: one to the bootstrap server, one to the node. Without a second login
        # there would be one more in each lifetime; on a busy machine one may come too late now and then.
        connections = self.proxies["login"].log().count("connected to a broker") - connections
        self.assertLess(connections, 2 * (1 + LOAD_SECONDS * 1000 // LOGIN_LIFETIME))

    def java_load(self, listener, mechanism, topic):
        address = self.proxies[listener].address("eu")
        properties = secured.java_properties(address, listener, mechanism, authority)
        path = self.cluster.directory / f"{topic}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        records = ["--num-records", LOAD_SECONDS * LOAD_PER_SECOND, "--record-size", 100]
        records += ["--throughput", LOAD_PER_SECOND, "--producer.config", path]
        output = self.cluster.tool("ProducerPerformance", "--topic", topic, *records)
        self.assertIn(f"{LOAD_SECONDS * LOAD_PER_SECOND} records sent", output)
        self.assertNotIn("TimeoutException", output)

    def librdkafka_load(self, listener, topic):
        properties = secured.librdkafka_properties(listener, authority)
        more = " ".join(f"{name}={value}" for name, value in properties.items())
        records = LOAD_SECONDS * LOAD_PER_SECOND
        address = self.proxies[listener].address("eu")
        options = {"per_second": LOAD_PER_SECOND, "set": more}
        (done,) = programs.load(programs.load_command(address, topic, "lz4", records, 1, 1, **options))
        self.assertEqual(done["acknowledged"], records)


def iter_login(token):
    """A mechanism of one token."""
    yield token


on_each_version(globals(), Logins)

if __name__ == "__main__":
    unittest.main()
