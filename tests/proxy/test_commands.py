"""The command line: what is printed where, and exit codes."""

import json
import re
import socket
import subprocess
import unittest

from tests.proxy.peers import CLUSTER_ID, OTHER_CLUSTER_ID, ScriptedBroker, SessionCase, proxy_for, wait_for_log
from tests.support import mirrorpid, ports
from tests.support.mapping import mapped, region_of
from tests.support.process import temporary_directory

SAME_REGION = ("4L6g3nShT-eMCtK--X86sw", "5L6g3nShT-eMCtK--X86sw")  # two ids, one region
F_42_5 = -9223371946660462587


def run(*arguments):
    """(exit code, stdout, stderr)"""
    command = [mirrorpid.program(), *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


class CommandCase(unittest.TestCase):
    def setUp(self):
        self.directory = temporary_directory("commands-")

    def write(self, text):
        path = self.directory / "mirrorpid.yaml"
        path.write_text(text)
        return path

    def config(self, *sources, top="state: off\n", first_port=21000):
        """Each source: the lines of a mapping, but for its ports."""
        rows = []
        for i, source in enumerate(sources):
            port = first_port + 10 * i
            rows.append(
                f"  - {source}\n    listen: 127.0.0.1:{port}\n"
                f"    nodes: {{advertise: localhost, first_port: {port + 1}, count: 2}}\n"
            )
        head = f"version: 1\n{top}destination:\n  bootstrap_servers: [\"127.0.0.1:9\"]\n"
        return self.write(head + "sources:\n" + "".join(rows))

    def assert_refused(self, path, *texts):
        """By check and by serve alike: exit code 2, each complaint with its place, nothing on stdout."""
        for command in ("check", "serve", "health"):
            code, out, err = run(command, "--config", path)
            self.assertEqual((code, out), (2, ""), err)
            for text in texts:
                self.assertIn(text, err)
        return err


class Map(unittest.TestCase):
    def test_ids_of_a_source_are_mapped_and_others_stay(self):
        code, out, err = run("map", "--region", 42, 5, -1, -7, 1 << 62 | 9, (1 << 31) + 5)
        self.assertEqual((code, err), (0, ""))
        lines = out.splitlines()
        self.assertIn(f"5 -> {F_42_5} 0x8000001500000005", lines[0])
        self.assertIn("-1 -> -1", lines[1])
        self.assertIn("-7 -> -7", lines[2])
        self.assertIn("-> 9 ", lines[3])
        self.assertIn(str(F_42_5), lines[4])
        self.assertIn("past 31 bits", lines[4])

    def test_a_region_follows_from_the_cluster_id(self):
        code, out, _ = run("map", "--cluster-id", CLUSTER_ID, 5)
        self.assertEqual(code, 0)
        self.assertIn(str(mapped(region_of(CLUSTER_ID), 5)), out)

    def test_json_has_ids_as_strings_since_they_do_not_survive_doubles(self):
        code, out, _ = run("map", "--region", 42, "--format", "json", 5, -7)
        self.assertEqual(code, 0)
        first, second = json.loads(out)
        self.assertEqual((first["pid"], first["mapped"], first["action"]), ("5", str(F_42_5), "map"))
        self.assertEqual(first["mapped_hex"], "0x8000001500000005")
        self.assertEqual((second["mapped"], second["action"]), ("-7", "pass"))

    def test_what_would_become_minus_1_is_refused(self):
        code, out, _ = run("map", "--region", 0xFFFFFFFF, 0x7FFFFFFF)
        self.assertEqual(code, 0)
        self.assertIn("refused", out)

    def test_wrong_usage_is_exit_code_2(self):
        for arguments in (["5"], ["--region", "42"], ["--region", "x", "5"], ["--region", "42", "five"]):
            with self.subTest(arguments):
                code, out, err = run("map", *arguments)
                self.assertEqual((code, out), (2, ""))
                self.assertTrue(err)

    def test_a_cluster_id_that_is_no_uuid_is_told_with_the_way_out(self):
        code, _, err = run("map", "--cluster-id", "lkc-7xz9q", 5)
        self.assertEqual(code, 2)
        self.assertIn("--region", err)


class Decode(unittest.TestCase):
    def test_a_mapped_id_names_region_and_producer_in_decimal_and_hexadecimal(self):
        for text in (F_42_5, "0x8000001500000005", "0X8000001500000005"):
            with self.subTest(text):
                code, out, _ = run("decode", text)
                self.assertEqual(code, 0)
                self.assertIn("region 42 (0x0000002a), producer 5", out)

    def test_a_small_negative_id_may_come_from_another_way_of_mirroring(self):
        code, out, _ = run("decode", -7)
        self.assertEqual(code, 0)
        self.assertIn("producer 5", out)

    def test_marked_unmapped_and_no_ids(self):
        code, out, _ = run("decode", 1 << 62 | 9, 17, -1)
        self.assertEqual(code, 0)
        marked, unmapped, none = out.splitlines()
        self.assertIn("the destination's own id 9", marked)
        self.assertIn("no proxy has mapped it", unmapped)
        self.assertIn("no producer", none)

    def test_json_has_ids_as_strings(self):
        code, out, _ = run("decode", "--format", "json", F_42_5, -1, 1 << 62 | 9)
        self.assertEqual(code, 0)
        first, second, third = json.loads(out)
        expected = {"pid": str(F_42_5), "pid_hex": "0x8000001500000005"}
        expected |= {"kind": "mapped", "region": 42, "producer": "5"}
        self.assertEqual(first, {**first, **expected})
        self.assertEqual(second["kind"], "none")
        expected = {"pid": str(1 << 62 | 9), "pid_hex": "0x4000000000000009", "kind": "marked", "producer": "9"}
        self.assertEqual(third, expected)

    def test_what_is_no_id_is_exit_code_2(self):
        for text in ("", "five", "0x", "0x1ffffffffffffffff", "9223372036854775808", "5 ", "1e3"):
            with self.subTest(text):
                code, out, err = run("decode", text)
                self.assertEqual((code, out), (2, ""))
                self.assertTrue(err)
        self.assertEqual(run("decode")[0], 2)


class Usage(unittest.TestCase):
    def test_the_version_is_one_line(self):
        code, out, err = run("version")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"\Amirrorpid \d+\.\d+\.\d+\n\Z")

    def test_help_is_no_error_and_names_every_command(self):
        code, out, _ = run("--help")
        self.assertEqual(code, 0)
        for command in ("serve", "check", "map", "decode", "demo", "health", "version"):
            self.assertIn(command, out)

    def test_no_command_an_unknown_one_and_a_missing_option_are_exit_code_2(self):
        for arguments in ([], ["frobnicate"], ["serve"], ["check", "--nonsense"]):
            with self.subTest(arguments):
                code, out, err = run(*arguments)
                self.assertEqual((code, out), (2, ""))
                self.assertTrue(err)


