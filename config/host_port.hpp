#pragma once

#include <cstdint>
#include <string>

namespace config {

// Where something listens or is reached. The host is an IP address without brackets, or a host name; never empty once
// read from a file.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const HostPort&) const = default;
};

// `host:port`, with the brackets that an IPv6 address needs.
std::string to_string(const HostPort& address);

// One spelling for every way to write a host: IPv6 shortened, IPv4 in IPv6 as IPv4, names in lower case.
std::string canonical_host(const std::string& host);

// 0.0.0.0 or ::, however spelt: fine to listen on, impossible to connect to.
bool is_wildcard(const std::string& host);

// Whether a port of one host may be the same socket as that port of the other. Names are not resolved: apart from
// `localhost`, two different names count as two hosts.
bool hosts_overlap(const std::string& one, const std::string& other);

}  // namespace config
