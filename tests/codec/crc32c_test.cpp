#include "codec/crc32c.hpp"

#include <algorithm>
#include <array>
#include <boost/endian/conversion.hpp>
#include <random>
#include <string_view>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/hex.hpp"

namespace codec {
namespace {

using support::Bytes;

Bytes random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(draw() & 0xff);
  return bytes;
}

// The definition, bit by bit, in the order of the polynomial's coefficients: no table, no reflection.
// A message's bits come lowest first, and x^0 is bit 0 here.
constexpr std::uint64_t polynomial = 0x1'1edc'6f41;

std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint64_t product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    product <<= 1;
    if (product >> 32) product ^= polynomial;
    if (a >> bit & 1) product ^= b;
  }
  return static_cast<std::uint32_t>(product);
}

// x^n by squaring.
std::uint32_t power_of_x(std::uint64_t n) {
  std::uint32_t power = 1;
  for (std::uint32_t square = 2; n != 0; n >>= 1, square = multiply(square, square))
    if (n & 1) power = multiply(power, square);
  return power;
}

std::uint32_t reversed(std::uint32_t bits) {
  std::uint32_t reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (bits >> bit & 1) << (31 - bit);
  return reversed;
}

// What a difference of eight bytes makes of the checksum when `bytes_after` bytes follow.
std::uint32_t change_by_definition(std::span<const std::byte, 8> difference, std::uint64_t bytes_after) {
  std::uint32_t remainder = 0;
  for (const auto byte : difference)
    for (int bit = 0; bit < 8; ++bit)
      remainder = multiply(remainder, 2) ^ (std::to_integer<std::uint32_t>(byte) >> bit & 1);
  return reversed(multiply(remainder, power_of_x(32 + 8 * bytes_after)));
}

struct Path {
  std::string_view name;
  std::uint32_t (*full)(std::span<const std::byte>);
  std::uint32_t (*patch)(std::uint32_t, std::uint64_t, std::uint32_t);
};

std::vector<Path> paths() {
  std::vector<Path> paths{{"portable", crc32c_portable::full, crc32c_portable::patch}};
  if (crc32c_hardware::is_available()) {
    paths.push_back({"hardware", crc32c_hardware::full, crc32c_hardware::patch});
  } else {
    WARN("skipped: this machine has no CRC-32C instruction, so the hardware path is not tested");
  }
  return paths;
}

std::uint64_t difference_of(std::span<const std::byte, 8> bytes) {
  return boost::endian::endian_load<std::uint64_t, 8, boost::endian::order::little>(
      reinterpret_cast<const unsigned char*>(bytes.data()));
}

// As in a record batch: the eight bytes stand 22 bytes behind the begin of what the checksum covers.
void check_patch(std::size_t batch_size, const std::vector<Path>& paths) {
  constexpr std::size_t covered_from = 21, edit_at = 43;
  auto batch = random_bytes(batch_size, batch_size);
  const auto covered = std::span(batch).subspan(covered_from);
  const auto edit = std::span(batch).subspan<edit_at, 8>();
  std::array<std::byte, 8> before, after, difference;
  std::ranges::copy(edit, before.begin());
  std::ranges::copy(random_bytes(8, batch_size + 1), after.begin());
  std::ranges::transform(before, after, difference.begin(), [](auto a, auto b) { return a ^ b; });

  const auto crc_before = crc32c(covered);
  std::ranges::copy(after, edit.begin());
  const auto crc_after = crc32c(covered);
  const auto bytes_after = batch_size - edit_at - 8;
  CAPTURE(batch_size);
  REQUIRE(crc32c_patch(crc_before, before, after, bytes_after) == crc_after);
  for (const auto& path : paths) {
    CAPTURE(path.name);
    REQUIRE(path.full(covered) == crc_after);
    REQUIRE(path.patch(crc_before, difference_of(difference), static_cast<std::uint32_t>(bytes_after)) == crc_after);
  }
}

}  // namespace

