#pragma once
#include <boost/endian/arithmetic.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "codec/messages.hpp"

namespace codec {

// What every request starts with. ClientId and, in flexible versions, tagged fields follow: headers::request.
struct RequestHead {
  boost::endian::big_int32_t size;  // bytes after this field
  boost::endian::big_int16_t api_key;
  boost::endian::big_int16_t api_version;
  boost::endian::big_int32_t correlation_id;
};
static_assert(sizeof(RequestHead) == 12 && alignof(RequestHead) == 1);

// What every response starts with; in flexible versions tagged fields follow. A response does not say what it answers.
struct ResponseHead {
  boost::endian::big_int32_t size;  // bytes after this field
  boost::endian::big_int32_t correlation_id;
};
static_assert(sizeof(ResponseHead) == 8 && alignof(ResponseHead) == 1);

inline constexpr std::uint32_t frame_prefix_size = 4;  // the size field, which does not count itself

template <typename Wire>
Wire load(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<Wire> && alignof(Wire) == 1);
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  return wire;
}

template <typename Wire>
void store(std::span<std::byte> bytes, const Wire& wire) {
  static_assert(std::is_trivially_copyable_v<Wire> && alignof(Wire) == 1);
  std::memcpy(bytes.data(), &wire, sizeof wire);
}

// ApiVersions answers with a header of version 0 always: its reader does not know yet what the broker speaks (KIP-511).
constexpr Version response_header_version(const Api& api, Version version) {
  return api.response != &api_versions::response && version >= api.flexible_since ? 1 : 0;
}

constexpr Version request_header_version(const Api& api, Version version) {
  return version >= api.flexible_since ? 2 : 1;
}

}  // namespace codec
