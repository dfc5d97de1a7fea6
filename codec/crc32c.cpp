#include "codec/crc32c.hpp"

#include <array>
#include <cassert>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace codec {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // bit-reflected: bit 31 is the coefficient of x^0

constexpr auto byte_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
    table[byte] = crc;
  }
  return table;
}();

constexpr std::uint32_t step(std::uint32_t crc, std::uint32_t byte) {
  return byte_table[(crc ^ byte) & 0xff] ^ (crc >> 8);
}

// a * b modulo the polynomial.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if (a & 0x80000000) product ^= b;
    b = (b >> 1) ^ (b & 1 ? polynomial : 0);
  }
  return product;
}

// shift_table[k][n] = x^(8 * n * 256^k): what n * 256^k bytes behind it multiply a remainder by. A count of bytes is
// cut into its four bytes and never reduced, so the order of x modulo this polynomial (2^31 - 1) does not matter.
constexpr auto shift_table = [] {
  std::array<std::array<std::uint32_t, 256>, 4> table{};
  std::uint32_t unit = 0x00800000;  // x^8
  for (auto& row : table) {
    row[0] = 0x80000000;  // 1
    for (std::size_t n = 1; n < 256; ++n) row[n] = multiply(row[n - 1], unit);
    unit = multiply(row[255], unit);
  }
  return table;
}();

}  // namespace

namespace crc32c_portable {

std::uint32_t full(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : bytes) crc = step(crc, std::to_integer<std::uint32_t>(byte));
  return ~crc;
}

std::uint32_t patch(std::uint32_t crc, std::uint64_t difference, std::uint32_t bytes_after) {
  std::uint32_t remainder = 0;
  for (int byte = 0; byte < 8; ++byte, difference >>= 8)
    remainder = step(remainder, static_cast<std::uint32_t>(difference & 0xff));
  for (std::size_t k = 0; k < 4; ++k, bytes_after >>= 8)
    if (const auto n = bytes_after & 0xff) remainder = multiply(shift_table[k][n], remainder);
  return crc ^ remainder;
}

}  // namespace crc32c_portable

namespace crc32c_hardware {
#if defined(__x86_64__)

bool is_available() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

__attribute__((target("sse4.2"))) std::uint32_t full(std::span<const std::byte> bytes) {
  std::uint64_t crc = 0xffffffff;
  while (bytes.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = _mm_crc32_u64(crc, word);
    bytes = bytes.subspan(8);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (const std::byte byte : bytes) rest = _mm_crc32_u8(rest, std::to_integer<std::uint8_t>(byte));
  return ~rest;
}

namespace {
// The product of two remainders has 63 bits, x^0 in bit 62; the instruction for a checksum reduces its lower half.
__attribute__((target("sse4.2,pclmul"))) inline std::uint32_t multiply_fast(std::uint32_t a, std::uint32_t b) {
  const auto product =
      _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(a)), _mm_cvtsi32_si128(static_cast<int>(b)), 0);
  const auto bits = static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)) << 1;
  return _mm_crc32_u32(0, static_cast<std::uint32_t>(bits)) ^ static_cast<std::uint32_t>(bits >> 32);
}
}  // namespace

__attribute__((target("sse4.2,pclmul"))) std::uint32_t patch(std::uint32_t crc, std::uint64_t difference,
                                                             std::uint32_t bytes_after) {
  const auto raw = static_cast<std::uint32_t>(_mm_crc32_u64(0, difference));
  const auto low = multiply_fast(shift_table[0][bytes_after & 0xff], shift_table[1][bytes_after >> 8 & 0xff]);
  const auto high = multiply_fast(shift_table[2][bytes_after >> 16 & 0xff], shift_table[3][bytes_after >> 24]);
  return crc ^ multiply_fast(multiply_fast(low, high), raw);
}

#else

bool is_available() {
  return false;
}
std::uint32_t full(std::span<const std::byte> bytes) {
  return crc32c_portable::full(bytes);
}
std::uint32_t patch(std::uint32_t crc, std::uint64_t difference, std::uint32_t bytes_after) {
  return crc32c_portable::patch(crc, difference, bytes_after);
}

#endif
}  // namespace crc32c_hardware

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  static const auto chosen = crc32c_hardware::is_available() ? crc32c_hardware::full : crc32c_portable::full;
  return chosen(bytes);
}

std::uint32_t crc32c_patch(std::uint32_t crc, std::span<const std::byte, 8> before, std::span<const std::byte, 8> after,
                           std::uint64_t bytes_after) {
  static const auto chosen = crc32c_hardware::is_available() ? crc32c_hardware::patch : crc32c_portable::patch;
  assert(bytes_after <= UINT32_MAX);
  std::uint64_t difference = 0;  // the first byte lowest, on every machine
  for (std::size_t i = 8; i-- > 0;) difference = difference << 8 | std::to_integer<std::uint64_t>(before[i] ^ after[i]);
  return chosen(crc, difference, static_cast<std::uint32_t>(bytes_after));
}

}  // namespace codec
