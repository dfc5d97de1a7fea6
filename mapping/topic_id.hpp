#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mapping {

// The id that a cluster gave a topic when it was created. A topic that is deleted and created again is another one, so
// what is remembered about a topic is keyed by this and never by its name.
struct TopicId {
  std::array<std::byte, 16> bytes{};

  // 22 characters of unpadded base64url, as Kafka prints it.
  std::string text() const;
  static std::optional<TopicId> parse(std::string_view text);

  auto operator<=>(const TopicId&) const = default;
};

}  // namespace mapping
