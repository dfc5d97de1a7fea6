#include "config/host_port.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace config {

namespace {

bool is_ipv6(const std::string& host) {
  return host.find(':') != std::string::npos;
}

bool is_loopback(const std::string& canonical) {
  return canonical == "127.0.0.1" || canonical == "::1";
}

}  // namespace

std::string to_string(const HostPort& address) {
  const std::string port = std::to_string(address.port);
  return is_ipv6(address.host) ? "[" + address.host + "]:" + port : address.host + ":" + port;
}

std::string canonical_host(const std::string& host) {
  in6_addr address = {};
  if (inet_pton(AF_INET6, host.c_str(), &address) == 1) {
    std::array<char, INET6_ADDRSTRLEN> text = {};
    if (IN6_IS_ADDR_V4MAPPED(&address)) {
      inet_ntop(AF_INET, &address.s6_addr[12], text.data(), text.size());
    } else {
      inet_ntop(AF_INET6, &address, text.data(), text.size());
    }
    return text.data();
  }
  std::string name = host;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool is_wildcard(const std::string& host) {
  const std::string canonical = canonical_host(host);
  return canonical == "0.0.0.0" || canonical == "::";
}

bool hosts_overlap(const std::string& one, const std::string& other) {
  const std::string a = canonical_host(one);
  const std::string b = canonical_host(other);
  if (a == b || a == "::" || b == "::") return true;  // a socket on :: takes IPv4 too
  if (a == "0.0.0.0") return !is_ipv6(b);
  if (b == "0.0.0.0") return !is_ipv6(a);
  return (a == "localhost" && is_loopback(b)) || (b == "localhost" && is_loopback(a));
}

}  // namespace config
