#include "mapping/record_bytes.hpp"

#include <algorithm>
#include <cassert>

namespace mapping {
namespace {

std::string text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void RecordReader::fail(const char* why) {
  if (failure_) return;
  failure_ = why;
  failed_at_ = size_ - rest_.size();
}

ByteView RecordReader::take(std::uint64_t size) {
  if (size > rest_.size()) fail("ends too early");
  if (is_failed()) return {};
  const auto taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

std::uint64_t RecordReader::number(std::size_t size) {
  std::uint64_t value = 0;
  for (const auto byte : take(size)) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

std::array<std::byte, 16> RecordReader::bytes16() {
  std::array<std::byte, 16> bytes{};
  std::ranges::copy(take(bytes.size()), bytes.begin());
  return bytes;
}

std::string RecordReader::string() {
  const auto size = int16();
  if (size < 0) fail("has a string of negative length");
  return is_failed() ? std::string() : text_of(take(static_cast<std::uint64_t>(size)));
}

std::string RecordReader::compact_string() {
  const auto size_and_one = unsigned_varint();
  if (size_and_one == 0) fail("has a null string");
  return is_failed() ? std::string() : text_of(take(size_and_one - 1));
}

std::uint32_t RecordReader::unsigned_varint() {
  std::uint32_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    const auto byte = static_cast<std::uint32_t>(number(1));
    if (shift == 28 && byte > 15) break;  // more than 32 bits
    value |= (byte & 127U) << shift;
    if (byte < 128) return value;
  }
  fail("has a varint that is too long");
  return 0;
}

// None are defined; one of a newer version says nothing that is needed here.
void RecordReader::skip_tagged_fields() {
  for (auto left = unsigned_varint(); left > 0 && !is_failed(); --left) {
    unsigned_varint();
    take(unsigned_varint());
  }
}

std::string RecordReader::complaint() const {
  if (is_failed()) return std::string(failure_) + " (byte " + std::to_string(failed_at_) + ")";
  return "goes on behind its last field (byte " + std::to_string(size_ - rest_.size()) + ")";
}

void RecordWriter::number(std::uint64_t value, int size) {
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes_.push_back(static_cast<std::byte>(value >> shift));
}

void RecordWriter::characters(std::string_view text) {
  for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
}

void RecordWriter::string(std::string_view text) {
  assert(text.size() <= INT16_MAX);
  int16(static_cast<std::int16_t>(text.size()));
  characters(text);
}

void RecordWriter::compact_string(std::string_view text) {
  assert(text.size() <= INT16_MAX);
  auto size_and_one = static_cast<std::uint32_t>(text.size()) + 1;
  for (; size_and_one >= 128; size_and_one >>= 7) bytes_.push_back(static_cast<std::byte>(size_and_one | 128U));
  bytes_.push_back(static_cast<std::byte>(size_and_one));
  characters(text);
}

}  // namespace mapping
