#include "tests/config/files.hpp"

using namespace config;
using namespace config::test;

namespace {

// The good file listens on 127.0.0.1:19092 and, for nodes, 19100 to 19199; this is one more source, on line 10.
std::string with_source(const std::string& listen, const std::string& nodes) {
  return with_more("  - {name: us, cluster_id: B, listen: \"" + listen + "\", nodes: {" + nodes + "}}\n");
}

}  // namespace

TEST_CASE("two sources cannot listen on the same port") {
  CHECK(problems(with_source("127.0.0.1:19092", "advertise: p, first_port: 1")) ==
        Lines{"m.yaml:10:39: listen '127.0.0.1:19092' and listen '127.0.0.1:19092' at m.yaml:8:13 would bind the same "
              "port"});
}

TEST_CASE("a wildcard host takes the port of every host, of both kinds") {
  const std::string host = GENERATE("0.0.0.0", "[::]", "[0::0]", "localhost", "[::ffff:127.0.0.1]");
  INFO(host);
  CHECK(problems(with_source(host + ":19092", "advertise: p, first_port: 1")) ==
        Lines{"m.yaml:10:39: listen '" + host +
              ":19092' and listen '127.0.0.1:19092' at m.yaml:8:13 would bind the same port"});
}

TEST_CASE("the same port of different hosts is no overlap") {
  const std::string host = GENERATE("127.0.0.2", "[::1]");
  INFO(host);
  CHECK(problems(with_source(host + ":19092", "advertise: other.test, first_port: 19100")) == Lines{});
}

TEST_CASE("two ranges of nodes that meet are one error") {
  CHECK(
      problems(with_source("127.0.0.1:1", "advertise: p, first_port: 19199")) ==
      Lines{"m.yaml:10:88: node ports 19199 to 19298 and node ports 19100 to 19199 at m.yaml:9:48 would bind the same "
            "port"});
  CHECK(problems(with_source("127.0.0.1:1", "advertise: p, first_port: 19200")) == Lines{});
}

TEST_CASE("a source's own listener cannot lie among its nodes") {
  CHECK(problems(with("127.0.0.1:19092", "127.0.0.1:19150")) ==
        Lines{"m.yaml:9:48: node ports 19100 to 19199 and listen '127.0.0.1:19150' at m.yaml:8:13 would bind the same "
              "port"});
}

TEST_CASE("the admin endpoint cannot lie among the nodes, wherever it stands in the file") {
  CHECK(problems(with_more("admin: {listen: 0.0.0.0:19100}\n")) ==
        Lines{"m.yaml:10:17: listen '0.0.0.0:19100' and node ports 19100 to 19199 at m.yaml:9:48 would bind the same "
              "port"});
  CHECK(problems(with("version: 1", "version: 1\nadmin: {listen: 0.0.0.0:19100}")) ==
        Lines{"m.yaml:10:48: node ports 19100 to 19199 and listen '0.0.0.0:19100' at m.yaml:2:17 would bind the same "
              "port"});
}

TEST_CASE("mapped nodes are compared by the port they listen on") {
  CHECK(problems(with_source("127.0.0.1:1", "map: {1: a:19100, 2: {advertise: a:443, listen_port: 19101}}")) ==
        Lines{"m.yaml:10:71: node 1's 'a:19100' and node ports 19100 to 19199 at m.yaml:9:48 would bind the same port",
              "m.yaml:10:115: node 2's '19101' and node ports 19100 to 19199 at m.yaml:9:48 would bind the same port"});
}

TEST_CASE("two nodes cannot be told under one address, though they listen apart") {
  CHECK(problems(with_source(
            "127.0.0.1:1", "map: {1: {advertise: lb:443, listen_port: 2}, 2: {advertise: LB:443, listen_port: 3}}")) ==
        Lines{"m.yaml:10:144: node 2's '3' and node 1's '2' at m.yaml:10:104 would be advertised under the same "
              "address"});
  CHECK(
      problems(with_source("127.0.0.2:19092", "advertise: proxy.test, first_port: 19150")) ==
      Lines{"m.yaml:10:101: node ports 19150 to 19249 and node ports 19100 to 19199 at m.yaml:9:48 would be advertised "
            "under the same address"});
}
