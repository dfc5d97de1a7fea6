#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

// Kafka's way to print 128 bits: 22 characters of base64url without padding, of which the last has four bits that do
// not count.
namespace mapping::base64url {

using Bits128 = std::array<std::byte, 16>;
inline constexpr std::size_t characters = 22;

std::array<char, characters> encode(const Bits128& bytes);
std::optional<Bits128> decode(std::string_view text);

}  // namespace mapping::base64url
