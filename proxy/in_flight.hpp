#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>

#include "codec/schema.hpp"

namespace proxy {

// A request whose response has still to begin: a response does not say what it answers.
struct PendingResponse {
  std::int32_t correlation_id;
  std::int16_t api_key;
  codec::Version version;
  bool is_local = false;  // the proxy answers it itself, when its turn comes
};

// Brokers answer each connection in order, and clients rely on it, so pending responses form a queue. A request that
// gets no response (Produce with acks 0) never enters it.
class InFlight {
 public:
  explicit InFlight(std::size_t size_max) : size_max_(size_max) {}

  bool full() const { return queue_.size() >= size_max_; }
  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }
  void push(const PendingResponse& pending) { queue_.push_back(pending); }
  const PendingResponse& front() const { return queue_.front(); }
  void pop() { queue_.pop_front(); }
  void pop_back() { queue_.pop_back(); }

 private:
  std::deque<PendingResponse> queue_;
  std::size_t size_max_;
};

}  // namespace proxy
