#pragma once
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace support {

using Bytes = std::vector<std::byte>;

// The bytes stand in a heap block of exactly their size, so that the address sanitizer sees a read past their end.
inline Bytes from_hex(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto digit = [&](std::size_t at) {
    const auto value = digits.find(text[at]);
    if (value == digits.npos) throw std::invalid_argument("no hexadecimal digit");
    return value;
  };
  if (text.size() % 2 != 0) throw std::invalid_argument("an odd number of hexadecimal digits");
  Bytes bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(digit(2 * i) << 4 | digit(2 * i + 1));
  return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{0x0f})];
  }
  return text;
}

}  // namespace support
