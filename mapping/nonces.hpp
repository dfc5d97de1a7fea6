#pragma once
#include <cstdint>

#include "mapping/state_records.hpp"

namespace mapping {

// Nonces that no other process makes: 8 random bytes of the process, and a counter.
class Nonces {
 public:
  explicit Nonces(std::uint64_t process) : process_(process) {}

  Nonce next() {
    Nonce nonce;
    put(nonce, 0, process_);
    put(nonce, 8, ++count_);
    return nonce;
  }

  static bool is_of(const Nonce& nonce, std::uint64_t process) {
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < 8; ++i) first = first << 8 | std::to_integer<std::uint64_t>(nonce.bytes[i]);
    return first == process;
  }

 private:
  static void put(Nonce& nonce, std::size_t at, std::uint64_t value) {
    for (std::size_t i = 0; i < 8; ++i) nonce.bytes[at + i] = static_cast<std::byte>(value >> (56 - 8 * i));
  }

  std::uint64_t process_;
  std::uint64_t count_ = 0;
};

}  // namespace mapping
