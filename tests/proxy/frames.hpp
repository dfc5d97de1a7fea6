#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "codec/crc32c.hpp"
#include "codec/writer.hpp"
#include "tests/support/hex.hpp"

// Requests of a mirror tool, as bytes.
namespace support {

inline constexpr std::int32_t correlation = 7;

inline codec::Writer request_head(std::int16_t api_key, std::int16_t version, bool flexible) {
  codec::Writer out(flexible);
  out.integer(api_key).integer(version).integer(correlation).classic_string("mirror").no_tags();
  return out;
}

// A Produce request of version 3 or later with one partition.
inline codec::Writer produce_up_to_records(std::int16_t version, std::int16_t acks = -1, std::uint32_t topics = 1) {
  auto out = request_head(0, version, version >= 9);
  out.null_string().integer(acks).integer(std::int32_t{30000}).array(topics);
  if (version >= 13) {
    out.integer(std::uint64_t{0x1122334455667788}).integer(std::uint64_t{0x99aabbccddeeff00});
  } else {
    out.string("orders");
  }
  return out.array(1).integer(std::int32_t{3});
}

inline Bytes produce(std::int16_t version, std::span<const std::byte> records, std::int16_t acks = -1) {
  return produce_up_to_records(version, acks).bytes(records).no_tags().no_tags().no_tags().frame();
}

struct BatchFields {
  std::int64_t pid = 5;
  std::int16_t epoch = 0;
  std::int32_t sequence = 0;
  std::int16_t attributes = 0;
};

inline Bytes batch(const BatchFields& fields) {
  constexpr std::string_view payload = "\x1a\x00\x00\x00\x04k1\x0ahello";
  codec::Writer signed_part(false);
  signed_part.integer(fields.attributes).integer(std::int32_t{0});
  signed_part.integer(std::int64_t{1'700'000'000'000}).integer(std::int64_t{1'700'000'000'000});
  signed_part.integer(fields.pid).integer(fields.epoch).integer(fields.sequence).integer(std::int32_t{1});
  signed_part.raw(std::as_bytes(std::span(payload)));
  const auto& bytes = signed_part.data();
  codec::Writer out(false);
  out.integer(std::int64_t{0}).integer(static_cast<std::int32_t>(bytes.size() + 9)).integer(std::int32_t{-1});
  out.integer(std::int8_t{2}).integer(codec::crc32c(bytes)).raw(bytes);
  return out.data();
}

}  // namespace support
