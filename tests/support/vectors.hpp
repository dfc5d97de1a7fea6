#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/hex.hpp"

// The rows of tests/vectors, which the tests read instead of restating them.
namespace support {

// golden_messages.json: written by Kafka's own serializers.
struct GoldenMessage {
  std::string api;
  std::int16_t api_key;
  std::int16_t version;
  bool is_request;
  std::int16_t header_version;
  Bytes frame;
  Bytes frame_after;  // as it must leave the proxy
  std::string title;
};
std::vector<GoldenMessage> golden_messages();

// golden_batches.json: what stands in a records field, and what must stand there for a source of `region`.
struct GoldenBatch {
  std::string name;
  Bytes in;
  std::uint32_t region;
  std::int64_t pid_in;   // of the first batch
  std::int64_t pid_out;  // of the first batch
  Bytes out;
};
std::vector<GoldenBatch> golden_batches();

// cluster_ids.json
struct GoldenClusterId {
  std::string text;
  std::uint64_t most_significant;
  std::uint64_t least_significant;
  std::uint32_t region;
  std::map<std::int64_t, std::int64_t> mapped;
};
std::vector<GoldenClusterId> golden_cluster_ids();

// frames.tsv
Bytes frame(std::string_view id);

}  // namespace support
