#include <algorithm>

#include "codec/cursor.hpp"
#include "codec/endpoints.hpp"
#include "tests/codec/endpoint_frames.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/trace.hpp"

namespace codec {

using support::from_hex;
using support::to_hex;

TEST_CASE("the end of a ShareFetch answer is blanked at its size, and what else is tagged there stays") {
  struct Row {
    std::uint32_t tags;
    Bytes fields;
  };
  const std::vector<Row> rows{
      {0, {}}, {2, tagged(3, from_hex("aabb")) + tagged(300, Bytes(200, std::byte{0x55}))}, {127, Bytes(2 * 127)}};
  const auto check = [](const std::vector<Node>& nodes, const Row& row) {
    auto tail = node_endpoints(nodes) + Writer(true).unsigned_varint(row.tags).raw(row.fields).data();
    const auto size = tail.size();
    REQUIRE(blank_share_fetch_tail(tail, 1).has_value());
    REQUIRE(tail.size() == size);

    Cursor in(tail);
    REQUIRE(in.unsigned_varint() == 1);
    REQUIRE(in.unsigned_varint() == row.tags + 1);
    REQUIRE(in.integer<std::uint8_t>() == std::to_integer<std::uint8_t>(unknown_tag));
    const auto zeros = in.take(in.unsigned_varint());
    REQUIRE(std::ranges::all_of(zeros, [](auto byte) { return byte == std::byte{0}; }));
    REQUIRE(in.good());
    REQUIRE(to_hex(std::span(tail).subspan(in.position())) == to_hex(row.fields));

    // As the end of a whole answer.
    const auto body = Bytes(11) + from_hex("01") + tail;
    const auto seen = support::trace(Walker(share_fetch::response, 1, body.size()), body);
    REQUIRE(seen.end == Walker::Step::Kind::done);
    REQUIRE(seen.left == 0);
    REQUIRE(seen.steps.size() == 1);
    REQUIRE(seen.steps[0].role == Role::endpoints);
    REQUIRE(seen.steps[0].size == 0);
  };
  for (const auto& row : rows) {
    for (std::size_t host = 0; host <= 300; ++host) {
      CAPTURE(row.tags, host);
      check({{1, std::string(host, 'h'), 9092}}, row);
    }
    for (std::size_t count = 1; count <= 300; ++count) {
      CAPTURE(row.tags, count);
      check(std::vector<Node>(count, {1, "h", 9092}), row);
    }
    for (const std::size_t host : {16360u, 16370u, 16372u, 16373u, 16374u, 16380u, 16384u, 32000u})
      check({{1, std::string(host, 'h'), 9092}}, row);
  }
}

TEST_CASE("a ShareFetch answer that names no address is not blanked") {
  for (const auto* hex : {"0100", "0000",
                          "010103"
                          "02aabb",
                          "8100"
                          "00"}) {
    CAPTURE(hex);
    auto tail = from_hex(hex);
    CHECK(blank_share_fetch_tail(tail, 1).has_value());
    CHECK(to_hex(tail) == hex);
  }
}

TEST_CASE("the end of a ShareFetch answer that is cut or nonsense is an error") {
  const auto tail = node_endpoints({{1, "host", 9092}, {2, "host", 9092}}) + from_hex("00");
  for (std::size_t size = 0; size < tail.size(); ++size) {
    CAPTURE(size);
    Bytes cut(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(blank_share_fetch_tail(cut, 1).has_error());
  }
  auto many_tags = node_endpoints({{1, "host", 9092}}) + from_hex("ffffffff0f");
  CHECK(blank_share_fetch_tail(many_tags, 1).error() == Error::bad_length);
}

}  // namespace codec
