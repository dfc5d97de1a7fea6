#include "config/host_port.hpp"

#include "tests/support/catch.hpp"

using namespace config;

TEST_CASE("an address is printed as it is read, IPv6 in brackets") {
  CHECK(to_string(HostPort{"kafka.example", 9092}) == "kafka.example:9092");
  CHECK(to_string(HostPort{"0.0.0.0", 1}) == "0.0.0.0:1");
  CHECK(to_string(HostPort{"::1", 65535}) == "[::1]:65535");
}

TEST_CASE("every spelling of a host has one canonical spelling") {
  CHECK(canonical_host("0:0:0:0:0:0:0:1") == "::1");
  CHECK(canonical_host("FE80::0001") == "fe80::1");
  CHECK(canonical_host("::ffff:10.0.0.1") == "10.0.0.1");
  CHECK(canonical_host("Kafka.Example.") == "kafka.example");
}

TEST_CASE("a wildcard address is known in every spelling") {
  CHECK(is_wildcard("0.0.0.0"));
  CHECK(is_wildcard("::"));
  CHECK(is_wildcard("0:0::0"));
  CHECK(is_wildcard("::ffff:0.0.0.0"));
  CHECK_FALSE(is_wildcard("0.0.0.1"));
  CHECK_FALSE(is_wildcard("kafka"));
}

TEST_CASE("hosts overlap where a socket on one would take the connections of the other") {
  const auto overlap = [](const char* a, const char* b) {
    CHECK(hosts_overlap(a, b) == hosts_overlap(b, a));
    return hosts_overlap(a, b);
  };
  CHECK(overlap("10.0.0.1", "10.0.0.1"));
  CHECK(overlap("10.0.0.1", "::ffff:10.0.0.1"));
  CHECK(overlap("10.0.0.1", "0.0.0.0"));
  CHECK(overlap("10.0.0.1", "::"));
  CHECK(overlap("0.0.0.0", "::"));
  CHECK(overlap("::1", "::"));
  CHECK(overlap("proxy.test", "0.0.0.0"));
  CHECK(overlap("proxy.test", "PROXY.test"));
  CHECK(overlap("localhost", "127.0.0.1"));
  CHECK(overlap("localhost", "::1"));
  CHECK_FALSE(overlap("10.0.0.1", "10.0.0.2"));
  CHECK_FALSE(overlap("0.0.0.0", "::1"));
  CHECK_FALSE(overlap("proxy.test", "10.0.0.1"));
  CHECK_FALSE(overlap("localhost", "10.0.0.1"));
}