class BrokenConfiguration(CommandCase):
    def test_a_missing_file(self):
        path = self.directory / "absent.yaml"
        self.assert_refused(path, str(path))

    def test_all_errors_of_a_file_at_once_with_line_and_column(self):
        path = self.write(
            "version: 1\nstate: off\ndestination:\n  bootstrap_server: [a:1]\nsources:\n"
            "  - name: eu\n    cluster_id: not-a-uuid\n    listen: 127.0.0.1:99999\n"
            "    nodes: {advertise: h, first_port: 1000}\nlimits: {drain_timeout: 3 parsecs}\n"
        )
        err = self.assert_refused(path, "bootstrap_servers", "99999", "not-a-uuid", "parsecs")
        places = re.findall(re.escape(str(path)) + r":(\d+):(\d+): ", err)
        self.assertGreaterEqual(len({line for line, _ in places}), 4, err)

    def test_two_sources_that_share_a_region_without_a_state_topic(self):
        sources = [f"name: s{i}\n    cluster_id: {one}" for i, one in enumerate(SAME_REGION)]
        self.assert_refused(self.config(*sources), "region 2380166484 (0x8dde7554)", "'s0'", "'s1'", ":11:17: ")
        for top in ("", "state: {topic: t}\n"):
            self.assertEqual(run("check", "--config", self.config(*sources, top=top))[0], 0)

    def test_a_region_of_its_own_settles_it(self):
        sources = [f"name: s{i}\n    cluster_id: {one}" for i, one in enumerate(SAME_REGION)]
        code, out, err = run("check", "--config", self.config(sources[0], sources[1] + "\n    region: 7"))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("region 7 (0x00000007)", out)
        self.assertIn("region 2380166484 (0x8dde7554)", out)

    def test_the_same_uuid_in_two_spellings(self):
        # The last of 22 characters has four bits that do not count.
        sources = [f"name: s{i}\n    cluster_id: {one}" for i, one in enumerate((CLUSTER_ID, CLUSTER_ID[:-1] + "h"))]
        self.assert_refused(self.config(*sources), "same UUID", "'s0'")

    def test_a_cluster_id_that_is_no_uuid_names_the_fix(self):
        self.assert_refused(self.config("name: eu\n    cluster_id: lkc-7xz9q"), "lkc-7xz9q", "`region`", ":7:17")

    def test_a_node_s_port_past_65535(self):
        path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}", first_port=65534)
        self.assert_refused(path, "65536")

    def test_advertising_a_wildcard(self):
        for host in ("0.0.0.0", '"::"'):
            path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}")
            path.write_text(path.read_text().replace("advertise: localhost", f"advertise: {host}"))
            self.assert_refused(path, "wildcard", ":9:24: ")

    def test_librdkafka_is_asked_about_its_properties_and_no_secret_is_printed(self):
        path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}")
        good = path.read_text()
        for client, text in (
            ("{sasl.pasword: hunter2}", "sasl.pasword"),
            ("{sasl.mechanism: PLAIN, socket.timeout.ms: hunter2}", "socket.timeout.ms"),
        ):
            path.write_text(good.replace('["127.0.0.1:9"]', f'["127.0.0.1:9"]\n  client: {client}'))
            self.assertNotIn("hunter2", self.assert_refused(path, text))

    def test_a_certificate_that_is_not_there(self):
        source = f"name: eu\n    cluster_id: {CLUSTER_ID}\n    tls: {{cert_file: /absent.pem, key_file: /absent.key}}"
        self.assert_refused(self.config(source), "/absent.pem")


