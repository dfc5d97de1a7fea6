#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace codec {

// One edit of a frame that may change its size: `size` bytes at `offset` give way to `replacement`.
struct Splice {
  std::size_t offset;
  std::size_t size;
  std::vector<std::byte> replacement;

  std::ptrdiff_t growth() const {
    return static_cast<std::ptrdiff_t>(replacement.size()) - static_cast<std::ptrdiff_t>(size);
  }
};

// The frame with its edits made, in one pass, and its size field set right. Splices are in the order of their offsets
// and do not overlap.
std::vector<std::byte> apply_splices(std::span<const std::byte> frame, std::span<const Splice> splices);

}  // namespace codec
