#pragma once
#include <compare>
#include <cstdint>

namespace mapping {

// A producer id (PID) as Kafka has it: >= 0 handed out by a cluster's allocator, -1 for none, below that already
// mapped.
struct ProducerId {
  std::int64_t value;
  auto operator<=>(const ProducerId&) const = default;
};

inline constexpr ProducerId no_producer_id{-1};

// The 32 bits of a mapped producer id that name the cluster it came from.
struct Region {
  std::uint32_t value;
  auto operator<=>(const Region&) const = default;
};

// bit 63 | bits 62 ........ 31 | bits 30 ........ 0
//    1   | region              | producer at the source
namespace layout {

inline constexpr int producer_bits = 31;
inline constexpr std::int64_t producer_max = (std::int64_t{1} << producer_bits) - 1;

// F(region, pid) of the specification. Only the low 31 bits of `pid` fit: two that differ in the others alone meet.
constexpr ProducerId pack(Region region, ProducerId pid) {
  const auto bits = std::uint64_t{1} << 63 | std::uint64_t{region.value} << producer_bits |
                    (static_cast<std::uint64_t>(pid.value) & static_cast<std::uint64_t>(producer_max));
  return {static_cast<std::int64_t>(bits)};
}
// Of a mapped id: negative, but not no_producer_id.
constexpr Region region_of(ProducerId mapped) {
  return {static_cast<std::uint32_t>(static_cast<std::uint64_t>(mapped.value) >> producer_bits)};
}
constexpr ProducerId producer_of(ProducerId mapped) {
  return {mapped.value & producer_max};
}

static_assert(pack({42}, {5}).value == -9223371946660462587);
static_assert(region_of(pack({42}, {5})) == Region{42});
static_assert(producer_of(pack({42}, {5})) == ProducerId{5});
static_assert(pack({0}, {0}).value == INT64_MIN);
// The one pair that packs to a value with another meaning.
static_assert(pack({UINT32_MAX}, {producer_max}) == no_producer_id);

}  // namespace layout

// The destination's own ids carry a mark on their way through the proxy: bit 62, which no allocator reaches.
namespace mark {

inline constexpr std::int64_t bit = std::int64_t{1} << 62;

constexpr bool is_on(ProducerId pid) {
  return pid.value >= 0 && (pid.value & bit) != 0;
}
constexpr ProducerId set(ProducerId pid) {
  return {pid.value | bit};
}
constexpr ProducerId cleared(ProducerId pid) {
  return {pid.value & ~bit};
}

// An id that the destination tells a client, as the client gets it.
constexpr ProducerId to_client(ProducerId pid) {
  return pid.value >= 0 ? set(pid) : pid;
}
// An id that a client names to a coordinator, or asks about. One without the mark stays: some clients send a 0 before
// they have one.
constexpr ProducerId to_broker(ProducerId pid) {
  return is_on(pid) ? cleared(pid) : pid;
}

static_assert(is_on(set({5})) && cleared(set({5})) == ProducerId{5});
static_assert(!is_on(layout::pack({UINT32_MAX}, {5})));  // a mapped id is no marked one, whatever its region
static_assert(to_client(no_producer_id) == no_producer_id && to_client({0}).value == bit);
static_assert(to_broker({0}) == ProducerId{0} && to_broker(to_client({0})) == ProducerId{0});

}  // namespace mark

}  // namespace mapping
