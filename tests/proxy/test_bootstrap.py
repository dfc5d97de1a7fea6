"""The destination's bootstrap servers: absent, mute, late, over IPv6."""

import socket
import unittest

from tests.proxy.peers import (
    CLUSTER_ID,
    TIMEOUT,
    Client,
    ScriptedBroker,
    SessionCase,
    black_hole,
    proxy_for,
    wait_for_log,
)
from tests.support import ports
from tests.support.mirrorpid import Source
from tests.support.process import wait_until


class Bootstrap(SessionCase):
    def test_a_black_hole_is_passed_over_within_the_connect_timeout(self):
        listener, fillers = black_hole()
        self.addCleanup(lambda: [sock.close() for sock in (listener, *fillers)])
        self.broker = self.enterContext(ScriptedBroker())
        bootstrap = f"127.0.0.1:{listener.getsockname()[1]}"
        self.proxy = proxy_for(self.broker, limits={"connect_timeout": "500ms"})
        self.proxy.bootstrap.insert(0, bootstrap)
        self.enterContext(self.proxy)
        self.session()  # the kernel's own patience would outlast this test's
        self.session()  # the one that answered is asked first now

    def test_a_server_that_takes_connections_and_never_answers_is_passed_over_after_a_while(self):
        mute = self.enterContext(socket.create_server(("127.0.0.1", 0), backlog=50))
        self.broker = self.enterContext(ScriptedBroker())
        self.proxy = proxy_for(self.broker, limits={"drain_timeout": "1s"})
        self.proxy.bootstrap.insert(0, f"127.0.0.1:{mute.getsockname()[1]}")
        self.enterContext(self.proxy)
        slow = self.client()
        slow.send("ListOffsets", 1)  # which brokers may take long to answer
        client = self.client()
        client.send("ApiVersions", 0)
        self.assertEqual(client.read_to_end(), b"")  # a client tries again
        self.assertTrue(slow.is_silent(1))
        wait_for_log(self.proxy, "does not answer", f"127.0.0.1:{mute.getsockname()[1]}")
        # A stop would say that it is cut off, as long as its answer is waited for.
        descriptors = self.proxy.fds()
        slow.close()
        wait_until(lambda: self.proxy.fds() <= descriptors - 2, TIMEOUT, "the session without an answer to end")
        self.session()

    def test_no_server_at_all_closes_with_a_line(self):
        port = ports.free_ports()
        self.broker = ScriptedBroker()
        self.broker.close()
        self.proxy = proxy_for(self.broker)
        self.proxy.bootstrap = [f"127.0.0.1:{port}"]
        self.enterContext(self.proxy)
        client = self.client()
        client.send("ApiVersions", 0)
        self.assertEqual(client.read_to_end(), b"")
        wait_for_log(self.proxy, "cannot be reached", "node=bootstrap", f"127.0.0.1:{port}", "refused")

    def test_a_destination_that_comes_up_after_the_proxy_is_found(self):
        self.broker = ScriptedBroker()
        address = self.broker.address
        self.broker.close()
        self.proxy = proxy_for(self.broker)
        self.enterContext(self.proxy)
        wait_for_log(self.proxy, "does not tell its nodes")
        self.broker = self.enterContext(ScriptedBroker(port=int(address.rpartition(":")[2])))
        wait_for_log(self.proxy, "tells its nodes again")
        self.session(node=0)

    def test_ipv6_at_both_ends(self):
        if not socket.has_ipv6:
            self.skipTest("this machine has no IPv6")
        self.broker = self.enterContext(ScriptedBroker(host="::1"))
        first = ports.free_ports(2)
        nodes = {"advertise": "::1", "first_port": first + 1, "count": 1}
        extra = {"listen": f"[::1]:{first}", "nodes": nodes}
        self.proxy = proxy_for(self.broker, sources=[Source("eu", CLUSTER_ID, nodes=0, extra=extra)])
        self.proxy._accepts = lambda: "serving" in self.proxy.log()
        self.enterContext(self.proxy)
        wait_for_log(self.proxy, "node", "id=0", "[::1]")
        for port in (first, first + 1):
            client = Client(("::1", port))
            self.addCleanup(client.close)
            client.send("Metadata", 12)
            upstream, request = self.upstream_of(client)
            upstream.answer(request, {"brokers": [{"node_id": 0, "host": "internal", "port": 9092}]})
            (row,) = client.response("Metadata", 12)[1]["brokers"]
            self.assertEqual((row["host"], row["port"]), ("::1", first + 1))


if __name__ == "__main__":
    unittest.main()
