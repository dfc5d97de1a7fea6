#pragma once
#include <cstddef>
#include <span>

namespace proxy {

// Where a filter puts what goes on, in order.
class Sink {
 public:
  virtual ~Sink() = default;
  // Bytes of the caller's window; they stay where they are until the caller's turn ends.
  virtual void add(std::span<const std::byte> bytes) = 0;
  // Bytes that are gone when the call returns.
  virtual void add_copy(std::span<const std::byte> bytes) = 0;
};

}  // namespace proxy
