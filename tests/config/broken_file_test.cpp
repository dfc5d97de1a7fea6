#include <fmt/format.h>

#include "tests/config/files.hpp"

using namespace config;
using namespace config::test;

TEST_CASE("an unknown key is an error that suggests the nearest one") {
  CHECK(problems(with("bootstrap_servers", "bootstrap_server")) ==
        Lines{"m.yaml:3:1: required key 'bootstrap_servers' is missing",
              "m.yaml:4:3: unknown key 'bootstrap_server'; did you mean 'bootstrap_servers'?"});
  CHECK(problems(with_more("limit: {}\n")) == Lines{"m.yaml:10:1: unknown key 'limit'; did you mean 'limits'?"});
  CHECK(problems(with("cluster_id: A", "cluster_id: A\n    clusterId: A")) ==
        Lines{"m.yaml:8:5: unknown key 'clusterId'; did you mean 'cluster_id'?"});
}

TEST_CASE("an unknown key that is near to none is answered with those there are") {
  CHECK(problems(with_more("log: {colour: red}\n")) ==
        Lines{"m.yaml:10:7: unknown key 'colour'; known here: level, format"});
}

TEST_CASE("a duplicate key names the place of the first") {
  CHECK(problems(with_more("version: 1\n")) ==
        Lines{"m.yaml:10:1: duplicate key 'version'; the first is at m.yaml:1:1"});
  CHECK(problems(with("first_port: 19100", "first_port: 19100, \"first_port\": 1")) ==
        Lines{"m.yaml:9:55: duplicate key 'first_port'; the first is at m.yaml:9:36"});
  const std::string servers = "bootstrap_servers: [\"kafka:9092\"]";
  CHECK(problems(with(servers, servers + "\n  client:\n    a.b: 1\n    a.b: 2")) ==
        Lines{"m.yaml:7:5: duplicate key 'a.b'; the first is at m.yaml:6:5"});
}

TEST_CASE("each missing key is named where its mapping begins") {
  CHECK(problems("log: {}\n") == Lines{"m.yaml:1:1: required key 'destination' is missing",
                                       "m.yaml:1:1: required key 'sources' is missing",
                                       "m.yaml:1:1: required key 'version' is missing"});
  CHECK(problems(with_more("  - {tls: {}}\n")) ==
        Lines{"m.yaml:10:5: required key 'cluster_id' is missing", "m.yaml:10:5: required key 'listen' is missing",
              "m.yaml:10:5: required key 'name' is missing", "m.yaml:10:5: required key 'nodes' is missing",
              "m.yaml:10:6: required key 'cert_file' is missing", "m.yaml:10:6: required key 'key_file' is missing"});
  CHECK(problems(with("advertise: proxy.test, first_port: 19100", "")) ==
        Lines{"m.yaml:9:5: required key 'advertise' is missing", "m.yaml:9:5: required key 'first_port' is missing"});
  CHECK(problems(with_more("admin: {}\n")) == Lines{"m.yaml:10:1: required key 'listen' is missing"});
}

TEST_CASE("an empty file lacks everything that is required") {
  const char* yaml = GENERATE("", "# nothing\n", "---\n");
  INFO(yaml);
  CHECK(problems(yaml) == problems("log: {}\n"));
}

TEST_CASE("a region does not replace the cluster id") {
  CHECK(problems(with("cluster_id: A", "region: 1")) == Lines{"m.yaml:6:5: required key 'cluster_id' is missing"});
}

TEST_CASE("lists that need an entry") {
  CHECK(problems(with("[\"kafka:9092\"]", "[]")) == Lines{"m.yaml:4:22: expected at least one host:port"});
  CHECK(problems("version: 1\nstate: off\ndestination: {bootstrap_servers: [k:1]}\nsources: []\n") ==
        Lines{"m.yaml:4:10: expected at least one source"});
  CHECK(problems(with("{advertise: proxy.test, first_port: 19100}", "{map: {}}")) ==
        Lines{"m.yaml:9:18: expected at least one node, as in {7: \"kafka-7.example:9092\"}"});
}

