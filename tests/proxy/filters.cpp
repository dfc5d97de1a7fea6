#include "tests/proxy/filters.hpp"

#include <algorithm>
#include <numeric>

#include "tests/support/catch.hpp"

namespace support {
namespace {

template <typename Filter>
Outcome run(Filter& filter, std::span<const std::byte> bytes, std::size_t piece) {
  CollectingSink sink;
  Bytes undecided;
  auto status = Filter::Status::more;
  while (!bytes.empty() && status == Filter::Status::more) {
    const auto arrived = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(arrived.size());
    Bytes window(undecided.size() + arrived.size());
    std::ranges::copy(undecided, window.begin());
    std::ranges::copy(arrived, window.begin() + static_cast<std::ptrdiff_t>(undecided.size()));
    const auto turn = filter.take(window, sink);
    sink.end_turn();
    REQUIRE(turn.consumed <= window.size());
    undecided.assign(window.begin() + static_cast<std::ptrdiff_t>(turn.consumed), window.end());
    status = turn.status;
  }
  return {sink.bytes, status, undecided.size() + bytes.size()};
}

}  // namespace

std::vector<std::size_t> piece_sizes() {
  std::vector<std::size_t> sizes(63);
  std::iota(sizes.begin(), sizes.end(), std::size_t{1});
  sizes.push_back(in_one_piece);
  return sizes;
}

void CollectingSink::add(std::span<const std::byte> added) {
  added_.emplace_back(bytes.size(), added);
  add_copy(added);
}

void CollectingSink::add_copy(std::span<const std::byte> added) {
  bytes.insert(bytes.end(), added.begin(), added.end());
}

void CollectingSink::end_turn() {
  for (const auto& [at, added] : added_)
    REQUIRE(std::ranges::equal(added, std::span<const std::byte>(bytes).subspan(at, added.size())));
  added_.clear();
}

void RecordingObserver::on_batch(const proxy::BatchEvent& event) {
  batches.push_back({event.decision.action, event.decision.refusal, event.pid.value, event.decision.pid.value,
                     event.decision.is_possible_alias, event.place.topic(), event.place.partition, event.deferral});
}

Connection::Connection(const Options& options)
    : in_flight(options.in_flight_max),
      mapper({options.region}),
      advertise([this](std::int32_t node) -> const codec::Endpoint* {
        const auto found = nodes.find(node);
        return found == nodes.end() ? nullptr : &found->second;
      }),
      requests(mapper, in_flight, options.frame_size_max, observer, options.collisions),
      responses(in_flight, advertise, observer, {}, options.collisions) {}

Outcome Connection::send(std::span<const std::byte> bytes, std::size_t piece) {
  return run(requests, bytes, piece);
}

Outcome Connection::receive(std::span<const std::byte> bytes, std::size_t piece) {
  return run(responses, bytes, piece);
}

Bytes Connection::answer_local() {
  CollectingSink sink;
  responses.answer_local(sink);
  return sink.bytes;
}

void Connection::expect(std::int32_t correlation_id, std::int16_t api_key, std::int16_t version) {
  in_flight.push({.correlation_id = correlation_id, .api_key = api_key, .version = version});
}

}  // namespace support
