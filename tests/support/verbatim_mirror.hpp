#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/kafka_connection.hpp"

namespace support {

struct MirrorOptions {
  Address from;
  Address to;
  std::string topic;
  std::string to_topic;                       // empty: the same
  std::string transactional_id = "mirror";    // of requests with a transactional batch
  std::size_t in_flight = 1;                  // requests that wait for their answer, for each leader at the destination
  std::int32_t fetch_size = 1 << 20;          // bytes; a batch that is larger still comes whole
  std::chrono::milliseconds timeout{30'000};  // of each answer
  std::chrono::milliseconds patience{60'000};  // for a leader that moves
};

struct MirrorResult {
  struct Error {
    std::int32_t partition;
    std::int64_t offset;  // at the source: of a batch, or where reading stopped
    std::int16_t code;    // Kafka's, or one of the two below
  };
  static constexpr std::int16_t not_sent = -3;   // no leader could be reached, or the mirror had stopped before
  static constexpr std::int16_t no_answer = -2;  // it was sent, and whether it was written is not known

  std::uint64_t batches = 0;       // that were to be mirrored
  std::uint64_t acknowledged = 0;  // of these
  std::uint64_t bytes = 0;         // of the acknowledged
  std::uint64_t control_batches_left_out = 0;
  std::vector<Error> errors;
  std::string failure;  // why it stopped before the end; empty: it did not

  bool is_complete() const { return errors.empty() && failure.empty(); }
};

// Mirrors a topic as it stands now, from its first offset to its last, without ever looking into a batch: real Fetch,
// real Produce, a batch a request, each batch byte for byte but for its base offset, which becomes 0 as in every
// client's batch. So producer ids, epochs and sequences arrive as they were, and whether they may is for the other side
// to say. Control batches are left out, since brokers take none from clients.
//
// Every batch is acknowledged, or stands in `errors`, or `failure` says that the end was not reached. A batch that was
// refused because its leader moved is sent again, but never behind a later one of its partition.
MirrorResult mirror_verbatim(const MirrorOptions& options);

}  // namespace support
