#pragma once
#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "mapping/producer_id.hpp"
#include "mapping/topic_id.hpp"

// The records of the state topic, byte for byte. Numbers are big endian; `string` is int16 length + UTF-8.
//
//   collision     key    int16 3 | topic id (16) | int32 partition | string source cluster id | int64 original pid
//                 value  int16 0 | int64 salt | compact string colliding cluster id | int64 timestamp ms | tagged
//                 fields
//   registration  key    int16 100 | int32 region | string source cluster id | nonce (16)
//                 value  int16 0 | int32 partitions | int64 timestamp ms
//   claim         key    int16 101 | topic id (16) | int32 partition | nonce (16)
//                 value  int16 0 | string source cluster id | int64 original pid | int64 salt | int64 timestamp ms
//
// Of a collision the last value counts, as compaction has it. What needs an order (registrations, claims) has a key of
// its own, a nonce, so that compaction never moves it; nobody may write the same nonce twice.
namespace mapping {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;
using Duration = std::chrono::milliseconds;
using Time = std::chrono::sys_time<Duration>;

struct Nonce {
  std::array<std::byte, 16> bytes{};
  auto operator<=>(const Nonce&) const = default;
};

struct CollisionKey {
  TopicId topic_id;
  std::int32_t partition;
  std::string source_cluster_id;
  ProducerId original_pid;
  auto operator<=>(const CollisionKey&) const = default;
};
struct CollisionValue {
  std::int64_t salt;
  std::string colliding_cluster_id;  // whose the natural slot is
  Time timestamp;
  auto operator<=>(const CollisionValue&) const = default;
};

struct RegistrationKey {
  Region region;
  std::string source_cluster_id;
  Nonce nonce;
  auto operator<=>(const RegistrationKey&) const = default;
};
struct RegistrationValue {
  std::int32_t partitions;  // of the state topic: the number never changes
  Time timestamp;
  auto operator<=>(const RegistrationValue&) const = default;
};

struct ClaimKey {
  TopicId topic_id;
  std::int32_t partition;
  Nonce nonce;
  auto operator<=>(const ClaimKey&) const = default;
};
struct ClaimValue {
  std::string source_cluster_id;
  ProducerId original_pid;
  std::int64_t salt;
  Time timestamp;
  auto operator<=>(const ClaimValue&) const = default;
};

// No value: the key is deleted.
template <class Key, class Value>
struct Entry {
  Key key;
  std::optional<Value> value;
  bool operator==(const Entry&) const = default;
};
using Collision = Entry<CollisionKey, CollisionValue>;
using Registration = Entry<RegistrationKey, RegistrationValue>;
using Claim = Entry<ClaimKey, ClaimValue>;

Bytes encode(const CollisionKey& key);
Bytes encode(const CollisionValue& value);
Bytes encode(const RegistrationKey& key);
Bytes encode(const RegistrationValue& value);
Bytes encode(const ClaimKey& key);
Bytes encode(const ClaimValue& value);

struct UnknownType {  // written by something newer: skipped and counted, never an error
  std::int16_t type;
};
struct Undecodable {  // a known type that cannot be read
  std::string reason;
};
using Decoded = std::variant<Collision, Registration, Claim, UnknownType, Undecodable>;
Decoded decode(ByteView key, std::optional<ByteView> value);

// The partition of the state topic that decides about a partition of the destination: the absolute value of Java's
// hash of "TOPIC-ID:PARTITION" (the id in its 22 characters), modulo `partitions` (> 0). Of the one value that has no
// absolute value it is 0.
std::int32_t log_partition_of(const TopicId& topic_id, std::int32_t partition, std::int32_t partitions);

// Java's String.hashCode of ASCII text; `start` is that of what stands before it.
std::int32_t java_hash(std::string_view ascii, std::int32_t start = 0);

}  // namespace mapping
