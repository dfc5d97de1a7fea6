#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace codec {

// CRC-32C (Castagnoli), as record batches carry it: "123456789" gives 0xe3069283.
std::uint32_t crc32c(std::span<const std::byte> bytes);

// The checksum of a message in which the eight bytes `before` became `after`, with `bytes_after` bytes following them.
//
// The checksum is linear, so the change depends on these bytes and that number alone: the cost is the same for every
// size of message, nothing of it is read, and a checksum that was wrong stays wrong. bytes_after < 2^32.
std::uint32_t crc32c_patch(std::uint32_t crc, std::span<const std::byte, 8> before, std::span<const std::byte, 8> after,
                           std::uint64_t bytes_after);

// What the two functions above choose from at the first call; tests hold one against the other.
namespace crc32c_portable {
std::uint32_t full(std::span<const std::byte> bytes);
std::uint32_t patch(std::uint32_t crc, std::uint64_t difference, std::uint32_t bytes_after);
}  // namespace crc32c_portable
namespace crc32c_hardware {
bool is_available();  // x86-64 with SSE4.2 and PCLMULQDQ
std::uint32_t full(std::span<const std::byte> bytes);
std::uint32_t patch(std::uint32_t crc, std::uint64_t difference, std::uint32_t bytes_after);
}  // namespace crc32c_hardware

}  // namespace codec
