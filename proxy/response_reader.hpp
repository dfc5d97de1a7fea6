#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/error.hpp"
#include "proxy/collisions.hpp"
#include "proxy/in_flight.hpp"

namespace proxy {

// In a whole Produce response: the error of each deferred partition that the broker has refused (INVALID_RECORD, 87)
// becomes NOT_ENOUGH_REPLICAS (19), which every client takes for "try again", and the work on its salt begins. Other
// errors stay; after one that sends the client elsewhere its batches are not waited for here. Returns how many of them
// were appended all the same, which no broker does.
codec::Result<std::size_t> retry_deferred(std::span<std::byte> frame, const PendingResponse& pending,
                                          Collisions& collisions);

// The one error code of a whole response.
codec::Result<std::int16_t> read_error_code(std::span<std::byte> frame, const PendingResponse& pending);

// The ids of the topics in a whole Metadata response, or their names where the version has no ids.
codec::ErrorCode learn_topics(std::span<std::byte> frame, const PendingResponse& pending, Collisions& collisions);

}  // namespace proxy
