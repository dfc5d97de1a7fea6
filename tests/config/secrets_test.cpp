#include "tests/config/files.hpp"

using namespace config;
using namespace config::test;

namespace {

const std::string servers = "bootstrap_servers: [\"kafka:9092\"]";

}  // namespace

TEST_CASE("messages show a variable as it is written, never what it holds") {
  CHECK(problems(with("127.0.0.1:19092", "127.0.0.1:${PORT}"), {{"PORT", "sesame"}}) ==
        Lines{"m.yaml:8:13: '127.0.0.1:${PORT}' has no port from 1 to 65535 after its colon"});
  CHECK(problems(with("proxy.test", "\"${HOST}\""), {{"HOST", "0.0.0.0"}}) ==
        Lines{"m.yaml:9:24: '${HOST}' is a wildcard address: clients cannot connect to it"});
  CHECK(problems(with_more("limits: {threads: \"${N:-1}\"}\n"), {{"N", "777"}}) ==
        Lines{"m.yaml:10:19: '${N:-1}' is no number from 0 to 256"});
}

TEST_CASE("what is computed from a variable is not shown either") {
  CHECK(problems(with("first_port: 19100", "first_port: \"${PORT}\""), {{"PORT", "65501"}}) ==
        Lines{"m.yaml:9:48: ports from '${PORT}' on go past 65535"});
  CHECK(problems(with("first_port: 19100", "first_port: 65000, count: \"${N}\""), {{"N", "777"}}) ==
        Lines{"m.yaml:9:48: ports from '65000' on go past 65535"});
  CHECK(problems(with("first_port: 19100", "first_port: 1, first_node_id: \"${ID}\""), {{"ID", "2147483601"}}) ==
        Lines{"m.yaml:9:66: node ids from '${ID}' on go past 2147483647"});
  CHECK(
      problems(with("first_port: 19100", "first_port: \"${PORT}\""), {{"PORT", "19001"}}) ==
      Lines{"m.yaml:9:48: node ports from '${PORT}' on and listen '127.0.0.1:19092' at m.yaml:8:13 would bind the same "
            "port"});
}

TEST_CASE("what two sources share is shown as it is written") {
  CHECK(problems(with_more("  - {name: \"${N}\", cluster_id: \"${C}\", listen: \"127.0.0.1:1\", nodes: {advertise: p, "
                           "first_port: 2}}\n"),
                 {{"N", "eu"}, {"C", "A"}}) ==
        Lines{"m.yaml:10:12: name '${N}' is already that of the source at m.yaml:6:11",
              "m.yaml:10:32: cluster_id '${C}' is already that of the source at m.yaml:7:17"});
}

TEST_CASE("no message holds a client property's value, whatever is wrong with it") {
  const auto client = [](const std::string& text) { return with(servers, servers + "\n  client:" + text); };
  const std::string yaml = GENERATE_COPY(client("\n    sasl.password: \"sesame${UNSET}\""),            //
                                         client("\n    sasl.password: sesame${sesame"),                //
                                         client("\n    sasl.password: sesame${se same}"),              //
                                         client("\n    sasl.password: [sesame]"),                      //
                                         client("\n    sasl.password: {sesame: sesame}"),              //
                                         client("\n    sasl.password: x\n    sasl.password: sesame"),  //
                                         client("\n    bootstrap.servers: sesame"),                    //
                                         client(" sasl.password=sesame"),                              //
                                         client(" [sasl.password=sesame]"),                            //
                                         client(" {sasl.password:sesame}"),                            //
                                         client(" {sasl.password=sesame}"),                            //
                                         client("\n    sasl.password:sesame"),                         //
                                         client("\n    sasl.password: se: sesame"),                    //
                                         client("\n    sasl.password: @sesame"),                       //
                                         client("\n    sasl.password: *sesame"),                       //
                                         client("\n    sasl.password: \"\\sesame\""),                  //
                                         client("\n    sasl.password: \"sesame"),                      //
                                         client("\n    sasl.password: 'sesame\n    x: y'z"),           //
                                         client(" {sasl.password: ${sesame}}"));
  INFO(yaml);
  const Lines found = problems(yaml);
  CHECK_FALSE(found.empty());
  for (const std::string& line : found) {
    INFO(line);
    CHECK(line.find("sesame") == std::string::npos);
  }
}

TEST_CASE("a key without the space after its colon is not shown, for it may hold a secret") {
  CHECK(problems(with(servers, servers + "\n  client: {sasl.password:sesame}")) ==
        Lines{"m.yaml:5:12: a key has no value; is the space after its colon missing?"});
  CHECK(problems(with_more("log: {level:info}\n")) ==
        Lines{"m.yaml:10:7: a key has no value; is the space after its colon missing?"});
}

TEST_CASE("what a message shows of the file fits on a line") {
  CHECK(problems(with("name: eu", "name: \"a\\nb\\e\"")) ==
        Lines{"m.yaml:6:11: 'a?b?' is no name: 1 to 64 letters, digits, '.', '_' or '-'"});
  CHECK(problems(with("name: eu", "name: " + std::string(1000, 'a'))) ==
        Lines{"m.yaml:6:11: '" + std::string(80, 'a') + "...' is no name: 1 to 64 letters, digits, '.', '_' or '-'"});
}
