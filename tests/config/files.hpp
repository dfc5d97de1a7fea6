#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.hpp"
#include "tests/support/catch.hpp"

namespace config::test {

using Lines = std::vector<std::string>;
using Variables = std::map<std::string, std::string, std::less<>>;

// The least that is a good configuration; tests break it in one place.
inline constexpr std::string_view good_file =
    "version: 1\n"                                             // line 1
    "state: off\n"                                             // 2
    "destination:\n"                                           // 3
    "  bootstrap_servers: [\"kafka:9092\"]\n"                  // 4
    "sources:\n"                                               // 5
    "  - name: eu\n"                                           // 6
    "    cluster_id: A\n"                                      // 7
    "    listen: 127.0.0.1:19092\n"                            // 8
    "    nodes: {advertise: proxy.test, first_port: 19100}\n"  // 9
    ;

// The good file with one piece replaced; the piece stands in it once.
inline std::string with(std::string_view piece, std::string_view replacement) {
  std::string file(good_file);
  const std::size_t at = file.find(piece);
  REQUIRE(at != std::string::npos);
  REQUIRE(file.find(piece, at + 1) == std::string::npos);
  return file.replace(at, piece.size(), replacement);
}

// The good file with lines after its end, which is line 9.
inline std::string with_more(std::string_view lines) {
  return std::string(good_file) + std::string(lines);
}

inline Environment environment(Variables variables = {}) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto variable = variables.find(name);
    return variable == variables.end() ? std::nullopt : std::optional(variable->second);
  };
}

inline Loaded load(std::string_view yaml, Variables variables = {}) {
  return load_text(yaml, "m.yaml", environment(std::move(variables)));
}

inline Lines lines(const std::vector<Problem>& problems) {
  Lines result;
  for (const Problem& problem : problems) result.push_back(to_string(problem));
  return result;
}

inline Lines problems(std::string_view yaml, Variables variables = {}) {
  return lines(load(yaml, std::move(variables)).problems);
}

// A file of the repository that surely exists, for names of certificates.
inline const std::string existing_file = EXAMPLE_CONFIG;

}  // namespace config::test
