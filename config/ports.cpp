#include "config/ports.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

namespace config {

namespace {

bool meet(int a_first, int a_last, int b_first, int b_last) {
  return a_first <= b_last && b_first <= a_last;
}

bool bind_the_same(const PortRange& a, const PortRange& b) {
  return meet(a.first_port, a.last_port, b.first_port, b.last_port) && !a.host.empty() && !b.host.empty() &&
         hosts_overlap(a.host, b.host);
}

bool advertise_the_same(const PortRange& a, const PortRange& b) {
  const auto last = [](const PortRange& range) {
    return range.advertised_first_port + range.last_port - range.first_port;
  };
  return !a.advertised_host.empty() && !b.advertised_host.empty() &&
         meet(a.advertised_first_port, last(a), b.advertised_first_port, last(b)) &&
         canonical_host(a.advertised_host) == canonical_host(b.advertised_host);
}

}  // namespace

void Ports::check(Reader& reader) {
  std::ranges::sort(ranges_, {},
                    [](const PortRange& range) { return std::tie(range.place.line, range.place.column, range.label); });
  for (auto later = ranges_.begin(); later != ranges_.end(); ++later) {
    for (auto earlier = ranges_.begin(); earlier != later; ++earlier) {
      const auto complain = [&](std::string_view what) {
        reader.complain(later->place, fmt::format("{} and {} at {} {}", later->label, earlier->label,
                                                  to_string(earlier->place), what));
      };
      if (bind_the_same(*earlier, *later)) {
        complain("would bind the same port");
      } else if (advertise_the_same(*earlier, *later)) {
        complain("would be advertised under the same address");
      }
    }
  }
}

}  // namespace config
