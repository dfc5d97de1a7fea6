#include "mapping/salt.hpp"

namespace mapping {
namespace {

std::uint64_t fnv1a(ByteView bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::int64_t draw_salt(const CollisionKey& identity, int attempt) {
  auto z = fnv1a(encode(identity)) + (static_cast<std::uint64_t>(attempt) + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return static_cast<std::int64_t>(z ^ z >> 31);
}

}  // namespace mapping
