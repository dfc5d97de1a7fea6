#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace codec {

using Version = std::int16_t;

struct Versions {
  Version first = 0;
  Version last = std::numeric_limits<Version>::max();
  constexpr bool contain(Version version) const { return first <= version && version <= last; }
};

constexpr Versions since(Version first) {
  return {.first = first};
}
constexpr Versions until(Version last) {
  return {.last = last};
}

enum class Type : std::uint8_t {
  int8,  // bool too
  int16,
  uint16,
  int32,
  int64,
  uuid,
  string,
  classic_string,  // int16 length in flexible versions too: ClientId of the request header
  bytes,
  records,
  structure,  // one struct, ending in tagged fields in flexible versions
  structs,    // an array of structs
  scalars,    // an array of one-row elements, which never have tagged fields
};

// What a field means to the proxy. A field without a role is only ever skipped.
enum class Role : std::uint8_t {
  none,
  acks,
  topic_name,
  topic_id,
  partition,
  records,
  producer_id,
  error_code,
  mechanism,  // of SASL
  endpoint_type,
  endpoints,  // an array of nodes with their addresses
  listeners,  // an array of addresses inside a node
  node_id,
  host,
  port,
  api_versions,  // the array of what a broker speaks
  api_key,
  min_version,
  max_version,
};

inline constexpr int untagged = -1;

// One row of a message's table. Rows follow the order of Kafka's own definitions
// (clients/src/main/resources/common/message/*.json), tagged rows behind the others.
struct Field {
  std::string_view name;
  Type type;
  Versions versions = {};
  Role role = Role::none;
  std::span<const Field> element = {};  // the rows of a struct, or of one element of an array
  int tag = untagged;
};

struct Message {
  std::string_view name;
  std::int16_t api_key;
  Versions versions;
  Version flexible_since;
  std::span<const Field> fields;
  constexpr bool is_flexible(Version version) const { return version >= flexible_since; }
};

inline constexpr Version never_flexible = std::numeric_limits<Version>::max();

}  // namespace codec
