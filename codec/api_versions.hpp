#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/error.hpp"
#include "codec/schema.hpp"

namespace codec {

inline constexpr std::int16_t error_unsupported_version = 35;
inline constexpr std::int16_t error_rebootstrap_required = 129;  // KIP-1242: the broker is another one than was meant

struct ClampedApiVersions {
  std::int16_t error_code = 0;
  std::vector<std::byte> frame;  // empty: the frame that came in, which was changed in place at most, goes on
};

// An ApiVersions response in which no API that the proxy must read goes beyond what it can read; all others, the
// features and unknown tagged fields stay. An API whose minimum at the broker is above ours is left out.
//
// `frame`: the whole response. `version`: of the request; an answer with UNSUPPORTED_VERSION (35) is in the form of
// version 0 whatever was asked (KIP-511). `hidden`: API keys that are left out, too.
Result<ClampedApiVersions> clamp_api_versions(std::span<std::byte> frame, Version version,
                                              std::span<const std::int16_t> hidden = {});

// The proxy's own answer to an ApiVersions request of a version it does not know: 35, and what it does know (KIP-511).
std::vector<std::byte> unsupported_api_versions(std::int32_t correlation_id);

}  // namespace codec
