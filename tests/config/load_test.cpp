#include "tests/config/files.hpp"

using namespace config;
using namespace config::test;
using namespace std::chrono_literals;

TEST_CASE("the least file is good and everything else has its default") {
  const Loaded loaded = load(good_file);
  CHECK(lines(loaded.problems) == Lines{});
  CHECK(lines(loaded.warnings) == Lines{});
  const Config& config = loaded.config;
  CHECK(config.version == 1);
  CHECK(config.destination.bootstrap_servers == std::vector<HostPort>{{"kafka", 9092}});
  CHECK_FALSE(config.destination.tls);
  CHECK(config.destination.client.empty());
  CHECK_FALSE(config.state);
  CHECK_FALSE(config.admin);
  CHECK(config.log.level == LogLevel::info);
  CHECK(config.log.format == LogFormat::text);
  CHECK(config.limits.frame_size_max == 104857600);
  CHECK(config.limits.in_flight_max == 256);
  CHECK(config.limits.drain_timeout == 30s);
  CHECK(config.limits.connect_timeout == 5s);
  CHECK(config.limits.threads == 0);

  REQUIRE(config.sources.size() == 1);
  const Source& source = config.sources[0];
  CHECK(source.name == "eu");
  CHECK(source.cluster_id == "A");
  CHECK_FALSE(source.region);
  CHECK(source.listen == HostPort{"127.0.0.1", 19092});
  CHECK(source.nodes.advertise == "proxy.test");
  CHECK(source.nodes.first_port == 19100);
  CHECK(source.nodes.first_node_id == 0);
  CHECK(source.nodes.count == 100);
  CHECK(source.nodes.map.empty());
  CHECK_FALSE(source.tls);
}

TEST_CASE("what others may complain about comes with its place") {
  const Loaded loaded = load(with("cluster_id: A", "cluster_id: A\n    region: 0x2a"));
  REQUIRE(lines(loaded.problems) == Lines{});
  const Source& source = loaded.config.sources.at(0);
  CHECK(source.region == 42U);
  CHECK(to_string(source.place) == "m.yaml:6:5");
  CHECK(to_string(source.cluster_id_place) == "m.yaml:7:17");
  CHECK(to_string(source.region_place) == "m.yaml:8:13");
  CHECK(to_string(source.listen_place) == "m.yaml:9:13");
  CHECK(to_string(source.nodes_place) == "m.yaml:10:5");
}

TEST_CASE("API keys to be hidden are numbers that can be one") {
  const auto with_hidden = [](const std::string& keys) {
    return load(
        with("bootstrap_servers: [\"kafka:9092\"]", "bootstrap_servers: [\"kafka:9092\"]\n  hidden_apis: " + keys));
  };
  const Loaded loaded = with_hidden("[300, 10005]");
  CHECK(lines(loaded.problems) == Lines{});
  CHECK(loaded.config.destination.hidden_apis == std::vector<std::int16_t>{300, 10005});
  CHECK(with_hidden("[-1, 32768]").problems.size() == 2);
  CHECK(with_hidden("300").problems.size() == 1);
}

