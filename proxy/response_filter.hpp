#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/endpoints.hpp"
#include "codec/frame.hpp"
#include "codec/walker.hpp"
#include "proxy/fault.hpp"
#include "proxy/in_flight.hpp"
#include "proxy/request_filter.hpp"
#include "proxy/sink.hpp"

namespace proxy {

// The way from a broker to its client, without I/O. Responses that carry addresses or versions are read whole and
// rewritten; a long Fetch or ShareFetch streams, and since its size has left before its addresses arrive, these are
// blanked at equal size (clients then ask Metadata). Those that tell producer ids stream, too, and the destination's
// own ids are marked in place. All others pass as they are.
class ResponseFilter {
 public:
  static constexpr std::uint32_t whole_size_max = 64 << 20;  // of a response that must be read whole
  static constexpr std::uint32_t fetch_whole_size_max = 64 << 10;
  static constexpr std::uint32_t tail_size_max = 64 << 10;  // NodeEndpoints at the end of a long ShareFetch

  using Status = RequestFilter::Status;  // `full` does not occur
  using Turn = RequestFilter::Turn;

  ResponseFilter(InFlight& in_flight, const codec::Advertise& advertise, TrafficObserver& observer,
                 std::span<const std::int16_t> hidden_apis = {}, Collisions* collisions = nullptr)
      : in_flight_(in_flight),
        advertise_(advertise),
        hidden_apis_(hidden_apis),
        collisions_(collisions),
        observer_(observer) {}

  // The window must be able to hold tail_size_max bytes and a step of the walker at once.
  Turn take(std::span<std::byte> window, Sink& out);

  // Sends what the proxy itself answers, as far as it is its turn. Call it whenever a request was taken.
  void answer_local(Sink& out);

  bool is_at_frame_boundary() const { return state_ == State::head; }
  const Fault& fault() const { return fault_; }

 private:
  enum class State { head, whole, header, body, blank, tail, pass };
  using Step = std::optional<Status>;

  Step read_head(std::span<std::byte> rest, Sink& out);
  Step read_whole(std::span<std::byte> rest, Sink& out);
  Step rewrite_whole(std::span<std::byte> frame, Sink& out, bool is_window);
  Step read_fields(std::span<std::byte> rest, Sink& out);
  void see_id(const codec::Walker::Step& step);
  codec::ErrorCode look_into(std::span<std::byte> frame);
  Step blank_tail(std::span<std::byte> rest, Sink& out);
  Step pass(std::span<std::byte> rest, Sink& out);
  void end_frame(Sink& out);
  void consume(std::span<std::byte> bytes, Sink& out);
  Step fail(std::string reason);

  InFlight& in_flight_;
  const codec::Advertise& advertise_;
  std::span<const std::int16_t> hidden_apis_;  // API keys that clients are not told of
  Collisions* collisions_;                     // nothing with `state: off`
  TrafficObserver& observer_;

  State state_ = State::head;
  std::optional<PendingResponse> pending_;  // whose response is being read; out of flight already
  const codec::Api* api_ = nullptr;
  std::uint64_t frame_size_ = 0;  // with its size field
  std::uint64_t frame_left_ = 0;  // bytes of the frame not consumed yet
  std::uint64_t pass_left_ = 0;   // ... that need no look, or are to be blanked
  std::vector<std::byte> frame_;  // a response that must be read whole and did not come in one window
  std::optional<codec::Walker> walker_;
  std::int16_t error_code_ = 0;  // the last one in a response that tells producer ids: of what the next id stands in
  std::size_t consumed_ = 0;     // in this turn
  Fault fault_;
};

}  // namespace proxy
