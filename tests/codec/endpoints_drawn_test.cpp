#include <algorithm>
#include <boost/endian/arithmetic.hpp>

#include "codec/endpoints.hpp"
#include "codec/frame.hpp"
#include "tests/codec/endpoint_frames.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/encoder.hpp"

namespace codec {
namespace {

using support::from_hex;
using support::to_hex;

// The decisions of a drawn message that say what the rewrite has to make of it: hosts and ports of known nodes become
// theirs, unknown nodes are left out. Node ids are drawn from 0 to 3.
class Expected {
 public:
  Expected(const Nodes& nodes, bool is_rewritten, std::int8_t endpoint_type)
      : advertise_(nodes.advertise()), is_rewritten_(is_rewritten), endpoint_type_(endpoint_type) {}

  support::Decisions decisions() {
    return {[this](const Field& field, Bytes& value) { decide(field, value); },
            [this](Role role) { return keeps(role); }};
  }

 private:
  void decide(const Field& field, Bytes& value) {
    switch (field.role) {
      case Role::endpoint_type: value[0] = static_cast<std::byte>(endpoint_type_); break;
      case Role::node_id:
        for (std::size_t i = 0; i < 3; ++i) value[i] = std::byte{0};
        value[3] &= std::byte{3};
        node_ = std::to_integer<std::int32_t>(value[3]);
        break;
      case Role::host:
        if (const auto* endpoint = advertised()) {
          const auto host = std::as_bytes(std::span(endpoint->host));
          value.assign(host.begin(), host.end());
        }
        break;
      case Role::port:
        if (const auto* endpoint = advertised()) {
          std::ranges::fill(value, std::byte{0});
          store(std::span(value).last(2), boost::endian::big_uint16_t(endpoint->port));
        }
        break;
      default: break;
    }
  }

  const Endpoint* advertised() const { return is_rewritten_ && endpoint_type_ != 2 ? advertise_(node_) : nullptr; }

  bool keeps(Role role) const {
    if (role != Role::endpoints || !is_rewritten_ || endpoint_type_ == 2) return true;
    return advertise_(node_) != nullptr;
  }

  Advertise advertise_;
  bool is_rewritten_;
  std::int8_t endpoint_type_;
  std::int32_t node_ = -1;
};

Bytes framed(const Api& api, Version version, const Bytes& body) {
  Writer out(true);
  out.integer(std::int32_t{5});
  if (response_header_version(api, version) == 1) out.unsigned_varint(1).raw(tagged(77, from_hex("abcd")));
  return out.raw(body).frame();
}

}  // namespace

TEST_CASE("a drawn response of any API and version is rewritten at its addresses alone, unknown nodes left out") {
  const Nodes all(
      {{0, {"proxy.example.org", 19090}}, {1, {"b", 1}}, {2, {std::string(200, 'h'), 65535}}, {3, {"::1", 80}}});
  const Nodes some({{1, {"proxy.example.org", 19091}}, {2, {"c", 2}}});
  const Nodes none({});
  for (const auto& api : apis) {
    if (api.response == nullptr || api.response == &api_versions::response ||
        api.response == &find_coordinator::response)
      continue;
    for (auto version = api.served.first; version <= api.served.last; ++version) {
      for (std::uint64_t seed = 0; seed < 40; ++seed) {
        for (const auto* nodes : {&all, &some, &none}) {
          // Only DescribeCluster can name controllers.
          const bool are_controllers = api.response == &describe_cluster::response && version >= 1 && seed % 5 == 0;
          const std::int8_t endpoint_type = are_controllers ? 2 : 1;
          CAPTURE(api.name, version, seed);
          Expected before(*nodes, false, endpoint_type), after(*nodes, true, endpoint_type);
          const auto in = support::encode_random(*api.response, version, seed, before.decisions()).bytes;
          const auto out = support::encode_random(*api.response, version, seed, after.decisions()).bytes;
          const auto rewritten = rewrite(framed(api, version, in), api, version, *nodes);
          REQUIRE(to_hex(rewritten.frame) == to_hex(framed(api, version, out)));
        }
      }
    }
  }
}

}  // namespace codec
