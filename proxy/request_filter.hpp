#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codec/frame.hpp"
#include "codec/record_batch.hpp"
#include "codec/walker.hpp"
#include "mapping/pid_mapper.hpp"
#include "proxy/collisions.hpp"
#include "proxy/fault.hpp"
#include "proxy/in_flight.hpp"
#include "proxy/sink.hpp"

namespace proxy {

// A batch that is worth telling about, and where it was.
struct BatchEvent {
  const mapping::Decision& decision;
  mapping::ProducerId pid;  // as it came
  BatchPlace place;
  Deferral deferral = Deferral::none;
  bool is_answered = true;  // else nobody is told when it does not get into the log
};

// What happened to a producer id outside of a record batch.
enum class IdEvent {
  marked,           // the destination's own, told to the client
  handed_out,       // the same, for the client to use
  unmarked,         // the client's, on its way back to the destination
  marker_mapped,    // a source's, in a transaction marker
  marked_upstream,  // it came from the destination with the mark on it, and stays as it is
};

// Hears what the filters see; the session counts and logs it.
class TrafficObserver {
 public:
  virtual ~TrafficObserver() = default;
  virtual void on_request() {}
  virtual void on_batch(const BatchEvent&) {}
  virtual void on_null_records() {}
  virtual void on_shared_chained(const BatchEvent&, bool /*is_first*/) {}
  virtual void on_response() {}
  virtual void on_deferred_appended() {}
  virtual void on_rebootstrap_required() {}
  virtual void on_node_left_out(std::int32_t) {}
  virtual void on_id(IdEvent, mapping::ProducerId /*as it came*/) {}
};

// The way from a client to its broker, without I/O: bytes come in windows cut anywhere, what may go on is patched in
// place and handed to a sink. Of a Produce request it looks at the fields up to each batch's 61-byte header, of those
// that name producer ids at their fields, of any other at the first twelve bytes. It keeps no payload; what it cannot
// decide upon yet stays with the caller.
class RequestFilter {
 public:
  static constexpr std::size_t markers_max = 4096;  // ids of sources in one WriteTxnMarkers request

  enum class Status {
    more,   // present what is left over again, with further bytes behind it
    full,   // as many requests are in flight as may be: go on when a response has left
    held,   // a batch without an answer must wait for its salt: present the rest again after a while
    ended,  // the frame is through after which end_after_frame() was to end it
    fault,  // see fault(); nothing more may go on
  };
  struct Turn {
    std::size_t consumed;  // bytes of the window that are decided upon
    Status status;
  };

  // `collisions`: nothing with `state: off`.
  RequestFilter(const mapping::PidMapper& mapper, InFlight& in_flight, std::uint32_t frame_size_max,
                TrafficObserver& observer, Collisions* collisions = nullptr)
      : mapper_(mapper),
        collisions_(collisions),
        in_flight_(in_flight),
        observer_(observer),
        frame_size_max_(frame_size_max) {}

  Turn take(std::span<std::byte> window, Sink& out);

  // Whether `bytes`, the first of a connection, are a complete and sane frame head: only then a broker is dialled.
  // Only `more` and `fault` occur.
  Status check_first_head(std::span<const std::byte> bytes);

  // No batch of this request may wait any longer: they are made refusable, and the broker ends the connection.
  void stop_holding() { may_hold_ = false; }

  // No further frame is begun.
  void end_after_frame() { is_ending_ = true; }

  // No more bytes will come: a request that is not complete gets no response.
  void forget_incomplete();

  bool is_at_frame_boundary() const { return state_ == State::head && !is_looking_; }
  // Whether a request of the proxy's own may follow here: brokers refuse all others while a client logs in.
  bool may_interject() const { return state_ == State::head && !is_authenticating_; }
  const Fault& fault() const { return fault_; }

 private:
  enum class State { head, header, body, records, pass, drop };
  // One step of a state: nothing when it went on to another state or entry, else what the caller gets to know.
  using Step = std::optional<Status>;

  Step read_head(std::span<std::byte> rest, Sink& out);
  Step read_token(std::span<std::byte> rest);
  Step read_fields(std::span<std::byte> rest, Sink& out);
  Step read_entry(std::span<std::byte> rest, Sink& out);
  Step pass(std::span<std::byte> rest, Sink& out);
  bool is_sane(std::span<const std::byte> head);
  bool route(const codec::RequestHead& head);
  Step wait_for_topic_ids(std::span<std::byte> rest);
  // Of a request's first bytes behind its head: whether the topics that are in them and matter are known.
  enum class Look { all_known, unknown, needs_more };
  Look look_for_topics(const codec::Api& api, std::span<std::byte> bytes);
  Step rewrite(std::span<std::byte> header);
  bool is_cut_off(const codec::Walker::Step& step) const;
  void see(const codec::Walker::Step& step);
  bool rewrite_id(std::span<std::byte> value);
  void consume(std::span<std::byte> bytes, Sink& out);
  void expect_response(bool is_local);
  Step fail(std::string reason);

  const mapping::PidMapper& mapper_;
  Collisions* collisions_;
  InFlight& in_flight_;
  TrafficObserver& observer_;
  std::uint32_t frame_size_max_;

  State state_ = State::head;
  codec::RequestHead head_{};
  std::uint64_t frame_left_ = 0;    // bytes of the frame not consumed yet
  std::uint64_t records_left_ = 0;  // ... of the records field
  std::uint64_t pass_left_ = 0;     // ... that need no look
  std::optional<codec::Walker> walker_;
  std::string topic_;  // as the request has it: a name, or the 16 bytes of an id
  std::optional<mapping::TopicId> topic_id_;
  std::int32_t partition_ = 0;
  bool is_authenticating_ = false;  // the last frame belongs to a login
  bool expects_response_ = false;   // the request being read is in flight
  bool is_ending_ = false;
  bool is_looking_ = false;   // ahead, into a request that has begun and of which nothing has left
  bool may_hold_ = true;      // batches of this request
  std::size_t consumed_ = 0;  // in this turn
  Fault fault_;
};

}  // namespace proxy
