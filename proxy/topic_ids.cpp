#include "proxy/topic_ids.hpp"

namespace proxy {

std::optional<TopicIds::Found> TopicIds::find(std::string_view name, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const auto at = known_.find(std::string(name));
  if (at == known_.end() || now - at->second.since > fresh) return std::nullopt;
  return Found{at->second.id, now - at->second.since > fresh / 2};
}

void TopicIds::learn(std::string_view name, const mapping::TopicId& id, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  known_[std::string(name)] = {id, now};
}

}  // namespace proxy