TEST_CASE("a list, a mapping or nothing where something else belongs") {
  CHECK(problems("[version, 1]\n") == Lines{"m.yaml:1:1: expected a mapping, found a list"});
  CHECK(problems("version\n") == Lines{"m.yaml:1:1: expected a mapping, found text"});
  CHECK(problems(with("[\"kafka:9092\"]", "kafka:9092")) == Lines{"m.yaml:4:22: expected a list, found text"});
  CHECK(problems(with("  - name: eu\n    cluster", "    name: eu\n    cluster")) ==
        Lines{"m.yaml:6:5: expected a list, found a mapping"});
  CHECK(problems(with("  - name", "  - text\n  - name")) == Lines{"m.yaml:6:5: expected a mapping, found text"});
  CHECK(problems(with("name: eu", "name:")) == Lines{"m.yaml:6:5: expected text, found nothing"});
  CHECK(problems(with("name: eu", "name:\n      - eu")) == Lines{"m.yaml:7:7: expected text, found a list"});
  CHECK(problems(with_more("admin:\n")) == Lines{"m.yaml:10:1: expected a mapping, found nothing"});
  CHECK(problems(with_more("log: ~\n")) == Lines{"m.yaml:10:1: expected a mapping, found nothing"});
  CHECK(problems(with_more("? [a, b]\n: c\n")) == Lines{"m.yaml:10:3: a key must be text"});
}

TEST_CASE("another version is refused") {
  CHECK(problems(with("version: 1", "version: 2")) ==
        Lines{"m.yaml:1:10: '2' is no version that this program knows: write 1"});
}

TEST_CASE("the state topic's keys are checked") {
  CHECK(problems(with("state: off", "state: on")) == Lines{"m.yaml:2:8: 'on' is neither off nor a mapping"});
  CHECK(problems(with("state: off", "state: []")) == Lines{"m.yaml:2:8: expected a mapping, found a list"});
  CHECK(problems(with("state: off", "state: {topic: t, partitions: 0, write_timeout: 1}")) ==
        Lines{"m.yaml:2:31: '0' is no number from 1 to 10000",
              "m.yaml:2:49: '1' is no duration: a number with ms, s, m or h, as in 250ms or 10s"});
  CHECK(problems(with("state: off", "state: {topic: a/b, producer_id_expiration: 3h}")).size() == 2);
  for (const auto* topic : {"__consumer_offsets", "__cluster_metadata", ".."})
    CHECK(problems(with("state: off", fmt::format("state: {{topic: {}}}", topic))).size() == 1);
}

TEST_CASE("the state topic's keys arrive, and have defaults") {
  using namespace std::chrono_literals;
  const char* no_keys = GENERATE("state: {}\n", "");
  const auto loaded = load(with("state: off\n", no_keys));
  CHECK(lines(loaded.problems) == Lines{});
  const auto& defaults = loaded.config.state;
  REQUIRE(defaults);
  CHECK(defaults->topic == "__mirror_state");
  CHECK(defaults->partitions == 50);
  CHECK(defaults->replication_factor == 3);
  CHECK(defaults->write_timeout == 10s);
  CHECK(defaults->producer_id_expiration == 24h);
  const auto state = load(with("state: off",
                               "state: {topic: t, partitions: 1, replication_factor: 2, write_timeout: 3s, "
                               "producer_id_expiration: 48h}"))
                         .config.state;
  REQUIRE(state);
  CHECK(state->topic == "t");
  CHECK(state->partitions == 1);
  CHECK(state->replication_factor == 2);
  CHECK(state->write_timeout == 3s);
  CHECK(state->producer_id_expiration == 48h);
}

TEST_CASE("a bad address is shown at its place") {
  CHECK(problems(with("127.0.0.1:19092", "127.0.0.1:99999")) ==
        Lines{"m.yaml:8:13: '127.0.0.1:99999' has no port from 1 to 65535 after its colon"});
  CHECK(problems(with("127.0.0.1:19092", "19092")) == Lines{"m.yaml:8:13: '19092' has no port: expected host:port"});
  CHECK(problems(with("[\"kafka:9092\"]", "[kafka:9092, kafka:0, kafka]")) ==
        Lines{"m.yaml:4:35: 'kafka:0' has no port from 1 to 65535 after its colon",
              "m.yaml:4:44: 'kafka' has no port: expected host:port"});
  CHECK(problems(with("first_port: 19100", "first_port: 0")) == Lines{"m.yaml:9:48: '0' is no port from 1 to 65535"});
}

