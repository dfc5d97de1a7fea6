#include "mapping/state_records.hpp"

#include <array>
#include <cassert>
#include <charconv>
#include <string_view>
#include <utility>

#include "mapping/base64url.hpp"
#include "mapping/record_bytes.hpp"

namespace mapping {
namespace {

constexpr std::int16_t collision_type = 3;
constexpr std::int16_t registration_type = 100;
constexpr std::int16_t claim_type = 101;
constexpr std::int16_t value_version = 0;

// From 1970 to 9999: ages can be told without overflow.
Time read_time(RecordReader& reader) {
  constexpr std::int64_t end_ms = 253'402'300'800'000;
  const auto timestamp_ms = reader.int64();
  if (timestamp_ms < 0 || timestamp_ms >= end_ms) reader.fail("has a time that makes no sense");
  return Time{Duration{timestamp_ms}};
}

TopicId read_topic_id(RecordReader& reader) {
  return {reader.bytes16()};
}

CollisionKey read_collision_key(RecordReader& reader) {
  CollisionKey key;
  key.topic_id = read_topic_id(reader);
  key.partition = reader.int32();
  key.source_cluster_id = reader.string();
  key.original_pid = {reader.int64()};
  return key;
}

CollisionValue read_collision_value(RecordReader& reader) {
  CollisionValue value;
  value.salt = reader.int64();
  value.colliding_cluster_id = reader.compact_string();
  value.timestamp = read_time(reader);
  reader.skip_tagged_fields();
  return value;
}

RegistrationKey read_registration_key(RecordReader& reader) {
  RegistrationKey key;
  key.region = {static_cast<std::uint32_t>(reader.int32())};
  key.source_cluster_id = reader.string();
  key.nonce = {reader.bytes16()};
  return key;
}

RegistrationValue read_registration_value(RecordReader& reader) {
  RegistrationValue value;
  value.partitions = reader.int32();
  value.timestamp = read_time(reader);
  return value;
}

ClaimKey read_claim_key(RecordReader& reader) {
  ClaimKey key;
  key.topic_id = read_topic_id(reader);
  key.partition = reader.int32();
  key.nonce = {reader.bytes16()};
  return key;
}

ClaimValue read_claim_value(RecordReader& reader) {
  ClaimValue value;
  value.source_cluster_id = reader.string();
  value.original_pid = {reader.int64()};
  value.salt = reader.int64();
  value.timestamp = read_time(reader);
  return value;
}

template <class Key, class Value>
Decoded read_entry(RecordReader& key_reader, std::optional<ByteView> value, Key (*read_key)(RecordReader&),
                   Value (*read_value)(RecordReader&)) {
  Entry<Key, Value> entry{read_key(key_reader), std::nullopt};
  if (!key_reader.is_complete()) return Undecodable{"the key " + key_reader.complaint()};
  if (!value) return entry;
  RecordReader reader(*value);
  const auto version = reader.int16();
  if (!reader.is_failed() && version != value_version)
    return Undecodable{"the value has version " + std::to_string(version) + ", only 0 is known"};
  entry.value = read_value(reader);
  if (!reader.is_complete()) return Undecodable{"the value " + reader.complaint()};
  return entry;
}

}  // namespace

Bytes encode(const CollisionKey& key) {
  RecordWriter writer;
  writer.int16(collision_type);
  writer.bytes16(key.topic_id.bytes);
  writer.int32(key.partition);
  writer.string(key.source_cluster_id);
  writer.int64(key.original_pid.value);
  return std::move(writer).take();
}

Bytes encode(const CollisionValue& value) {
  RecordWriter writer;
  writer.int16(value_version);
  writer.int64(value.salt);
  writer.compact_string(value.colliding_cluster_id);
  writer.int64(value.timestamp.time_since_epoch().count());
  writer.no_tagged_fields();
  return std::move(writer).take();
}

Bytes encode(const RegistrationKey& key) {
  RecordWriter writer;
  writer.int16(registration_type);
  writer.int32(static_cast<std::int32_t>(key.region.value));
  writer.string(key.source_cluster_id);
  writer.bytes16(key.nonce.bytes);
  return std::move(writer).take();
}

Bytes encode(const RegistrationValue& value) {
  RecordWriter writer;
  writer.int16(value_version);
  writer.int32(value.partitions);
  writer.int64(value.timestamp.time_since_epoch().count());
  return std::move(writer).take();
}

Bytes encode(const ClaimKey& key) {
  RecordWriter writer;
  writer.int16(claim_type);
  writer.bytes16(key.topic_id.bytes);
  writer.int32(key.partition);
  writer.bytes16(key.nonce.bytes);
  return std::move(writer).take();
}

Bytes encode(const ClaimValue& value) {
  RecordWriter writer;
  writer.int16(value_version);
  writer.string(value.source_cluster_id);
  writer.int64(value.original_pid.value);
  writer.int64(value.salt);
  writer.int64(value.timestamp.time_since_epoch().count());
  return std::move(writer).take();
}

Decoded decode(ByteView key, std::optional<ByteView> value) {
  RecordReader reader(key);
  const auto type = reader.int16();
  if (reader.is_failed()) return Undecodable{"the key " + reader.complaint()};
  switch (type) {
    case collision_type: return read_entry(reader, value, read_collision_key, read_collision_value);
    case registration_type: return read_entry(reader, value, read_registration_key, read_registration_value);
    case claim_type: return read_entry(reader, value, read_claim_key, read_claim_value);
    default: return UnknownType{type};
  }
}

std::int32_t java_hash(std::string_view ascii, std::int32_t start) {
  auto hash = static_cast<std::uint32_t>(start);
  for (const char c : ascii) hash = hash * 31 + static_cast<unsigned char>(c);
  return static_cast<std::int32_t>(hash);
}

std::int32_t log_partition_of(const TopicId& topic_id, std::int32_t partition, std::int32_t partitions) {
  assert(partitions > 0);
  // Sessions ask for each batch that is looked up: no allocation.
  const auto id = base64url::encode(topic_id.bytes);
  std::array<char, 12> number{':'};
  const auto end = std::to_chars(number.data() + 1, number.data() + number.size(), partition).ptr;
  const auto hash = java_hash({number.data(), end}, java_hash({id.data(), id.size()}));
  if (hash == INT32_MIN) return 0;
  return (hash < 0 ? -hash : hash) % partitions;
}

}  // namespace mapping
