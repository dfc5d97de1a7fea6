#include "codec/endpoints.hpp"

#include <algorithm>
#include <array>

#include "codec/frame.hpp"
#include "codec/walker.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/trace.hpp"

namespace fuzz {
namespace {

using codec::Endpoint;
using codec::Role;
using Kind = codec::Walker::Step::Kind;

// Which nodes have an endpoint: those whose bit is set, of four endpoints in turn.
codec::Advertise advertise(std::uint8_t known) {
  static const std::array<Endpoint, 4> endpoints{
      Endpoint{"proxy.example.org", 19090}, {"p", 1}, {"2001:db8::1", 65535}, {std::string(200, 'h'), 443}};
  return [known](std::int32_t node) -> const Endpoint* {
    const auto kind = static_cast<std::size_t>(node) % 8;
    return (known >> kind & 1) ? &endpoints[kind % endpoints.size()] : nullptr;
  };
}

// Every host in an array of nodes is the one that its node is advertised by.
void require_advertised(const support::Trace& trace, const codec::Advertise& advertise) {
  const Endpoint* endpoint = nullptr;
  for (const auto& step : trace.steps) {
    if (step.role == Role::node_id && step.kind == Kind::field)
      endpoint = advertise(codec::load<boost::endian::big_int32_t>(step.value));
    if (step.role != Role::host) continue;
    require(endpoint != nullptr, "a node without an endpoint is left out");
    require(std::ranges::equal(step.value, std::as_bytes(std::span(endpoint->host))), "no other address is left");
  }
}

void require_rewritten(const Bytes& frame, const codec::Api& api, codec::Version version,
                       const codec::Advertise& advertise) {
  using codec::headers::response;
  auto rest = Input(frame).subspan(sizeof(codec::ResponseHead));
  const auto header = support::trace(codec::Walker(response, response_header_version(api, version), rest.size()), rest);
  require(header.end == Kind::done, "the header can be read again");
  rest = rest.last(header.left);
  const auto body = support::trace(codec::Walker(*api.response, version, rest.size()), rest);
  require(body.end == Kind::done, "the response can be read again");

  // An entry with an error and a controller stay as they are.
  if (api.response == &codec::find_coordinator::response || api.response == &codec::describe_cluster::response) return;
  require_advertised(body, advertise);
  for (const auto& step : body.steps) {
    if (step.kind != Kind::tagged) continue;
    static constexpr codec::Field rows[] = {
        {"NodeEndpoints", codec::Type::structs, {}, Role::endpoints, codec::node_endpoint}};
    const auto nodes = support::trace(codec::Walker(rows, version, true, step.content.size()), step.content);
    require(nodes.end == Kind::done && nodes.left == 0, "the tagged field can be read again");
    require_advertised(nodes, advertise);
  }
}

void require_tail_blanked(Bytes tail, codec::Version version) {
  const auto before = tail;
  if (!codec::blank_share_fetch_tail(tail, version)) return require(tail == before, "what cannot be read stays");
  codec::Cursor in(tail);
  require(in.unsigned_varint() <= 1, "no node is left");
  if (tail == before) return;
  in.unsigned_varint();
  require(in.integer<std::uint8_t>() == std::to_integer<std::uint8_t>(codec::unknown_tag), "the tag is unknown");
  const auto zeros = in.take(in.unsigned_varint());
  require(in.good(), "the blanked field ends before the frame does");
  require(std::ranges::all_of(zeros, [](auto byte) { return byte == std::byte{0}; }), "no address is left");
  require(std::ranges::equal(std::span(tail).subspan(in.position()), std::span(before).subspan(in.position())),
          "the fields behind stay");
}

}  // namespace

// A rewritten response can be read again, is of the size it says, names no address but those advertised, and stays as
// it is when it is rewritten once more.
// Input: which API, its version, which nodes are known, then the frame without its size.
void endpoints(Input input) {
  const auto& api = codec::apis[take_byte(input) % codec::apis.size()];
  if (api.response == nullptr || api.response == &codec::api_versions::response || api.tells_ids) return;
  const auto versions = api.served.last - api.served.first + 1;
  const auto version = static_cast<codec::Version>(api.served.first + take_byte(input) % versions);
  const auto known = advertise(take_byte(input));

  auto frame = framed(input);
  const auto before = frame;
  const auto edits = codec::rewrite_endpoints(frame, api, version, known);
  require(frame == before, "the frame itself is not changed");
  if (edits) {
    auto edited = codec::apply_splices(frame, edits->splices);
    require(has_right_size(edited), "the frame is of the size it says");
    if (edits->splices.empty()) require(edited == frame, "no splice is no change");
    require_rewritten(edited, api, version, known);
    const auto again = codec::rewrite_endpoints(edited, api, version, known);
    require(again.has_value(), "what was rewritten can be rewritten");
    require(again->splices.empty() && again->nodes_left_out.empty(), "rewriting twice is rewriting once");
  }

  if (api.response == &codec::share_fetch::response) require_tail_blanked(Bytes(input.begin(), input.end()), version);
}

}  // namespace fuzz
