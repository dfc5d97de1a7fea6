#include "mapping/base64url.hpp"

namespace mapping::base64url {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::array<char, characters> encode(const Bits128& bytes) {
  std::array<char, characters> text{};
  std::size_t size = 0;
  unsigned pending = 0;
  int pending_bits = 0;
  for (const auto byte : bytes) {
    pending = pending << 8 | std::to_integer<unsigned>(byte);
    for (pending_bits += 8; pending_bits >= 6; pending_bits -= 6)
      text[size++] = digits[pending >> (pending_bits - 6) & 63U];
  }
  text[size] = digits[pending << (6 - pending_bits) & 63U];
  return text;
}

std::optional<Bits128> decode(std::string_view text) {
  if (text.size() != characters) return std::nullopt;
  Bits128 bytes{};
  unsigned pending = 0;
  int pending_bits = 0;
  std::size_t size = 0;
  for (const char c : text) {
    const auto value = digits.find(c);
    if (value == digits.npos) return std::nullopt;
    pending = pending << 6 | static_cast<unsigned>(value);
    pending_bits += 6;
    if (pending_bits < 8 || size == bytes.size()) continue;
    pending_bits -= 8;
    bytes[size++] = static_cast<std::byte>(pending >> pending_bits & 255U);
  }
  return bytes;
}

}  // namespace mapping::base64url
