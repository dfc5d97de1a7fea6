#pragma once
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
// batches of disputed sources only.
class TopicIds {
 public:
  using Clock = std::chrono::steady_clock;
  // A topic that is deleted and created again is another one, so an id is asked for again after half of this time and
  // unknown after all of it. So long a client that writes by name and hears of nothing can be taken for the old
  // topic's.
  static constexpr std::chrono::seconds fresh{5};

  struct Found {
    mapping::TopicId id;
    bool is_stale;  // to be asked for again
  };

  std::optional<Found> find(std::string_view name, Clock::time_point now) const;
  void learn(std::string_view name, const mapping::TopicId& id, Clock::time_point now);

 private:
  struct Known {
    mapping::TopicId id;
    Clock::time_point since;
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace proxy
