#include "config/quoting.hpp"
#include "tests/config/files.hpp"

using namespace config;
using namespace config::test;

namespace {

const std::string braces = "YAML syntax: '${' inside [...] or {...} must be quoted, as in \"${NAME}\"";
const std::string address = "YAML syntax: an address in brackets must be quoted, as in \"[::]:19092\"";

}  // namespace

TEST_CASE("a syntax error has its place") {
  CHECK(problems(with("name: eu", "name: eu: x")) == Lines{"m.yaml:6:13: YAML syntax: illegal map value"});
  CHECK(problems(with_more("log: {level: info\n")) == Lines{"m.yaml:11:1: YAML syntax: end of map flow not found"});
  CHECK(problems(with("name: eu", "name: @eu")) == Lines{"m.yaml:6:11: YAML syntax: unknown token"});
}

TEST_CASE("every unquoted variable inside of brackets is pointed at") {
  CHECK(problems(with("[\"kafka:9092\"]", "[\"kafka:9092\"]\n  client: {a: ${A}, b: \"${B}\", c: x${C:-[}}")) ==
        Lines{"m.yaml:5:15: " + braces, "m.yaml:5:36: " + braces});
  CHECK(problems(with("[\"kafka:9092\"]", "[\n    a:1,\n    ${B}]")) == Lines{"m.yaml:6:5: " + braces});
}

TEST_CASE("an unquoted IPv6 address is pointed at, inside of brackets and outside") {
  CHECK(problems(with("127.0.0.1:19092", "[::]:19092")) == Lines{"m.yaml:8:13: " + address});
  CHECK(problems(with("127.0.0.1:19092", "[fe80::1]:${PORT}")) == Lines{"m.yaml:8:13: " + address});
  CHECK(problems(with_more("admin: {listen: [::]:9190}\n")) == Lines{"m.yaml:10:17: " + address});
}

TEST_CASE("where YAML finds a list in an unquoted address, the error says so too") {
  CHECK(problems(with("[\"kafka:9092\"]", "[[::1]:9092]")) ==
        Lines{"m.yaml:4:23: expected text, found a mapping; a text with [...] or {...} in it must be quoted"});
}

TEST_CASE("an error before the first missing quotes has another cause, and is reported as well") {
  CHECK(problems(with("name: eu", "name: eu: x") + "admin: {listen: [::]:9190}\n") ==
        Lines{"m.yaml:6:13: YAML syntax: illegal map value", "m.yaml:10:17: " + address});
}

TEST_CASE("missing quotes are not seen in comments, in quotes and outside of brackets") {
  CHECK(find_missing_quotes("# {a: ${B}} [::]:1\n").empty());
  CHECK(find_missing_quotes("a: x # [${B}]\n").empty());
  CHECK(find_missing_quotes("a: ${B}\nb: x{${C}}\n").empty());
  CHECK(find_missing_quotes("a: [\"${B}\", '${C}', \"\\\"${D}\", 'it''s ${E}']\n").empty());
  CHECK(find_missing_quotes("a: [b]\nc: ${D}\n").empty());
  CHECK(find_missing_quotes("a: [b#c, d]\ne: it's ${F}\n").empty());
  CHECK(find_missing_quotes("[a: b]: c\n").empty());
}

TEST_CASE("missing quotes are seen after apostrophes, comments and nested brackets") {
  CHECK(find_missing_quotes("a: it's\nb: [${C}]\n").size() == 1);
  CHECK(find_missing_quotes("a: [ # it's\n  ${C}]\n").size() == 1);
  CHECK(find_missing_quotes("a: [{b: [c]}, ${D}, [::1]:1]\n").size() == 2);
  CHECK(find_missing_quotes("- [${").size() == 1);
}

TEST_CASE("a quote that is never closed is an error at its place") {
  CHECK(problems(with_more("log: {}\nadmin: \"x\n")) ==
        Lines{"m.yaml:11:8: YAML syntax: a quote that is never closed"});
  CHECK(problems(with_more("log: {}\nadmin: 'it''s\n")) ==
        Lines{"m.yaml:11:8: YAML syntax: a quote that is never closed"});
}

TEST_CASE("a file is one document") {
  CHECK(problems(with_more("---\nlog: {}\n")) ==
        Lines{"m.yaml:10:1: YAML syntax: a second document; a configuration is one"});
  CHECK(problems("---\n" + std::string(good_file) + "...\n") == Lines{});
}

TEST_CASE("an alias that holds itself is an error, not an endless walk") {
  CHECK(problems(with_more("log: &l {level: *l}\n")) ==
        Lines{"m.yaml:10:17: YAML syntax: an alias inside of what it stands for"});
}

TEST_CASE("nesting without end is an error") {
  CHECK(problems("a: " + std::string(100000, '[')).size() == 1);
}

TEST_CASE("columns count bytes, as compilers do") {
  CHECK(problems(with_more("log: {\"\xc3\xa9\": 1, level: x}\n")) ==
        Lines{"m.yaml:10:7: unknown key; known here: level, format",
              "m.yaml:10:23: 'x' is none of trace, debug, info, warn, error"});
}

TEST_CASE("what is no UTF-8 text is an error at its place") {
  const Lines expected = {"m.yaml:7:18: YAML syntax: a byte that is no UTF-8 text"};
  for (const char* text : {"x\xff", "x\xe9y", "x\xc3", "x\xe2\x82", "x\xf0\x9f\x98", "x\xc0\x80", "x\x04", "x\x1b["}) {
    INFO(text);
    CHECK(problems(with("cluster_id: A", std::string("cluster_id: ") + text)) == expected);
  }
  CHECK(problems(with("cluster_id: A", std::string("cluster_id: x\0", 14))) == expected);
  const Loaded loaded = load(with("cluster_id: A", "cluster_id: \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  CHECK(lines(loaded.problems) == Lines{});
  CHECK(loaded.config.sources.at(0).cluster_id == "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST_CASE("a byte order mark and the line ends of Windows are fine") {
  std::string file = "\xef\xbb\xbf";
  for (const char c : with("name: eu", "name: \"eu\"")) file += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CHECK(problems(file) == Lines{});
  CHECK(problems(file + "admin: {}\r\n") == Lines{"m.yaml:10:1: required key 'listen' is missing"});
}

TEST_CASE("any cut of a good file is read to its end without harm") {
  for (std::size_t size = 0; size < good_file.size(); ++size) {
    INFO(size);
    for (const Problem& problem : load(good_file.substr(0, size)).problems) {
      CHECK(problem.place.line >= 1);
      CHECK(problem.place.column >= 1);
    }
  }
}
