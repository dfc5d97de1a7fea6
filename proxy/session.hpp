#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxy/context.hpp"
#include "proxy/in_flight.hpp"
#include "proxy/outbox.hpp"
#include "proxy/request_filter.hpp"
#include "proxy/response_filter.hpp"
#include "proxy/stream.hpp"
#include "proxy/worker.hpp"

namespace proxy {

// One client connection and the broker connection that serves it.
//
// It lives in the coroutine that runs it, and so do both directions: nothing of a session outlives run(), and nothing
// of it is shared with another thread. Each direction takes one turn after another: wait until a side is readable, read
// into the thread's buffer, let the filter decide and patch, write at once. Bytes that would block are kept, and while
// some are kept nothing more is read: that is all the backpressure there is.
class Session final : private TrafficObserver {
 public:
  Session(tcp::socket client, const ListenerContext& listener, Worker& worker);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Until one side ends or breaks the protocol.
  asio::awaitable<void> run();

  // Takes what the client has sent by now, to the end of the frame, waits for the answers, and ends.
  void drain();
  void check_deadlines(std::chrono::steady_clock::time_point now);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds tls_timeout{10};
  static constexpr std::chrono::minutes first_head_timeout{10};  // Kafka's own for idle connections
  static constexpr std::chrono::seconds first_answer_timeout{10};
  static constexpr std::chrono::seconds linger_timeout{2};
  static constexpr std::chrono::milliseconds question_interval{100};

  asio::awaitable<bool> read_first_head();
  asio::awaitable<bool> dial_broker();
  asio::awaitable<void> relay_requests();
  asio::awaitable<void> pump_requests();
  asio::awaitable<void> relay_responses();
  asio::awaitable<void> flush(Outbox& outbox, Stream& stream);
  asio::awaitable<void> wait_for_room();
  asio::awaitable<void> wait_for_salt();
  asio::awaitable<void> linger();

  // Reads behind what `carry` holds; the window has both. Nothing: see `error`.
  std::span<std::byte> read(Stream& from, const std::vector<std::byte>& carry, ErrorCode& error);
  // What of the window is not decided upon waits for more bytes.
  static void keep(std::vector<std::byte>& carry, std::span<const std::byte> window, std::size_t consumed);
  bool is_answered() const {
    return requests_ended_ && in_flight_.empty() && responses_.is_at_frame_boundary() && to_client_.is_empty();
  }
  void end();
  void set_deadline(std::chrono::milliseconds timeout);
  // Asks the broker for the ids of topics that batches carry by name; between two requests.
  void ask_for_topic_ids();
  void log_broker_end(const ErrorCode& error);
  void log_fault(log::Limit& limit, const char* message, const Fault& fault);

  void on_request() override;
  void on_batch(const BatchEvent& event) override;
  void on_null_records() override;
  void on_shared_chained(const BatchEvent& event, bool is_first) override;
  void on_deferred_appended() override;
  void on_response() override;
  void on_rebootstrap_required() override;
  void on_node_left_out(std::int32_t node_id) override;
  void on_id(IdEvent event, mapping::ProducerId pid) override;
  void warn_of_unmarked_id(const BatchEvent& event);

  const ListenerContext& listener_;
  Worker& worker_;
  Counters& counters_;
  Stream client_;
  std::optional<Stream> broker_;
  std::string peer_;
  config::HostPort broker_address_;

  InFlight in_flight_;
  std::optional<Collisions> collisions_;
  RequestFilter requests_;
  ResponseFilter responses_;
  std::optional<Outbox> to_broker_;
  Outbox to_client_;
  std::vector<std::byte> from_client_;  // undecided bytes
  std::vector<std::byte> from_broker_;
  asio::steady_timer room_;  // cancelled when a request has been answered

  bool requests_ended_ = false;
  bool ended_ = false;
  bool client_ended_ = false;    // the client has closed its side
  bool client_is_gone_ = false;  // ... and the other, too
  bool awaits_first_answer_ = false;
  bool has_broker_spoken_ = false;
  bool is_draining_ = false;
  bool holds_marked_id_ = false;  // the client was handed an id of the destination's own
  bool has_warned_of_unmarked_id_ = false;
  std::size_t drain_left_ = 0;  // bytes of the client that lay in the socket when draining began
  Clock::time_point held_since_ = Clock::time_point::max();
  Clock::time_point next_question_ = Clock::time_point::min();
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point first_answer_deadline_ = Clock::time_point::max();
};

}  // namespace proxy
