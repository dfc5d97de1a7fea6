#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "mapping/state_records.hpp"

namespace mapping {

// Reads the fields of a key or value one after the other. The first field that cannot be read fails the whole: all
// later ones are zero or empty, and is_complete() says it at the end.
class RecordReader {
 public:
  explicit RecordReader(ByteView bytes) : rest_(bytes), size_(bytes.size()) {}

  std::int16_t int16() { return static_cast<std::int16_t>(number(2)); }
  std::int32_t int32() { return static_cast<std::int32_t>(number(4)); }
  std::int64_t int64() { return static_cast<std::int64_t>(number(8)); }
  std::array<std::byte, 16> bytes16();
  std::string string();
  std::string compact_string();
  void skip_tagged_fields();
  // What was read last makes no sense; `why` goes behind "the key ".
  void fail(const char* why);

  bool is_failed() const { return failure_ != nullptr; }
  // Everything was read, and nothing is left.
  bool is_complete() const { return !is_failed() && rest_.empty(); }
  // Why it is not complete, to be put behind "the key ".
  std::string complaint() const;

 private:
  ByteView take(std::uint64_t size);
  std::uint64_t number(std::size_t size);
  std::uint32_t unsigned_varint();

  ByteView rest_;
  std::size_t size_;
  const char* failure_ = nullptr;
  std::size_t failed_at_ = 0;
};

class RecordWriter {
 public:
  void int16(std::int16_t value) { number(static_cast<std::uint16_t>(value), 2); }
  void int32(std::int32_t value) { number(static_cast<std::uint32_t>(value), 4); }
  void int64(std::int64_t value) { number(static_cast<std::uint64_t>(value), 8); }
  void bytes16(const std::array<std::byte, 16>& bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void string(std::string_view text);          // at most 32,767 bytes
  void compact_string(std::string_view text);  // ... as well
  void no_tagged_fields() { bytes_.push_back(std::byte{0}); }

  Bytes take() && { return std::move(bytes_); }

 private:
  void number(std::uint64_t value, int size);
  void characters(std::string_view text);

  Bytes bytes_;
};

}  // namespace mapping
