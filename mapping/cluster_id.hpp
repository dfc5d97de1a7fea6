#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mapping/producer_id.hpp"

namespace mapping {

// A Kafka cluster id that is a UUID: 22 characters of unpadded base64url, or 24 with "==" as Kafka's own reader takes
// it.
//
// Two strings can be the same UUID, since the last character has four bits that do not count; so ids are compared by
// their bytes, never as text.
class ClusterId {
 public:
  // Nothing: no such UUID ("lkc-...", free text); then the source needs a region of its own in the configuration.
  static std::optional<ClusterId> parse(std::string_view text);

  // The one form in which a cluster id stands in the state topic: two strings of the same UUID are one cluster.
  std::string text() const;

  std::uint64_t most_significant() const { return most_significant_; }
  std::uint64_t least_significant() const { return least_significant_; }

  // The low 32 bits of both halves, folded. The upper halves do not count: different clusters can share a region.
  Region region() const { return {static_cast<std::uint32_t>(most_significant_ ^ least_significant_)}; }

  auto operator<=>(const ClusterId&) const = default;

 private:
  std::uint64_t most_significant_ = 0;
  std::uint64_t least_significant_ = 0;
};

}  // namespace mapping
