#pragma once
#include <cstdint>

#include "mapping/producer_id.hpp"
#include "mapping/state_records.hpp"

namespace mapping {

// A salt moves an identity out of its natural slot: region' = (region + salt) mod 2^32.
constexpr Region salted(Region region, std::int64_t salt) {
  return {static_cast<std::uint32_t>(region.value + static_cast<std::uint64_t>(salt))};
}

inline constexpr int salt_attempts_max = 1024;

// The salt that an identity tries at an attempt (0 to salt_attempts_max - 1). It looks random, yet every replica and
// every retry draws the same one:
//
//   seed  = FNV-1a, 64 bits, over the bytes of the identity's collision key as it stands in the log
//   salt  = output number `attempt` (from 0) of SplitMix64 started at seed:
//             z = seed + (attempt + 1) * 0x9e3779b97f4a7c15
//             z = (z xor z >> 30) * 0xbf58476d1ce4e5b9
//             z = (z xor z >> 27) * 0x94d049bb133111eb
//             z = z xor z >> 31
//
// all modulo 2^64, shifts unsigned. 0 is no salt: an attempt that draws it is skipped.
std::int64_t draw_salt(const CollisionKey& identity, int attempt);

}  // namespace mapping
