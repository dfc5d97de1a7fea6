#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mapping/pid_mapper.hpp"
#include "proxy/request_filter.hpp"
#include "proxy/response_filter.hpp"
#include "tests/support/hex.hpp"

// The filters as a session drives them, without the session: bytes arrive in pieces, what is not decided upon is
// presented again with more behind it, and every window is a heap block of exactly its size.
namespace support {

inline constexpr std::size_t in_one_piece = SIZE_MAX;
// Pieces of which every cut of a message is tried, or is tried soon.
std::vector<std::size_t> piece_sizes();

// Collects what goes on. Added bytes must not change any more before the turn ends: a session may have sent them.
class CollectingSink final : public proxy::Sink {
 public:
  void add(std::span<const std::byte> bytes) override;
  void add_copy(std::span<const std::byte> bytes) override;
  void end_turn();

  Bytes bytes;

 private:
  std::vector<std::pair<std::size_t, std::span<const std::byte>>> added_;  // where they stand in `bytes`
};

struct SeenBatch {
  mapping::Action action;
  mapping::Refusal refusal;
  std::int64_t pid_before;
  std::int64_t pid_after;
  bool is_possible_alias;
  std::string topic;
  std::int32_t partition;
};

struct RecordingObserver final : proxy::TrafficObserver {
  void on_request() override { ++requests; }
  void on_batch(const proxy::BatchEvent& event) override;
  void on_null_records() override { ++null_records; }
  void on_response() override { ++responses; }
  void on_rebootstrap_required() override { ++rebootstraps; }
  void on_node_left_out(std::int32_t node) override { left_out.push_back(node); }
  void on_id(proxy::IdEvent event, mapping::ProducerId pid) override { ids.emplace_back(event, pid.value); }

  std::vector<SeenBatch> batches;
  std::vector<std::int32_t> left_out;
  std::vector<std::pair<proxy::IdEvent, std::int64_t>> ids;
  int requests = 0, null_records = 0, responses = 0, rebootstraps = 0;
};

struct Outcome {
  Bytes bytes;  // what went on
  proxy::RequestFilter::Status status;
  std::size_t undecided;  // bytes that the filter did not take
};

// Both directions of one connection.
class Connection {
 public:
  struct Options {
    std::uint32_t region = 42;
    std::size_t in_flight_max = 256;
    std::uint32_t frame_size_max = 100 << 20;
  };
  Connection() : Connection(Options{}) {}
  explicit Connection(const Options& options);

  // Ends early at a status other than `more`.
  Outcome send(std::span<const std::byte> bytes, std::size_t piece = in_one_piece);
  Outcome receive(std::span<const std::byte> bytes, std::size_t piece = in_one_piece);
  // What the proxy answers itself, as far as it is its turn.
  Bytes answer_local();
  void expect(std::int32_t correlation_id, std::int16_t api_key, std::int16_t version);

  std::map<std::int32_t, codec::Endpoint> nodes;  // where clients reach them
  proxy::InFlight in_flight;
  RecordingObserver observer;
  mapping::PidMapper mapper;
  codec::Advertise advertise;
  proxy::RequestFilter requests;
  proxy::ResponseFilter responses;
};

}  // namespace support
