#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "mapping/topic_id.hpp"

namespace proxy {

// The ids of the destination's topics by their names, learnt from the Metadata responses that pass by. Old versions of
// Produce carry names, and what is remembered about a topic is keyed by its id. Shared by all threads; asked for
// batches of disputed sources only, and by a session once in a while for each topic.
class TopicIds {
 public:
  using Clock = std::chrono::steady_clock;
  // A topic that is deleted and created again is another one, so an id is asked for again after half of this time and
  // unknown after all of it. So long a client that writes by name and hears of nothing can be taken for the old
  // topic's.
  static constexpr std::chrono::seconds fresh{5};
  static constexpr std::size_t size_max = 100'000;

  struct Known {
    mapping::TopicId id;
    Clock::time_point since;

    bool is_stale(Clock::time_point now) const { return now - since > fresh / 2; }  // to be asked for again
  };

  std::optional<Known> find(std::string_view name, Clock::time_point now) const;
  void learn(std::string_view name, const mapping::TopicId& id, Clock::time_point now);
  // Who asks for a topic again may have cause to: it may be another one by now.
  void forget(std::string_view name);
  // Another number after a topic was forgotten or found to have another id: what was found before may be wrong.
  std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;
  std::atomic<std::uint64_t> changes_ = 0;
};

// The state topic itself, which is not for clients: its name, and its id once a Metadata response has told it.
class StateTopicName {
 public:
  explicit StateTopicName(std::string name) : name_(std::move(name)) {}

  bool is(std::string_view name) const { return name == name_; }
  bool is(const mapping::TopicId& id) const;
  void learn(const mapping::TopicId& id);

 private:
  std::string name_;
  std::atomic<std::uint64_t> high_ = 0, low_ = 0;  // of the id
};

}  // namespace proxy
