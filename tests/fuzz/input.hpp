#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "codec/frame.hpp"
#include "codec/writer.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/hex.hpp"

namespace fuzz {

using support::Bytes;

inline void require(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

// The first byte of what is left; 0 when nothing is.
inline std::uint8_t take_byte(Input& input) {
  if (input.empty()) return 0;
  const auto byte = std::to_integer<std::uint8_t>(input.front());
  input = input.subspan(1);
  return byte;
}

// The input behind a size field that is right, in a block of exactly its size.
inline Bytes framed(Input input) {
  const auto frame = codec::Writer(false).raw(input).frame();
  return Bytes(frame.begin(), frame.end());
}

inline bool has_right_size(const Bytes& frame) {
  return static_cast<std::size_t>(codec::load<codec::ResponseHead>(frame).size) + codec::frame_prefix_size ==
         frame.size();
}

}  // namespace fuzz
