#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/schema.hpp"
#include "mapping/state.hpp"
#include "proxy/sasl_tokens.hpp"

namespace proxy {

// A partition whose batch was made refusable because it may not leave yet: its INVALID_RECORD (87) is to become the
// retriable NOT_ENOUGH_REPLICAS (19).
struct DeferredPartition {
  std::string topic;  // its name, or the 16 bytes of its id, as the request has it
  std::int32_t partition;
  std::optional<mapping::Identity> work;  // a salt is to be written for it, once the broker has judged the batch
};

// An id of a source in a WriteTxnMarkers request. The answer must name the one that the client sent: clients look
// theirs up in it, and it comes in an order of the broker's.
struct MappedMarker {
  mapping::ProducerId mapped;
  mapping::ProducerId sent;
};

// A request whose response has still to begin: a response does not say what it answers.
struct PendingResponse {
  std::int32_t correlation_id = 0;
  std::int16_t api_key = -1;
  codec::Version version = -1;
  bool is_local = false;             // the proxy answers it itself, when its turn comes
  bool is_own = false;               // the proxy asked it itself: the response goes no further
  bool is_token = false;             // no request at all but a bare SASL token, and so will be the answer
  bool may_stay_unanswered = false;  // of a token
  std::vector<DeferredPartition> deferred = {};
  std::vector<MappedMarker> markers = {};
};

// Brokers answer each connection in order, and clients rely on it, so pending responses form a queue. A request that
// gets no response (Produce with acks 0) never enters it. Bare SASL tokens do, though the last one may get none.
class InFlight {
 public:
  explicit InFlight(std::size_t size_max) : size_max_(size_max) {}

  // Whether a further request has to wait: for an answer to others, or for that to the handshake before it. A token
  // that may stay unanswered has a place of its own, or the request behind it could wait for ever.
  bool full() const {
    return queue_.size() >= size_max_ + (awaits_optional_answer() ? 1 : 0) || tokens.awaits_answer();
  }
  bool awaits_optional_answer() const { return !empty() && front().may_stay_unanswered; }
  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }
  bool has_own() const { return own_ > 0; }
  void push(PendingResponse pending) {
    if (pending.is_own) ++own_;
    queue_.push_back(std::move(pending));
  }
  const PendingResponse& front() const { return queue_.front(); }
  PendingResponse& back() { return queue_.back(); }
  PendingResponse pop() {
    auto front = std::move(queue_.front());
    queue_.pop_front();
    if (front.is_own) --own_;
    return front;
  }
  void pop_back() { queue_.pop_back(); }
  // The first that is no token; nothing where there is none.
  const PendingResponse* first_request() const {
    for (const auto& pending : queue_)
      if (!pending.is_token) return &pending;
    return nullptr;
  }

  SaslTokens tokens;

 private:
  std::deque<PendingResponse> queue_;
  std::size_t size_max_;
  std::size_t own_ = 0;  // of the proxy's own
};

}  // namespace proxy
