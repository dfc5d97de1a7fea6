"""The admin endpoint: whether the proxy lives, whether it is ready, and what it has counted."""

import http.client
import json
import unittest

from tests.proxy.peers import TIMEOUT, ScriptedBroker, SessionCase, batch, produce, proxy_for, wait_for_log
from tests.support import ports
from tests.support.process import wait_until


class AdminCase(SessionCase):
    def ask(self, path, method="GET"):
        """(status, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        self.addCleanup(connection.close)
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()

    @classmethod
    def start(cls, broker):
        cls.port = ports.free_ports()
        cls.proxy = cls.enterClassContext(proxy_for(broker, extra={"admin": {"listen": f"127.0.0.1:{cls.port}"}}))


class Admin(AdminCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(ScriptedBroker())
        cls.start(cls.broker)
        wait_for_log(cls.proxy, "node", "id=0")

    def test_it_lives_and_is_ready_when_the_destination_has_told_its_nodes(self):
        self.assertEqual(self.ask("/livez"), (200, "ok\n"))
        self.assertEqual(self.ask("/readyz"), (200, "ok\n"))
        self.assertEqual(self.ask("/readyz?verbose"), (200, "ok\n"))

    def test_what_passes_is_counted_by_source(self):
        client, upstream = self.session()
        client.send("Produce", 9, produce(batch()))
        client.send("Produce", 9, produce(batch(producer_epoch=-1)))
        for _ in range(2):
            upstream.answer(upstream.request())
            client.response("Produce", 9)

        def counters():
            return json.loads(self.ask("/api/v1/status")[1])["sources"][0]["counters"]

        self.assertEqual(counters()["batches_mapped"], 1)
        self.assertEqual(counters()["batches_refused"]["negative epoch"], 1)
        status, text = self.ask("/metrics")
        self.assertEqual(status, 200)
        self.assertIn('mirrorpid_batches_mapped_total{source="eu"} 1', text)
        self.assertIn('mirrorpid_batches_refused_total{source="eu",reason="negative epoch"} 1', text)

    def test_the_status_names_sources_and_nodes(self):
        status, text = self.ask("/api/v1/status")
        told = json.loads(text)
        self.assertEqual((status, told["ready"]), (200, True))
        self.assertEqual(told["destination_nodes"], [{"id": 0, "address": self.broker.address}])
        self.assertEqual((told["sources"][0]["name"], told["sources"][0]["region"]), ("eu", 0x71720375))

    def test_other_paths_and_methods_are_told_what_there_is(self):
        self.assertEqual(self.ask("/")[0], 404)
        self.assertIn("/metrics", self.ask("/nothing")[1])
        self.assertEqual(self.ask("/metrics", "POST")[0], 405)
        self.assertEqual(self.ask("/livez", "HEAD"), (200, ""))


class NotReady(AdminCase):
    def test_a_destination_that_does_not_answer_is_not_ready_and_becomes_ready(self):
        port = ports.free_ports()
        broker = type("Address", (), {"address": f"127.0.0.1:{port}"})()
        self.start(broker)
        self.assertEqual(self.ask("/livez")[0], 200)
        self.assertEqual(self.ask("/readyz")[0], 503)
        with ScriptedBroker(port=port):
            wait_until(lambda: self.ask("/readyz")[0] == 200, TIMEOUT, "readiness")


if __name__ == "__main__":
    unittest.main()
