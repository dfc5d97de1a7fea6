#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codec/error.hpp"
#include "codec/messages.hpp"
#include "codec/splice.hpp"

namespace codec {

struct Endpoint {
  std::string host;
  std::uint16_t port;
};

// Where clients reach a node; nothing: they cannot.
using Advertise = std::function<const Endpoint*(std::int32_t node_id)>;

struct EndpointEdits {
  std::vector<Splice> splices;               // none: the frame stays as it is
  std::vector<std::int32_t> nodes_left_out;  // nodes that have no endpoint
};

// How the addresses in a response become those that `advertise` tells.
//
// A node without an endpoint is left out of its array; as the only coordinator it becomes COORDINATOR_NOT_AVAILABLE
// (15) with node -1, no host and port -1, as brokers say it, since clients fail in odd ways on a blank address. Entries
// of no node (-1) stay, but for an address in them. So do controllers' addresses (DescribeCluster, endpoint type 2).
//
// `frame`: the whole response with its size field and the header of `api`; it is not changed.
Result<EndpointEdits> rewrite_endpoints(std::span<std::byte> frame, const Api& api, Version version,
                                        const Advertise& advertise);

// The end of a ShareFetch response from its NodeEndpoints on, without the addresses and at the same size: an empty
// array, and in front of the tagged fields that were there one of zeros that no reader knows. An array that is empty
// already stays.
[[nodiscard]] Result<void> blank_share_fetch_tail(std::span<std::byte> tail, Version version);

// A tag of one byte that no Kafka message uses, for fields that are blanked in place.
inline constexpr std::byte unknown_tag{0x7f};

}  // namespace codec