TEST_CASE("every key of a file arrives") {
  const std::string file = existing_file;
  const Loaded loaded = load(
      "version: 1\n"
      "destination:\n"
      "  bootstrap_servers: [k1:1, \"[::1]:2\"]\n"
      "  tls: {ca_file: " +
      file + ", cert_file: " + file + ", key_file: " + file +
      ", server_name: kafka.test}\n"
      "  client: {security.protocol: SASL_SSL, sasl.username: me}\n"
      "state: \"no\"\n"
      "sources:\n"
      "  - name: a\n"
      "    cluster_id: id\n"
      "    region: 7\n"
      "    listen: 127.0.0.1:1000\n"
      "    nodes: {advertise: p.test, first_port: 2000, first_node_id: 5, count: 3}\n"
      "    tls: {cert_file: " +
      file + ", key_file: " + file + ", client_ca_file: " + file +
      "}\n"
      "admin: {listen: 127.0.0.1:3000}\n"
      "log: {level: debug, format: json}\n"
      "limits: {frame_size_max: 1KiB, in_flight_max: 1, drain_timeout: 1m, connect_timeout: 100ms, threads: 4}\n");
  REQUIRE(lines(loaded.problems) == Lines{});
  CHECK(lines(loaded.warnings) == Lines{});
  const Config& config = loaded.config;

  const Destination& destination = config.destination;
  CHECK(destination.bootstrap_servers == std::vector<HostPort>{{"k1", 1}, {"::1", 2}});
  REQUIRE(destination.tls);
  CHECK(destination.tls->ca_file == file);
  CHECK(destination.tls->cert_file == file);
  CHECK(destination.tls->key_file == file);
  CHECK(destination.tls->server_name == "kafka.test");
  CHECK(to_string(destination.tls->place) == "m.yaml:4:3");
  CHECK(to_string(destination.tls->ca_file_place) == "m.yaml:4:18");
  CHECK(destination.client ==
        std::vector<std::pair<std::string, std::string>>{{"security.protocol", "SASL_SSL"}, {"sasl.username", "me"}});
  REQUIRE(destination.client_places.size() == 2);
  CHECK(to_string(destination.client_places[1]) == "m.yaml:5:41");

  const Source& source = config.sources.at(0);
  CHECK(source.region == 7U);
  CHECK(source.nodes.first_node_id == 5);
  CHECK(source.nodes.count == 3);
  REQUIRE(source.tls);
  CHECK(source.tls->cert_file == file);
  CHECK(source.tls->key_file == file);
  CHECK(source.tls->client_ca_file == file);
  CHECK(to_string(source.tls->cert_file_place) == "m.yaml:13:22");

  REQUIRE(config.admin);
  CHECK(config.admin->listen == HostPort{"127.0.0.1", 3000});
  CHECK(to_string(config.admin->listen_place) == "m.yaml:14:17");
  CHECK(config.log.level == LogLevel::debug);
  CHECK(config.log.format == LogFormat::json);
  CHECK(config.limits.frame_size_max == 1024);
  CHECK(config.limits.in_flight_max == 1);
  CHECK(config.limits.drain_timeout == 60s);
  CHECK(config.limits.connect_timeout == 100ms);
  CHECK(config.limits.threads == 4);
}

TEST_CASE("consecutive nodes have consecutive ports, at home as for clients") {
  const Loaded loaded = load(with("first_port: 19100", "first_port: 65533, first_node_id: 2147483645, count: 3"));
  REQUIRE(lines(loaded.problems) == Lines{});
  const auto listeners = node_listeners(loaded.config.sources.at(0));
  REQUIRE(listeners.size() == 3);
  CHECK(listeners[0].node_id == 2147483645);
  CHECK(listeners[0].bind == HostPort{"127.0.0.1", 65533});
  CHECK(listeners[0].advertise == HostPort{"proxy.test", 65533});
  CHECK(listeners[2].node_id == 2147483647);
  CHECK(listeners[2].bind == HostPort{"127.0.0.1", 65535});
  CHECK(listeners[2].advertise == HostPort{"proxy.test", 65535});
}

TEST_CASE("mapped nodes have the ports of their addresses, unless told otherwise") {
  const Loaded loaded = load(with("{advertise: proxy.test, first_port: 19100}",
                                  "{map: {7: \"a.test:700\", 3: {advertise: \"b.test:443\", listen_port: 300}}}"));
  REQUIRE(lines(loaded.problems) == Lines{});
  const auto listeners = node_listeners(loaded.config.sources.at(0));
  REQUIRE(listeners.size() == 2);
  CHECK(listeners[0].node_id == 3);
  CHECK(listeners[0].bind == HostPort{"127.0.0.1", 300});
  CHECK(listeners[0].advertise == HostPort{"b.test", 443});
  CHECK(listeners[1].node_id == 7);
  CHECK(listeners[1].bind == HostPort{"127.0.0.1", 700});
  CHECK(listeners[1].advertise == HostPort{"a.test", 700});
}

TEST_CASE("variables are replaced in values, with defaults where they are unset or empty") {
  const Loaded loaded = load(
      "version: ${V}\n"
      "state: ${STATE:-off}\n"
      "destination:\n"
      "  bootstrap_servers: [\"${HOST}:${PORT:-9092}\"]\n"
      "  client: {a: \"$${V} $V $$ ${V}${V}\", b: \"${EMPTY}\", c: \"${EMPTY:-x:-y}\", d: \"${UNSET:-}\"}\n"
      "sources:\n"
      "  - name: '${V}'\n"
      "    cluster_id: ${V}\n"
      "    listen: 127.0.0.1:${V}\n"
      "    nodes: {advertise: \"${HOST}\", first_port: \"19${V}00\"}\n",
      {{"V", "1"}, {"HOST", "kafka"}, {"EMPTY", ""}});
  REQUIRE(lines(loaded.problems) == Lines{});
  CHECK(loaded.config.destination.bootstrap_servers == std::vector<HostPort>{{"kafka", 9092}});
  CHECK(loaded.config.destination.client ==
        std::vector<std::pair<std::string, std::string>>{{"a", "${V} $V $$ 11"}, {"b", ""}, {"c", "x:-y"}, {"d", ""}});
  CHECK(loaded.config.sources.at(0).listen == HostPort{"127.0.0.1", 1});
  CHECK(loaded.config.sources.at(0).nodes.first_port == 19100);
}

