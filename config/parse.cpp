#include "config/parse.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>

namespace config {

namespace {

constexpr std::size_t host_name_size_max = 253;  // DNS
constexpr std::size_t host_label_size_max = 63;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

template <class T>
std::optional<T> whole_number(std::string_view text, int base = 10) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first, so that a bound is shown in the largest unit that it is a multiple of.
constexpr Unit duration_units[] = {{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};
constexpr Unit size_units[] = {{"GiB", 1U << 30U}, {"MiB", 1U << 20U}, {"KiB", 1U << 10U}, {"", 1}};

std::optional<std::uint64_t> quantity(std::string_view text, std::span<const Unit> units) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  const auto unit = std::ranges::find(units, name, &Unit::name);
  // An int64_t must hold it: durations are signed.
  constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (unit == units.end() || number > max / unit->factor) return std::nullopt;
  return number * unit->factor;
}

std::string shown(std::uint64_t value, std::span<const Unit> units) {
  if (value == 0) return fmt::format("0{}", units.back().name);
  const auto unit = std::ranges::find_if(units, [value](const Unit& u) { return value % u.factor == 0; });
  return fmt::format("{}{}", value / unit->factor, unit->name);
}

std::optional<std::string> within(std::uint64_t value, std::uint64_t low, std::uint64_t high,
                                  std::span<const Unit> units) {
  if (value >= low && value <= high) return std::nullopt;
  return fmt::format("is out of range: {} to {}", shown(low, units), shown(high, units));
}

bool is_ip_address(const std::string& host, int family) {
  in6_addr address = {};
  // A zone (fe80::1%eth0) says which interface; inet_pton knows none.
  const std::string without_zone = family == AF_INET6 ? host.substr(0, host.find('%')) : host;
  return inet_pton(family, without_zone.c_str(), &address) == 1;
}

// Underscores are no part of host names, but of many names that containers have.
bool is_host_name(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty() || host.size() > host_name_size_max) return false;
  while (true) {
    const std::string_view label = host.substr(0, host.find('.'));
    const bool good =
        std::ranges::all_of(label, [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; });
    if (!good || label.empty() || label.size() > host_label_size_max) return false;
    if (label.size() == host.size()) break;
    host.remove_prefix(label.size() + 1);
  }
  return !std::ranges::all_of(host, is_digit);  // the last label: what ends in a number is an IPv4 address or a mistake
}

// `host` stands without brackets; `bracketed` says that it had them, as IPv6 addresses must and nothing else may.
Parsed<std::string> parse_host(std::string_view text, bool bracketed) {
  const std::string host(text);
  if (host.empty()) return {{}, "has an empty host"};
  if (bracketed) {
    if (!is_ip_address(host, AF_INET6)) return {{}, "has no IPv6 address between its brackets"};
  } else if (!is_ip_address(host, AF_INET) && !is_host_name(host)) {
    return {{}, "has a host that is neither an IP address nor a host name"};
  }
  return {host, {}};
}

constexpr std::string_view wildcard_problem = "is a wildcard address: clients cannot connect to it";

}  // namespace

Parsed<std::int64_t> parse_number(std::string_view text, std::int64_t low, std::int64_t high) {
  const auto number = whole_number<std::int64_t>(text);
  if (!number || *number < low || *number > high) return {{}, fmt::format("is no number from {} to {}", low, high)};
  return {number, {}};
}

Parsed<std::chrono::milliseconds> parse_duration(std::string_view text, std::chrono::milliseconds low,
                                                 std::chrono::milliseconds high) {
  const auto count = quantity(text, duration_units);
  if (!count) return {{}, "is no duration: a number with ms, s, m or h, as in 250ms or 10s"};
  const auto problem =
      within(*count, static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count()), duration_units);
  if (problem) return {{}, *problem};
  return {std::chrono::milliseconds(static_cast<std::int64_t>(*count)), {}};
}

Parsed<std::uint64_t> parse_size(std::string_view text, std::uint64_t low, std::uint64_t high) {
  const auto size = quantity(text, size_units);
  if (!size) return {{}, "is no size: a number of bytes, or one with KiB, MiB or GiB, as in 16MiB"};
  if (const auto problem = within(*size, low, high, size_units)) return {{}, *problem};
  return {size, {}};
}

Parsed<std::uint32_t> parse_region(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const auto region = hexadecimal ? whole_number<std::uint32_t>(text.substr(2), 16) : whole_number<std::uint32_t>(text);
  if (!region) return {{}, "is no region: a number from 0 to 4294967295, or hexadecimal with 0x"};
  return {region, {}};
}

Parsed<std::uint16_t> parse_port(std::string_view text) {
  const auto port = whole_number<std::uint16_t>(text);
  if (!port || *port == 0) return {{}, "is no port from 1 to 65535"};
  return {port, {}};
}

Parsed<HostPort> parse_host_port(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  std::size_t host_end = text.find(bracketed ? ']' : ':');
  if (bracketed && host_end == std::string_view::npos) return {{}, "has no closing bracket"};
  if (!bracketed && host_end != text.rfind(':')) {
    return {{}, "has more than one colon: an IPv6 address stands in brackets, as in \"[::1]:9092\""};
  }
  const std::string_view host = text.substr(bracketed ? 1 : 0, bracketed ? host_end - 1 : host_end);
  if (bracketed) ++host_end;
  if (host_end >= text.size() || text[host_end] != ':') return {{}, "has no port: expected host:port"};

  auto parsed_host = parse_host(host, bracketed);
  if (!parsed_host.value) return {{}, std::move(parsed_host.problem)};
  const auto port = parse_port(text.substr(host_end + 1));
  if (!port.value) return {{}, "has no port from 1 to 65535 after its colon"};
  return {HostPort{std::move(*parsed_host.value), *port.value}, {}};
}

Parsed<HostPort> parse_advertised_address(std::string_view text) {
  auto parsed = parse_host_port(text);
  if (parsed.value && is_wildcard(parsed.value->host)) return {{}, std::string(wildcard_problem)};
  return parsed;
}

Parsed<std::string> parse_advertised_host(std::string_view text) {
  const bool bracketed = text.starts_with('[') && text.ends_with(']');
  const std::string_view inner = bracketed ? text.substr(1, text.size() - 2) : text;
  if (!bracketed && parse_host_port(text).value) return {{}, "must be a host alone: the ports follow from first_port"};
  auto parsed = parse_host(inner, bracketed || is_ip_address(std::string(inner), AF_INET6));
  if (parsed.value && is_wildcard(*parsed.value)) return {{}, std::string(wildcard_problem)};
  return parsed;
}

Parsed<std::string> parse_not_empty(std::string_view text) {
  if (text.empty()) return {{}, "is empty"};
  return {std::string(text), {}};
}

Parsed<std::string> parse_name(std::string_view text, std::size_t size_max) {
  const auto good = [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-'; };
  if (text.empty() || text.size() > size_max || !std::ranges::all_of(text, good)) {
    return {{}, fmt::format("is no name: 1 to {} letters, digits, '.', '_' or '-'", size_max)};
  }
  return {std::string(text), {}};
}

Parsed<std::string> parse_readable_file(std::string_view text) {
  std::string path(text);
  if (path.empty()) return {{}, "is empty"};
  std::error_code ignored;  // access() below reports the same
  if (std::filesystem::is_directory(path, ignored)) return {{}, "cannot be read: it is a directory"};
  if (access(path.c_str(), R_OK) != 0) {
    return {{}, "cannot be read: " + std::generic_category().message(errno)};
  }
  return {std::move(path), {}};
}

}  // namespace config
