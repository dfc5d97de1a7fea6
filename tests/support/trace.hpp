#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <vector>

#include "codec/walker.hpp"
#include "tests/support/hex.hpp"

namespace support {

// A step of the walker with copies of the bytes it pointed to.
struct Seen {
  codec::Walker::Step::Kind kind;
  codec::Role role;
  Bytes value, encoded;
  std::uint32_t size;
  bool is_null;
  Bytes content;  // of records and tagged fields: the bytes that the caller takes

  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen);

struct Trace {
  std::vector<Seen> steps;
  codec::Walker::Step::Kind end;  // done, malformed, or need_more where the bytes ended and the message did not
  codec::Error error;             // of malformed
  std::uint64_t left;             // of done

  bool operator==(const Trace&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Trace& trace);

inline constexpr std::size_t whole = std::numeric_limits<std::size_t>::max();

// Walks `bytes` as they would arrive in pieces of `piece` bytes. Each window is a heap block of exactly its size.
Trace trace(codec::Walker walker, std::span<const std::byte> bytes, std::size_t piece = whole);

}  // namespace support