TEST_CASE("what a variable holds is a value, not YAML and not another variable") {
  const Loaded loaded = load(with("cluster_id: A", "cluster_id: ${ID}"), {{"ID", "{a: ${ID}} # x"}});
  CHECK(lines(loaded.problems) == Lines{});
  CHECK(loaded.config.sources.at(0).cluster_id == "{a: ${ID}} # x");
}

TEST_CASE("an alias repeats what it stands for") {
  const Loaded loaded = load(with("[\"kafka:9092\"]", "[&k \"kafka:9092\", *k]"));
  CHECK(lines(loaded.problems) == Lines{});
  CHECK(loaded.config.destination.bootstrap_servers.size() == 2);
}

TEST_CASE("every spelling of off is off") {
  const char* spelling = GENERATE("off", "false", "no", "\"off\"", "'no'");
  INFO(spelling);
  const Loaded loaded = load(with("state: off", std::string("state: ") + spelling));
  CHECK(lines(loaded.problems) == Lines{});
  CHECK_FALSE(loaded.config.state);
}

TEST_CASE("TLS of one kind of connection alone is worth a warning") {
  const std::string servers = "bootstrap_servers: [\"kafka:9092\"]";
  CHECK(lines(load(with(servers, servers + "\n  client: {security.protocol: SASL_SSL}")).warnings) ==
        Lines{"m.yaml:5:12: this encrypts the program's own connections, but without 'destination.tls' the forwarded "
              "ones are plain"});
  CHECK(lines(load(with(servers, servers + "\n  client: {security.protocol: PLAINTEXT}\n  tls: {}")).warnings) ==
        Lines{"m.yaml:5:12: this leaves the program's own connections plain, but 'destination.tls' encrypts the "
              "forwarded ones"});
  CHECK(lines(load(with(servers, servers + "\n  client: {security.protocol: SSL}\n  tls: {}")).warnings) == Lines{});
}

TEST_CASE("the example that comes with the program is good") {
  const Loaded loaded = load_file(EXAMPLE_CONFIG, environment({{"MIRRORPID_USER", "u"}, {"MIRRORPID_PASSWORD", "p"}}));
  CHECK(lines(loaded.problems) == Lines{});
  CHECK(lines(loaded.warnings) == Lines{});
  CHECK(loaded.config.sources.size() == 2);
  CHECK(loaded.config.destination.client.back() == std::pair<std::string, std::string>{"sasl.password", "p"});
}

TEST_CASE("the example shows the defaults of the state topic and of all limits") {
  const Config config =
      load_file(EXAMPLE_CONFIG, environment({{"MIRRORPID_USER", "u"}, {"MIRRORPID_PASSWORD", "p"}})).config;
  REQUIRE(config.state);
  CHECK(config.state->topic == State().topic);
  CHECK(config.state->partitions == State().partitions);
  CHECK(config.state->replication_factor == State().replication_factor);
  CHECK(config.state->write_timeout == State().write_timeout);
  CHECK(config.state->producer_id_expiration == State().producer_id_expiration);
  const Limits& shown = config.limits;
  const Limits defaults;
  CHECK(shown.frame_size_max == defaults.frame_size_max);
  CHECK(shown.in_flight_max == defaults.in_flight_max);
  CHECK(shown.drain_timeout == defaults.drain_timeout);
  CHECK(shown.connect_timeout == defaults.connect_timeout);
  CHECK(shown.threads == defaults.threads);
}

TEST_CASE("a file that cannot be read is a problem of the file as a whole") {
  CHECK(lines(load_file("/nowhere/m.yaml", environment()).problems) ==
        Lines{"/nowhere/m.yaml: cannot be read: No such file or directory"});
  CHECK(lines(load_file("/", environment()).problems) == Lines{"/: cannot be read: Is a directory"});
  CHECK(lines(load_file("/dev/zero", environment()).problems) ==
        Lines{"/dev/zero: is larger than 1 MiB: not a configuration"});
}

TEST_CASE("the environment of the process is asked for variables") {
  CHECK(process_environment("PATH"));
  CHECK_FALSE(process_environment("MIRRORPID_NO_SUCH_VARIABLE"));
}