TEST_CASE("the checksum of 123456789 is e3069283 on every path") {
  const auto text = std::as_bytes(std::span(std::string_view("123456789")));
  CHECK(crc32c(text) == 0xe3069283);
  for (const auto& path : paths()) {
    CAPTURE(path.name);
    CHECK(path.full(text) == 0xe3069283);
    CHECK(path.full({}) == 0);
  }
}

TEST_CASE("a patched checksum equals the computed one for every size of batch up to 4 KiB") {
  const auto all = paths();
  for (std::size_t size = 61; size <= 4096; ++size) check_patch(size, all);
}

TEST_CASE("a patched checksum equals the computed one for sizes up to 4 MiB") {
  const auto all = paths();
  for (std::size_t size = 4096; size < 4u << 20; size = size * 3 + 1) check_patch(size, all);
  for (const std::size_t size : {65535u, 65536u, 65587u, 65588u, 1u << 20, (1u << 20) + 51, (4u << 20) - 1, 4u << 20})
    check_patch(size, all);
}

TEST_CASE("a patch far in front of the end, past any batch, is what the definition says") {
  const std::array before = {std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},
                             std::byte{0}, std::byte{0}, std::byte{3}, std::byte{0xe8}};
  const std::array after = {std::byte{0x80}, std::byte{0}, std::byte{0}, std::byte{0x15},
                            std::byte{0},    std::byte{0}, std::byte{3}, std::byte{0xe8}};
  std::array<std::byte, 8> difference;
  std::ranges::transform(before, after, difference.begin(), [](auto a, auto b) { return a ^ b; });

  std::vector<std::uint64_t> distances{0, 1, 7, 8, 255, 256, 257, 65535, 65536, (1u << 24) - 1, 1u << 24};
  // The order of x is 2^31 - 1 bits, so 2^28 bytes and more go around it.
  for (const int bits : {28, 29, 30, 31, 32})
    for (const int off : {-1, 0, 1}) distances.push_back((std::uint64_t{1} << bits) + static_cast<std::uint64_t>(off));
  std::erase_if(distances, [](auto distance) { return distance > UINT32_MAX; });

  const auto all = paths();
  for (const auto distance : distances) {
    CAPTURE(distance);
    const auto expected = 0x12345678 ^ change_by_definition(difference, distance);
    CHECK(crc32c_patch(0x12345678, before, after, distance) == expected);
    for (const auto& path : all) {
      CAPTURE(path.name);
      CHECK(path.patch(0x12345678, difference_of(difference), static_cast<std::uint32_t>(distance)) == expected);
    }
  }
}

TEST_CASE("the hardware and the portable path patch alike at random distances") {
  std::mt19937_64 draw(7);
  const auto all = paths();
  for (int i = 0; i < 20'000; ++i) {
    const auto difference = draw();
    const auto distance = static_cast<std::uint32_t>(draw() >> (draw() % 32 + 32));
    const auto crc = static_cast<std::uint32_t>(draw());
    const auto expected = all.front().patch(crc, difference, distance);
    for (const auto& path : all) REQUIRE(path.patch(crc, difference, distance) == expected);
  }
}

TEST_CASE("two patches of the same place are one") {
  const auto a = random_bytes(8, 1), b = random_bytes(8, 2), c = random_bytes(8, 3);
  const auto at = [](const Bytes& bytes) { return std::span<const std::byte, 8>(bytes); };
  const auto through_b = crc32c_patch(crc32c_patch(5, at(a), at(b), 1000), at(b), at(c), 1000);
  CHECK(through_b == crc32c_patch(5, at(a), at(c), 1000));
  CHECK(crc32c_patch(through_b, at(c), at(a), 1000) == 5);
  CHECK(crc32c_patch(5, at(a), at(a), 1000) == 5);
}

}  // namespace codec
