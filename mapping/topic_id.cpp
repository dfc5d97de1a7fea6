#include "mapping/topic_id.hpp"

#include "mapping/base64url.hpp"

namespace mapping {

std::string TopicId::text() const {
  const auto text = base64url::encode(bytes);
  return {text.begin(), text.end()};
}

std::optional<TopicId> TopicId::parse(std::string_view text) {
  const auto bytes = base64url::decode(text);
  if (!bytes) return std::nullopt;
  return TopicId{*bytes};
}

}  // namespace mapping
