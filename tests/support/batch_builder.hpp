#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace support {

struct Record {
  std::int64_t timestamp;  // milliseconds since 1970
  std::optional<std::string> key;
  std::string value;

  bool operator==(const Record&) const = default;
};

// As the low bits of a batch's attributes have it.
enum class Compression : std::int16_t { none = 0, lz4 = 3, zstd = 4 };

struct BatchOptions {
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
  std::int32_t base_sequence = -1;
  Compression compression = Compression::none;
  bool is_transactional = false;
  bool is_control = false;
};

// A record batch of magic 2 as a producer makes it, complete with its checksum. At least one record.
std::vector<std::byte> build_batch(std::span<const Record> records, const BatchOptions& options);

// The records of a whole batch. Nothing: its checksum is wrong, or they cannot be read.
std::optional<std::vector<Record>> read_batch(std::span<const std::byte> batch);

}  // namespace support