class Check(CommandCase):
    def test_a_good_file_is_told_in_text_and_json(self):
        path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}")
        code, out, err = run("check", "--config", path)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("no problems", out)
        code, out, _ = run("check", "--format", "json", "--config", path)
        (source,) = json.loads(out)["sources"]
        self.assertEqual((code, source["name"], source["region"]), (0, "eu", region_of(CLUSTER_ID)))

    def test_connect_tells_the_destination_s_nodes_and_those_without_a_listener(self):
        with ScriptedBroker() as broker:
            path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}")
            path.write_text(path.read_text().replace("127.0.0.1:9", broker.address))
            code, out, err = run("check", "--connect", "--config", path)
            self.assertEqual((code, err), (0, ""))
            self.assertIn(f"destination node 0: {broker.address}", out)
            broker.nodes[9] = ("127.0.0.1", broker.port)
            code, out, err = run("check", "--connect", "--config", path)
            self.assertEqual(code, 3)
            self.assertIn(f"destination node 9: {broker.address}", out)
            self.assertIn("node 9", err)
            code, out, _ = run("check", "--connect", "--format", "json", "--config", path)
            told = json.loads(out)
            self.assertEqual((code, [node["id"] for node in told["destination_nodes"]]), (3, [0, 9]))
            self.assertEqual(told["findings"], [{"source": "eu", "node_without_listener": 9}])

    def test_connect_without_a_destination_is_exit_code_1(self):
        path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}")
        path.write_text(path.read_text().replace("127.0.0.1:9", f"127.0.0.1:{ports.free_ports()}"))
        code, _, err = run("check", "--connect", "--config", path)
        self.assertEqual(code, 1)
        self.assertIn("does not answer", err)


    def test_every_property_that_librdkafka_does_not_take_is_named_at_its_place(self):
        path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}")
        client = '  client: {security.protocol: FOO, no.such: "1", sasl.password: secret, socket.timeout.ms: abc}\n'
        path.write_text(path.read_text().replace("sources:", client + "sources:"))
        err = self.assert_refused(path, ":5:12: destination.client: security.protocol", "no.such", "socket.timeout.ms")
        self.assertNotIn("abc", err)
        self.assertNotIn("FOO", err)

    def test_a_destination_that_is_one_of_our_own_listeners_is_refused(self):
        for port in (21000, 21001):
            path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}")
            path.write_text(path.read_text().replace("127.0.0.1:9", f"localhost:{port}"))
            self.assert_refused(path, "connect to itself", f"localhost:{port}")


class Shipped(unittest.TestCase):
    def test_the_configuration_of_the_compose_file_is_good(self):
        code, out, err = run("check", "--config", mirrorpid.REPOSITORY / "docker" / "mirrorpid.yaml")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("no problems", out)


