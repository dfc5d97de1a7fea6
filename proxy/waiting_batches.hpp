#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <tuple>

#include "mapping/producer_id.hpp"

namespace proxy {

// The batches of a session whose clients were told to try again, of each producer in the order in which they came.
//
// Of a negative id brokers check no sequence: where a batch is told to come again and the next one, sent before that
// answer, goes through, they would stand in the log in the wrong order. So nothing of a producer passes before its
// first batch that waits. One that does not come back, for its client has given it up, is forgotten after a while.
class WaitingBatches {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t size_max = 16'384;
  static constexpr std::chrono::seconds patience{30};  // since it came last

  struct Producer {
    std::string topic;  // its name, or the 16 bytes of its id, as the request has it
    std::int32_t partition;
    mapping::ProducerId pid;
    auto operator<=>(const Producer&) const = default;
  };
  struct Batch {
    std::int16_t epoch;
    std::int32_t sequence;
    bool operator==(const Batch&) const = default;
  };

  bool is_empty() const { return size_ == 0; }

  bool is_behind_another(const Producer& producer, const Batch& batch, Clock::time_point now) {
    const auto at = queues_.find(producer);
    if (at == queues_.end()) return false;
    auto& queue = at->second;
    while (!queue.empty() && queue.front().since + patience < now) {
      queue.pop_front();
      --size_;
    }
    const bool is_behind = !queue.empty() && queue.front().batch != batch;
    if (queue.empty()) queues_.erase(at);
    return is_behind;
  }

  // False: there are too many.
  bool add(const Producer& producer, const Batch& batch, Clock::time_point now) {
    auto& queue = queues_[producer];
    const auto at = std::ranges::find(queue, batch, &Waiting::batch);
    if (at != queue.end()) {
      at->since = now;
      return true;
    }
    queue.push_back({batch, now});
    if (++size_ > size_max) forget_lapsed(now);
    return size_ <= size_max;
  }

  // It has passed, or has been refused for good.
  void remove(const Producer& producer, const Batch& batch) {
    const auto at = queues_.find(producer);
    if (at == queues_.end()) return;
    size_ -= std::erase_if(at->second, [&](const Waiting& waiting) { return waiting.batch == batch; });
    if (at->second.empty()) queues_.erase(at);
  }

  // All of a partition: its client turns to another broker with them.
  void remove(const std::string& topic, std::int32_t partition) {
    std::erase_if(queues_, [&](const auto& entry) {
      if (entry.first.topic != topic || entry.first.partition != partition) return false;
      size_ -= entry.second.size();
      return true;
    });
  }

 private:
  void forget_lapsed(Clock::time_point now) {
    for (auto at = queues_.begin(); at != queues_.end();) {
      size_ -= std::erase_if(at->second, [&](const Waiting& waiting) { return waiting.since + patience < now; });
      at = at->second.empty() ? queues_.erase(at) : std::next(at);
    }
  }

  struct Waiting {
    Batch batch;
    Clock::time_point since;
  };
  std::map<Producer, std::deque<Waiting>> queues_;
  std::size_t size_ = 0;
};

}  // namespace proxy