TEST_CASE("bad numbers, durations, sizes and words are shown at their place") {
  CHECK(problems(with_more("limits:\n"
                           "  frame_size_max: 16MB\n"
                           "  in_flight_max: 0\n"
                           "  drain_timeout: 30\n"
                           "  connect_timeout: 6s\n"
                           "  threads: 257\n"
                           "log: {level: warning, format: xml}\n")) ==
        Lines{"m.yaml:11:19: '16MB' is no size: a number of bytes, or one with KiB, MiB or GiB, as in 16MiB",
              "m.yaml:12:18: '0' is no number from 1 to 100000",
              "m.yaml:13:18: '30' is no duration: a number with ms, s, m or h, as in 250ms or 10s",
              "m.yaml:14:20: '6s' is out of range: 100ms to 5s", "m.yaml:15:12: '257' is no number from 0 to 256",
              "m.yaml:16:14: 'warning' is none of trace, debug, info, warn, error",
              "m.yaml:16:31: 'xml' is none of text, json"});
}

TEST_CASE("limits reach to their bounds") {
  CHECK(problems(with_more("limits: {frame_size_max: 2147483647, in_flight_max: 100000, drain_timeout: 0s, "
                           "connect_timeout: 5s, threads: 256}\n")) == Lines{});
  CHECK(problems(with_more("limits: {frame_size_max: 2GiB, drain_timeout: 61m}\n")) ==
        Lines{"m.yaml:10:26: '2GiB' is out of range: 1KiB to 2147483647",
              "m.yaml:10:47: '61m' is out of range: 0ms to 1h"});
}

TEST_CASE("a source needs a good name, and one of its own") {
  CHECK(problems(with("name: eu", "name: e u")) ==
        Lines{"m.yaml:6:11: 'e u' is no name: 1 to 64 letters, digits, '.', '_' or '-'"});
  CHECK(problems(with("name: eu", "name: " + std::string(64, 'a'))) == Lines{});
  CHECK(problems(with("name: eu", "name: " + std::string(65, 'a'))) ==
        Lines{"m.yaml:6:11: '" + std::string(65, 'a') + "' is no name: 1 to 64 letters, digits, '.', '_' or '-'"});
  CHECK(problems(with_more(
            "  - {name: eu, cluster_id: B, listen: \"127.0.0.1:1\", nodes: {advertise: p, first_port: 2}}\n")) ==
        Lines{"m.yaml:10:12: name 'eu' is already that of the source at m.yaml:6:11"});
}

TEST_CASE("a cluster cannot be two sources") {
  CHECK(problems(with_more(
            "  - {name: us, cluster_id: A, listen: \"127.0.0.1:1\", nodes: {advertise: p, first_port: 2}}\n")) ==
        Lines{"m.yaml:10:28: cluster_id 'A' is already that of the source at m.yaml:7:17"});
}

TEST_CASE("a bad region is shown at its place") {
  CHECK(problems(with("cluster_id: A", "cluster_id: A\n    region: 4294967296")) ==
        Lines{"m.yaml:8:13: '4294967296' is no region: a number from 0 to 4294967295, or hexadecimal with 0x"});
}

TEST_CASE("clients cannot be told a wildcard address, nor none") {
  CHECK(problems(with("proxy.test", "0.0.0.0")) ==
        Lines{"m.yaml:9:24: '0.0.0.0' is a wildcard address: clients cannot connect to it"});
  CHECK(problems(with("proxy.test", "\"::\"")) ==
        Lines{"m.yaml:9:24: '::' is a wildcard address: clients cannot connect to it"});
  CHECK(problems(with("proxy.test", "\"\"")) == Lines{"m.yaml:9:24: '' has an empty host"});
  CHECK(problems(with("{advertise: proxy.test, first_port: 19100}", "{map: {1: 0.0.0.0:1, 2: \"[::]:2\"}}")) ==
        Lines{"m.yaml:9:22: '0.0.0.0:1' is a wildcard address: clients cannot connect to it",
              "m.yaml:9:36: '[::]:2' is a wildcard address: clients cannot connect to it"});
}

