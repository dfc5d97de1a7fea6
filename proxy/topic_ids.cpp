#include "proxy/topic_ids.hpp"

#include <cstring>

namespace proxy {
namespace {

// As they lie in memory: they are compared, and not read.
std::pair<std::uint64_t, std::uint64_t> halves(const mapping::TopicId& id) {
  std::uint64_t high = 0, low = 0;
  std::memcpy(&high, id.bytes.data(), sizeof high);
  std::memcpy(&low, id.bytes.data() + sizeof high, sizeof low);
  return {high, low};
}

}  // namespace

std::optional<TopicIds::Known> TopicIds::find(std::string_view name, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const auto at = known_.find(std::string(name));
  if (at == known_.end() || now - at->second.since > fresh) return std::nullopt;
  return at->second;
}

void TopicIds::learn(std::string_view name, const mapping::TopicId& id, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (known_.size() >= size_max)
    std::erase_if(known_, [&](const auto& entry) { return now - entry.second.since > fresh; });
  auto& known = known_[std::string(name)];
  if (known.id != id) changes_.fetch_add(1, std::memory_order_release);
  known = {id, now};
}

void TopicIds::forget(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (known_.erase(std::string(name)) > 0) changes_.fetch_add(1, std::memory_order_release);
}

bool StateTopicName::is(const mapping::TopicId& id) const {
  const auto [high, low] = halves(id);
  return (high | low) != 0 && high == high_.load(std::memory_order_relaxed) &&
         low == low_.load(std::memory_order_relaxed);
}

void StateTopicName::learn(const mapping::TopicId& id) {
  const auto [high, low] = halves(id);
  high_.store(high, std::memory_order_relaxed);
  low_.store(low, std::memory_order_relaxed);
}

}  // namespace proxy
