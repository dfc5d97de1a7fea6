#include "mapping/cluster_id.hpp"

#include "mapping/base64url.hpp"

namespace mapping {

std::optional<ClusterId> ClusterId::parse(std::string_view text) {
  if (text.size() == base64url::characters + 2 && text.ends_with("==")) text.remove_suffix(2);
  const auto bytes = base64url::decode(text);
  if (!bytes) return std::nullopt;
  ClusterId id;
  for (std::size_t i = 0; i < bytes->size(); ++i) {
    auto& half = i < 8 ? id.most_significant_ : id.least_significant_;
    half = half << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
  }
  return id;
}

std::string ClusterId::text() const {
  base64url::Bits128 bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto half = i < 8 ? most_significant_ : least_significant_;
    bytes[i] = static_cast<std::byte>(half >> (56 - 8 * (i % 8)));
  }
  const auto text = base64url::encode(bytes);
  return {text.begin(), text.end()};
}

}  // namespace mapping