TEST_CASE("a range of nodes ends where ports and node ids end") {
  CHECK(problems(with("first_port: 19100", "first_port: 65500")) ==
        Lines{"m.yaml:9:48: ports 65500 to 65599 go past 65535"});
  CHECK(problems(with("first_port: 19100", "first_port: 65500, count: 36")) == Lines{});
  CHECK(problems(with("first_port: 19100", "first_port: 65500, count: 37")) ==
        Lines{"m.yaml:9:48: ports 65500 to 65536 go past 65535"});
  CHECK(problems(with("first_port: 19100", "first_port: 19100, first_node_id: 2147483600")) ==
        Lines{"m.yaml:9:70: node ids 2147483600 to 2147483699 go past 2147483647"});
  CHECK(problems(with("first_port: 19100", "first_port: 19100, count: 0")) ==
        Lines{"m.yaml:9:62: '0' is no number from 1 to 65535"});
}

TEST_CASE("a map of nodes stands alone, and each entry is checked") {
  CHECK(problems(with("first_port: 19100", "first_port: 19100, map: {1: a:1}")) ==
        Lines{"m.yaml:9:13: 'advertise' cannot stand beside 'map'",
              "m.yaml:9:36: 'first_port' cannot stand beside 'map'"});
  CHECK(problems(with("{advertise: proxy.test, first_port: 19100}",
                      "{map: {x: a:1, -1: a:2, 3: a, 4: {advertise: a:4}, 05: a:5, 5: a:6}}")) ==
        Lines{"m.yaml:9:19: a key of 'map' is no number from 0 to 2147483647",
              "m.yaml:9:27: a key of 'map' is no number from 0 to 2147483647",
              "m.yaml:9:39: 'a' has no port: expected host:port", "m.yaml:9:42: required key 'listen_port' is missing",
              "m.yaml:9:72: node 5 is mapped twice"});
}

TEST_CASE("a file that is named must be there") {
  const std::string servers = "bootstrap_servers: [\"kafka:9092\"]";
  CHECK(problems(with(servers, servers + "\n  tls: {ca_file: /nowhere/ca.pem}")) ==
        Lines{"m.yaml:5:18: '/nowhere/ca.pem' cannot be read: No such file or directory"});
  CHECK(problems(with_more("    tls: {cert_file: /nowhere/a, key_file: /nowhere/b, client_ca_file: /}\n")) ==
        Lines{"m.yaml:10:22: '/nowhere/a' cannot be read: No such file or directory",
              "m.yaml:10:44: '/nowhere/b' cannot be read: No such file or directory",
              "m.yaml:10:72: '/' cannot be read: it is a directory"});
}

TEST_CASE("the names that clients must ask for are host names") {
  const auto with_names = [](const std::string& names) {
    return with_more("    tls: {cert_file: " + existing_file + ", key_file: " + existing_file +
                     ", server_names: " + names + "}\n");
  };
  CHECK(problems(with_names("[a.example, '*.b.example']")).empty());
  CHECK(problems(with_names("[]")).size() == 1);
  CHECK(problems(with_names("a.example")).size() == 1);
  for (const auto* name : {"'*'", "'a b'", "'a.*'", "'**.a'"})
    CHECK(problems(with_names(fmt::format("[{}]", name))).size() == 1);
}

TEST_CASE("a certificate needs its key and a key its certificate") {
  const std::string servers = "bootstrap_servers: [\"kafka:9092\"]";
  CHECK(problems(with(servers, servers + "\n  tls: {cert_file: " + existing_file + "}")) ==
        Lines{"m.yaml:5:3: required key 'key_file' is missing"});
  CHECK(problems(with(servers, servers + "\n  tls: {key_file: " + existing_file + "}")) ==
        Lines{"m.yaml:5:3: required key 'cert_file' is missing"});
  CHECK(problems(with_more("    tls: {key_file: " + existing_file + "}\n")) ==
        Lines{"m.yaml:10:5: required key 'cert_file' is missing"});
}

