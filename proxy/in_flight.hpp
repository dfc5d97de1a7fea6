#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "codec/schema.hpp"
#include "mapping/producer_id.hpp"

namespace proxy {

// A partition whose batch was made refusable because it may not leave yet: its INVALID_RECORD (87) is to become the
// retriable NOT_ENOUGH_REPLICAS (19).
struct DeferredPartition {
  std::string topic;  // its name, or the 16 bytes of its id, as the request has it
  std::int32_t partition;
};

// An id of a source in a WriteTxnMarkers request. The answer must name the one that the client sent: clients look
// theirs up in it, and it comes in an order of the broker's.
struct MappedMarker {
  mapping::ProducerId mapped;
  mapping::ProducerId sent;
};

// A request whose response has still to begin: a response does not say what it answers.
struct PendingResponse {
  std::int32_t correlation_id;
  std::int16_t api_key;
  codec::Version version;
  bool is_local = false;  // the proxy answers it itself, when its turn comes
  bool is_own = false;    // the proxy asked it itself: the response goes no further
  std::vector<DeferredPartition> deferred = {};
  std::vector<MappedMarker> markers = {};
};

// Brokers answer each connection in order, and clients rely on it, so pending responses form a queue. A request that
// gets no response (Produce with acks 0) never enters it.
class InFlight {
 public:
  explicit InFlight(std::size_t size_max) : size_max_(size_max) {}

  bool full() const { return queue_.size() >= size_max_; }
  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }
  void push(PendingResponse pending) { queue_.push_back(std::move(pending)); }
  const PendingResponse& front() const { return queue_.front(); }
  PendingResponse& back() { return queue_.back(); }
  PendingResponse pop() {
    auto front = std::move(queue_.front());
    queue_.pop_front();
    return front;
  }
  void pop_back() { queue_.pop_back(); }

 private:
  std::deque<PendingResponse> queue_;
  std::size_t size_max_;
};

}  // namespace proxy
