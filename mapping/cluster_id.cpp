#include "mapping/cluster_id.hpp"

namespace mapping {
namespace {

// -1: no character of base64url.
constexpr int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  if (c == '_') return 63;
  return -1;
}

}  // namespace

std::optional<ClusterId> ClusterId::parse(std::string_view text) {
  constexpr std::size_t characters = 22;  // 132 bits, of which the last four do not count
  if (text.size() == characters + 2 && text.ends_with("==")) text.remove_suffix(2);
  if (text.size() != characters) return std::nullopt;
  ClusterId id;
  for (std::size_t i = 0; i < characters; ++i) {
    const int value = digit(text[i]);
    if (value < 0) return std::nullopt;
    const int bits = i + 1 < characters ? 6 : 2;
    id.most_significant_ = id.most_significant_ << bits | id.least_significant_ >> (64 - bits);
    id.least_significant_ = id.least_significant_ << bits | static_cast<std::uint64_t>(value) >> (6 - bits);
  }
  return id;
}

}  // namespace mapping