class Serve(CommandCase):
    def test_too_few_descriptors_for_the_listeners_are_exit_code_1_and_say_what_helps(self):
        path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}", first_port=ports.free_ports(3))
        path.write_text(path.read_text().replace("count: 2", "count: 200"))
        done = subprocess.run(
            ["bash", "-c", 'ulimit -n 150 && exec "$@"', "bash", mirrorpid.program(), "serve", "--config", path],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("ulimit -Hn", done.stderr)
        self.assertIn("nodes.count", done.stderr)

    def test_a_port_in_use_is_exit_code_1_and_names_it(self):
        first = ports.free_ports(3)
        path = self.config(f"name: eu\n    cluster_id: {CLUSTER_ID}", first_port=first)
        for port, text in ((first, "source 'eu'"), (first + 2, "node 1")):
            with self.subTest(text), socket.create_server(("127.0.0.1", port)):
                code, out, err = run("serve", "--config", path)
                self.assertEqual((code, out), (1, ""))
                self.assertIn(f"127.0.0.1:{port}", err)
                self.assertIn("in use", err)
                self.assertIn(text, err)

    def test_a_second_proxy_of_the_same_file_does_not_share_the_ports_in_silence(self):
        with ScriptedBroker() as broker, proxy_for(broker) as proxy:
            code, _, err = run("serve", "--config", proxy.directory / "mirrorpid.yaml")
            self.assertEqual(code, 1)
            self.assertIn("in use", err)


class Running(SessionCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = cls.enterClassContext(ScriptedBroker())
        sources = [mirrorpid.Source("eu", CLUSTER_ID), mirrorpid.Source("us", OTHER_CLUSTER_ID)]
        cls.proxy = cls.enterClassContext(proxy_for(cls.broker, sources=sources, log={"format": "json"}))
        wait_for_log(cls.proxy, '"node"')
        cls.config = cls.proxy.directory / "mirrorpid.yaml"

    def health(self, *arguments, answers):
        command = [mirrorpid.program(), "health", "--config", self.config, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for error_code in answers:
                upstream = self.broker.accept()
                self.addCleanup(upstream.close)
                request = upstream.request()
                self.assertEqual((request.api, request.version), ("ApiVersions", 0))
                upstream.answer(request, {"error_code": error_code})
            out, _ = process.communicate(timeout=60)
            return process.returncode, out

    def test_health_asks_a_broker_through_each_listener(self):
        code, out = self.health(answers=[0, 0])
        self.assertEqual(code, 0)
        self.assertEqual([line.split()[0] for line in out.splitlines()], ["eu", "us"])
        code, out = self.health("--format", "json", answers=[0, 0])
        self.assertEqual((code, [row["ok"] for row in json.loads(out)]), (0, [True, True]))

    def test_health_is_bad_when_one_listener_is(self):
        code, out = self.health("--format", "json", answers=[0, 41])
        rows = json.loads(out)
        self.assertEqual((code, [row["ok"] for row in rows]), (1, [True, False]))
        self.assertIn("41", rows[1]["reason"])

    def test_health_does_not_wait_for_ever(self):
        code, out = self.health("--timeout-ms", "200", answers=[])
        self.assertEqual(code, 1)
        self.assertIn("200 ms", out)
        for _ in range(2):
            self.broker.accept().close()

    def test_health_of_a_proxy_that_does_not_run(self):
        path = temporary_directory("health-") / "mirrorpid.yaml"
        config = json.loads(self.config.read_text())
        config["sources"] = config["sources"][:1]
        first = ports.free_ports(5)
        config["sources"][0].update(listen=f"127.0.0.1:{first}")
        config["sources"][0]["nodes"].update(first_port=first + 1)
        path.write_text(json.dumps(config))
        code, out, _ = run("health", "--config", path)
        self.assertEqual(code, 1)
        self.assertIn("refused", out)

    def test_every_line_of_the_json_log_is_an_object_also_with_what_peers_send(self):
        client = self.client()
        client.send_bytes(b"GET /\"\\\n\xff\xfe HTTP/1.1\r\n")
        client.read_to_end()
        wait_for_log(self.proxy, "an HTTP request")
        for line in self.proxy.log().splitlines():
            entry = json.loads(line)
            self.assertGreaterEqual(set(entry), {"time", "level", "message"})
            self.assertRegex(entry["time"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


if __name__ == "__main__":
    unittest.main()
