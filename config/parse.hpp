#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/host_port.hpp"

namespace config {

// A value, or what is wrong with the text: a phrase to follow it, as in "'kafka' has no port". The phrase never holds
// the text itself, which may be secret.
template <class T>
struct Parsed {
  using value_type = T;

  std::optional<T> value;
  std::string problem;
};

// Each refuses what lies outside its bounds, both included.
Parsed<std::int64_t> parse_number(std::string_view text, std::int64_t low, std::int64_t high);
Parsed<std::chrono::milliseconds> parse_duration(std::string_view text, std::chrono::milliseconds low,
                                                 std::chrono::milliseconds high);  // 250ms 10s 5m 1h
Parsed<std::uint64_t> parse_size(std::string_view text, std::uint64_t low,
                                 std::uint64_t high);       // 4096 64KiB 16MiB 1GiB
Parsed<std::uint32_t> parse_region(std::string_view text);  // decimal, or hexadecimal with 0x
Parsed<std::uint16_t> parse_port(std::string_view text);    // 1 to 65535

// `host:port`; an IPv6 address stands in brackets.
Parsed<HostPort> parse_host_port(std::string_view text);

// Those that clients are told: no wildcard address.
Parsed<HostPort> parse_advertised_address(std::string_view text);
Parsed<std::string> parse_advertised_host(std::string_view text);  // brackets allowed and left out

Parsed<std::string> parse_not_empty(std::string_view text);
Parsed<std::string> parse_name(std::string_view text, std::size_t size_max);  // letters, digits, '.', '_', '-'
Parsed<std::string> parse_readable_file(std::string_view text);               // looks at the disk

template <class T>
Parsed<T> parse_choice(std::string_view text, std::initializer_list<std::pair<std::string_view, T>> choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == text) return {value, {}};
    names += names.empty() ? "" : ", ";
    names += name;
  }
  return {{}, "is none of " + names};
}

}  // namespace config