TEST_CASE("the bootstrap servers of the program's own connections are not set twice") {
  const std::string servers = "bootstrap_servers: [\"kafka:9092\"]";
  CHECK(problems(with(servers, servers + "\n  client: {bootstrap.servers: x, metadata.broker.list: y}")) ==
        Lines{"m.yaml:5:12: 'bootstrap.servers' is set from 'destination.bootstrap_servers'",
              "m.yaml:5:34: 'metadata.broker.list' is set from 'destination.bootstrap_servers'"});
}

TEST_CASE("a variable that is not set is named") {
  CHECK(problems(with("127.0.0.1:19092", "${HOST}:${PORT}")) ==
        Lines{"m.yaml:8:13: environment variable 'HOST' is not set",
              "m.yaml:8:13: environment variable 'PORT' is not set"});
}

TEST_CASE("a variable that is not written as one is an error") {
  const std::string expected = "expected ${NAME} or ${NAME:-default}; '$${' stands for the characters '${' themselves";
  for (const char* text : {"${}", "${1A}", "${A B}", "${A:=x}", "${A-x}"}) {
    INFO(text);
    CHECK(problems(with("cluster_id: A", std::string("cluster_id: ") + text)) == Lines{"m.yaml:7:17: " + expected});
  }
  CHECK(problems(with("cluster_id: A", "cluster_id: ${A")) ==
        Lines{"m.yaml:7:17: a '${' has no closing '}'; '$${' stands for the two characters themselves"});
}

TEST_CASE("variables are not replaced in keys") {
  CHECK(problems(with_more("${KEY}: 1\n"), {{"KEY", "log"}}) ==
        Lines{"m.yaml:10:1: unknown key; known here: version, destination, state, sources, admin, log, limits"});
}

TEST_CASE("a mistake that an alias repeats is reported once") {
  CHECK(problems(with("[\"kafka:9092\"]", "[&k kafka, *k]")) ==
        Lines{"m.yaml:4:23: 'kafka' has no port: expected host:port"});
}

TEST_CASE("all errors of a file are reported at once, in the order of the file") {
  CHECK(problems("sources:\n"
                 "  - name: eu\n"
                 "    cluster_id: A\n"
                 "    listen: 0.0.0.0:x\n"
                 "    nodes: {advertise: \"::\", first_port: 70000, cuont: 5}\n"
                 "  - name: eu\n"
                 "    cluster_id: A\n"
                 "    listen: \"[::]:9190\"\n"
                 "    nodes: {advertise: p.test, first_port: 65000, count: 1000}\n"
                 "    tls: {cert_file: /nowhere/a}\n"
                 "destination: {bootstrap_servers: kafka, tls: []}\n"
                 "admin: {listen: 127.0.0.1:9190}\n"
                 "log: {level: loud}\n"
                 "log: {}\n") ==
        Lines{"m.yaml:1:1: required key 'version' is missing",
              "m.yaml:4:13: '0.0.0.0:x' has no port from 1 to 65535 after its colon",
              "m.yaml:5:24: '::' is a wildcard address: clients cannot connect to it",
              "m.yaml:5:42: '70000' is no port from 1 to 65535",
              "m.yaml:5:49: unknown key 'cuont'; did you mean 'count'?",
              "m.yaml:6:11: name 'eu' is already that of the source at m.yaml:2:11",
              "m.yaml:7:17: cluster_id 'A' is already that of the source at m.yaml:3:17",
              "m.yaml:9:44: ports 65000 to 65999 go past 65535", "m.yaml:10:5: required key 'key_file' is missing",
              "m.yaml:10:22: '/nowhere/a' cannot be read: No such file or directory",
              "m.yaml:11:34: expected a list, found text", "m.yaml:11:46: expected a mapping, found a list",
              "m.yaml:12:17: listen '127.0.0.1:9190' and listen '[::]:9190' at m.yaml:8:13 would bind the same port",
              "m.yaml:13:14: 'loud' is none of trace, debug, info, warn, error",
              "m.yaml:14:1: duplicate key 'log'; the first is at m.yaml:13:1"});
}
