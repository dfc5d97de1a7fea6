#include "config/parse.hpp"

#include "tests/support/catch.hpp"

using namespace config;
using namespace std::chrono_literals;

namespace {

Parsed<std::chrono::milliseconds> duration(std::string_view text) {
  return parse_duration(text, 0ms, 24h);
}
Parsed<std::uint64_t> size(std::string_view text) {
  return parse_size(text, 0, std::uint64_t{1} << 40U);
}

}  // namespace

TEST_CASE("a duration is a whole number with its unit") {
  CHECK(duration("250ms").value == 250ms);
  CHECK(duration("10s").value == 10s);
  CHECK(duration("5m").value == 5min);
  CHECK(duration("1h").value == 1h);
  CHECK(duration("0s").value == 0s);
  for (const char* text : {"", "10", "s", "-1s", "+1s", "1.5s", "10 s", "10S", "10d", "0x1s", "18446744073709551616ms",
                           "5124095576030h", "10s "}) {
    INFO(text);
    CHECK(duration(text).problem == "is no duration: a number with ms, s, m or h, as in 250ms or 10s");
  }
}

TEST_CASE("a duration's bounds belong to it and are shown in its units") {
  CHECK(parse_duration("100ms", 100ms, 5s).value == 100ms);
  CHECK(parse_duration("5s", 100ms, 5s).value == 5s);
  CHECK(parse_duration("99ms", 100ms, 5s).problem == "is out of range: 100ms to 5s");
  CHECK(parse_duration("5001ms", 100ms, 5s).problem == "is out of range: 100ms to 5s");
  CHECK(parse_duration("2h", 0ms, 90min).problem == "is out of range: 0ms to 90m");
}

TEST_CASE("a size is a number of bytes, or of binary units") {
  CHECK(size("4096").value == 4096);
  CHECK(size("64KiB").value == 65536);
  CHECK(size("16MiB").value == 16777216);
  CHECK(size("1GiB").value == 1073741824);
  for (const char* text : {"", "16MB", "16M", "16 MiB", "-1", "1.5GiB", "KiB", "99999999999GiB"}) {
    INFO(text);
    CHECK(size(text).problem == "is no size: a number of bytes, or one with KiB, MiB or GiB, as in 16MiB");
  }
  CHECK(parse_size("1023", 1024, 2147483647).problem == "is out of range: 1KiB to 2147483647");
  CHECK(parse_size("2GiB", 1024, 2147483647).problem == "is out of range: 1KiB to 2147483647");
  CHECK(parse_size("2147483647", 1024, 2147483647).value == 2147483647);
}

TEST_CASE("a number is decimal and within its bounds") {
  CHECK(parse_number("1", 1, 100).value == 1);
  CHECK(parse_number("100", 1, 100).value == 100);
  for (const char* text : {"0", "101", "", "x", "1x", " 1", "0x1", "1e1", "99999999999999999999"}) {
    INFO(text);
    CHECK(parse_number(text, 1, 100).problem == "is no number from 1 to 100");
  }
}

TEST_CASE("a region is any 32 bits, decimal or hexadecimal") {
  CHECK(parse_region("0").value == 0U);
  CHECK(parse_region("42").value == 42U);
  CHECK(parse_region("4294967295").value == 4294967295U);
  CHECK(parse_region("0xFFFFffff").value == 4294967295U);
  CHECK(parse_region("0x2a").value == 42U);
  for (const char* text : {"", "-1", "4294967296", "0x", "0x100000000", "2a", "0x-1"}) {
    INFO(text);
    CHECK(parse_region(text).problem == "is no region: a number from 0 to 4294967295, or hexadecimal with 0x");
  }
}

TEST_CASE("host and port are read, IPv6 in brackets") {
  CHECK(parse_host_port("kafka-1.example:9092").value == HostPort{"kafka-1.example", 9092});
  CHECK(parse_host_port("my_service:1").value == HostPort{"my_service", 1});
  CHECK(parse_host_port("10.0.0.1:65535").value == HostPort{"10.0.0.1", 65535});
  CHECK(parse_host_port("[::]:19092").value == HostPort{"::", 19092});
  CHECK(parse_host_port("[fe80::1%eth0]:19092").value == HostPort{"fe80::1%eth0", 19092});
}

TEST_CASE("what is no host and port says which part is missing") {
  const auto problem = [](std::string_view text) { return parse_host_port(text).problem; };
  const std::string no_port = "has no port: expected host:port";
  const std::string bad_port = "has no port from 1 to 65535 after its colon";
  const std::string bad_host = "has a host that is neither an IP address nor a host name";
  CHECK(problem("") == no_port);
  CHECK(problem("kafka") == no_port);
  CHECK(problem("9092") == no_port);
  CHECK(problem("[::1]") == no_port);
  CHECK(problem("[::1]9092") == no_port);
  CHECK(problem("[::1:9092") == "has no closing bracket");
  CHECK(problem("::1:9092") == "has more than one colon: an IPv6 address stands in brackets, as in \"[::1]:9092\"");
  CHECK(problem(":9092") == "has an empty host");
  CHECK(problem("[]:9092") == "has an empty host");
  CHECK(problem("[10.0.0.1]:9092") == "has no IPv6 address between its brackets");
  for (const char* text : {"kafka:", "kafka:0", "kafka:65536", "kafka:http", "kafka:-1", "kafka: 1", "kafka:1 "}) {
    INFO(text);
    CHECK(problem(text) == bad_port);
  }
  for (const char* text : {"256.0.0.1:1", "10.0.1:1", "a..b:1", ".:1", "ka fka:1", "kafka/x:1", "kafka.0:1"}) {
    INFO(text);
    CHECK(problem(text) == bad_host);
  }
  CHECK(problem(std::string(64, 'a') + ":1") == bad_host);
  CHECK(parse_host_port(std::string(63, 'a') + ":1").value);
}

TEST_CASE("what clients are told cannot be a wildcard address") {
  const std::string wildcard = "is a wildcard address: clients cannot connect to it";
  CHECK(parse_advertised_address("0.0.0.0:9092").problem == wildcard);
  CHECK(parse_advertised_address("[::]:9092").problem == wildcard);
  CHECK(parse_advertised_address(":9092").problem == "has an empty host");
  CHECK(parse_advertised_address("[::1]:9092").value == HostPort{"::1", 9092});

  CHECK(parse_advertised_host("0.0.0.0").problem == wildcard);
  CHECK(parse_advertised_host("::").problem == wildcard);
  CHECK(parse_advertised_host("[::]").problem == wildcard);
  CHECK(parse_advertised_host("").problem == "has an empty host");
  CHECK(parse_advertised_host("proxy.test").value == "proxy.test");
  CHECK(parse_advertised_host("::1").value == "::1");
  CHECK(parse_advertised_host("[::1]").value == "::1");
  CHECK(parse_advertised_host("proxy.test:9092").problem == "must be a host alone: the ports follow from first_port");
}

TEST_CASE("a file must exist, be readable, and be a file") {
  CHECK(parse_readable_file(EXAMPLE_CONFIG).value == EXAMPLE_CONFIG);
  CHECK(parse_readable_file("/nowhere/ca.pem").problem == "cannot be read: No such file or directory");
  CHECK(parse_readable_file("/").problem == "cannot be read: it is a directory");
  CHECK(parse_readable_file("").problem == "is empty");
}
