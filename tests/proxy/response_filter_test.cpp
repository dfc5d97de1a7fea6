#include "proxy/response_filter.hpp"

#include <algorithm>
#include <string_view>

#include "codec/api_versions.hpp"
#include "codec/endpoints.hpp"
#include "codec/writer.hpp"
#include "tests/proxy/filters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/vectors.hpp"

namespace proxy {
namespace {

using codec::Writer;
using support::Bytes;
using support::Connection;
using support::from_hex;
using support::piece_sizes;
using support::to_hex;
using Status = ResponseFilter::Status;

using NodeIds = std::vector<std::int32_t>;

constexpr std::int32_t correlation = 7;
constexpr std::string_view hidden = "broker.internal";  // must never go on

Bytes operator+(Bytes left, std::span<const std::byte> right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

bool contains(std::span<const std::byte> bytes, std::string_view text) {
  return std::ranges::search(bytes, std::as_bytes(std::span(text))).begin() != bytes.end();
}

std::int32_t correlation_id_of(std::span<const std::byte> frame) {
  return codec::load<codec::ResponseHead>(frame).correlation_id;
}

// As the vectors have it: node N is proxy.example.org:(19090 + N).
void advertise_nodes(Connection& connection, const NodeIds& nodes) {
  for (const auto node : nodes)
    connection.nodes[node] = {"proxy.example.org", static_cast<std::uint16_t>(19090 + node)};
}

const codec::Endpoint* advertise_all(std::int32_t node) {
  if (node < 0) return nullptr;
  static std::map<std::int32_t, codec::Endpoint> endpoints;
  const auto port = static_cast<std::uint16_t>(19090 + node);
  return &endpoints.try_emplace(node, codec::Endpoint{"proxy.example.org", port}).first->second;
}

struct Received {
  Bytes bytes;
  support::RecordingObserver observer;
  Fault fault;
  Status status;
  std::size_t in_flight;
};

// A response that answers the only request in flight.
Received receive(const Bytes& frame, std::int16_t api_key, std::int16_t version,
                 std::size_t piece = support::in_one_piece, const NodeIds& nodes = {0, 1, 2}) {
  Connection connection;
  advertise_nodes(connection, nodes);
  connection.expect(correlation_id_of(frame), api_key, version);
  const auto outcome = connection.receive(frame, piece);
  return {outcome.bytes, connection.observer, connection.responses.fault(), outcome.status,
          connection.in_flight.size()};
}

Writer response_head(bool has_tags, bool flexible) {
  Writer out(flexible);
  out.integer(correlation);
  if (has_tags) out.unsigned_varint(0);
  return out;
}

void write_node_endpoints(Writer& out, const NodeIds& nodes) {
  out.array(nodes.size());
  for (const auto node : nodes) {
    out.integer(node).string(hidden).integer(std::int32_t{9092}).null_string().no_tags();
  }
}

// Versions 16 to 18.
Bytes fetch(std::size_t records_size, const NodeIds& nodes, std::string_view unknown_tag = {}) {
  auto out = response_head(true, true);
  out.integer(std::int32_t{0}).integer(std::int16_t{0}).integer(std::int32_t{0});
  out.array(1).integer(std::uint64_t{1}).integer(std::uint64_t{2});
  out.array(2);
  for (const auto size : {std::size_t{10}, records_size}) {
    out.integer(std::int32_t{0}).integer(std::int16_t{0}).integer(std::int64_t{9}).integer(std::int64_t{9});
    out.integer(std::int64_t{0}).array(0).integer(std::int32_t{-1}).bytes(Bytes(size, std::byte{0xab})).no_tags();
  }
  out.no_tags();
  Writer endpoints(true);
  write_node_endpoints(endpoints, nodes);
  out.unsigned_varint(unknown_tag.empty() ? 1 : 2);
  out.unsigned_varint(0).unsigned_varint(static_cast<std::uint32_t>(endpoints.data().size())).raw(endpoints.data());
  if (!unknown_tag.empty())
    out.unsigned_varint(99)
        .unsigned_varint(static_cast<std::uint32_t>(unknown_tag.size()))
        .raw(std::as_bytes(std::span(unknown_tag)));
  return out.frame();
}

// Version 1.
Bytes share_fetch(std::size_t records_size, const NodeIds& nodes) {
  auto out = response_head(true, true);
  out.integer(std::int32_t{0}).integer(std::int16_t{0}).null_string().integer(std::int32_t{0});
  out.array(1).integer(std::uint64_t{1}).integer(std::uint64_t{2}).array(1);
  out.integer(std::int32_t{0}).integer(std::int16_t{0}).null_string().integer(std::int16_t{0}).null_string();
  out.integer(std::int32_t{1}).integer(std::int32_t{1}).no_tags();
  out.bytes(Bytes(records_size, std::byte{0xab})).array(0).no_tags().no_tags();
  write_node_endpoints(out, nodes);
  return out.no_tags().frame();
}

// Version 12.
Bytes metadata(const NodeIds& nodes) {
  auto out = response_head(true, true);
  out.integer(std::int32_t{0});
  write_node_endpoints(out, nodes);
  out.string("cluster").integer(std::int32_t{1}).array(0).no_tags();
  return out.frame();
}

// By the tables: whether a rewritten response can be read, and leaves nothing more to rewrite.
bool is_settled(Bytes frame, std::int16_t api_key, std::int16_t version) {
  const codec::Endpoint known{"proxy.example.org", 1};
  bool has_addresses = false;
  const codec::Advertise advertise = [&](std::int32_t) {
    has_addresses = true;
    return &known;
  };
  const auto edits = codec::rewrite_endpoints(frame, *codec::find_api(api_key), version, advertise);
  return edits.has_value() && edits->splices.empty() && !has_addresses;
}

// Sizes for frames that are too long to be cut everywhere.
constexpr std::size_t coarse_pieces[] = {61, 1000, 4096, 65537, support::in_one_piece};

}  // namespace

TEST_CASE("every golden response leaves as the vectors say, cut anywhere") {
  int rows = 0;
  for (const auto& row : support::golden_messages()) {
    if (row.is_request) continue;
    ++rows;
    for (const auto piece : piece_sizes()) {
      INFO(row.title << ", pieces of " << piece);
      Connection connection;
      connection.advertise = advertise_all;
      connection.expect(correlation_id_of(row.frame), row.api_key, row.version);
      const auto outcome = connection.receive(row.frame, piece);
      CHECK(outcome.status == Status::more);
      CHECK(outcome.undecided == 0);
      CHECK(connection.in_flight.empty());
      REQUIRE(to_hex(outcome.bytes) == to_hex(row.frame_after));
    }
  }
  CHECK(rows > 60);
}

TEST_CASE("addresses of brokers are gone from every response that carries them, cut anywhere") {
  struct Case {
    const char* frame;
    std::int16_t api_key, version;
  };
  const auto [id, api_key, version] =
      GENERATE(Case{"S3v0", 3, 0}, Case{"S3v1", 3, 1}, Case{"S3v5", 3, 5}, Case{"S3v8", 3, 8}, Case{"S3v9", 3, 9},
               Case{"S3v12", 3, 12}, Case{"S3v13", 3, 13}, Case{"S4", 10, 4}, Case{"S5", 60, 1}, Case{"S6", 0, 10},
               Case{"S7", 1, 16}, Case{"S8", 78, 1});
  const auto frame = support::frame(id);
  INFO(id);
  REQUIRE(contains(frame, "internal"));
  const auto expected = receive(frame, api_key, version, support::in_one_piece, {1001});
  CHECK_FALSE(contains(expected.bytes, "internal"));
  CHECK_FALSE(contains(expected.bytes, "2001:db8"));
  for (const auto piece : piece_sizes()) {
    const auto received = receive(frame, api_key, version, piece, {1001});
    CHECK(received.status == Status::more);
    CHECK(received.in_flight == 0);
    CHECK(received.observer.responses == 1);
    CHECK(received.observer.left_out == expected.observer.left_out);
    REQUIRE(to_hex(received.bytes) == to_hex(expected.bytes));
  }
}

TEST_CASE("nodes without a listener are left out and told about") {
  const auto received = receive(metadata({0, 7, 1}), 3, 12);
  CHECK(received.observer.left_out == std::vector<std::int32_t>{7});
  CHECK_FALSE(contains(received.bytes, hidden));
  CHECK(received.bytes.size() ==
        metadata({0, 1}).size() + 2 * (std::string_view("proxy.example.org").size() - hidden.size()));
}

TEST_CASE("a response without brokers stays as it is") {
  const auto frame = support::frame("S3e");
  for (const auto piece : piece_sizes()) CHECK(receive(frame, 3, 13, piece).bytes == frame);
}

TEST_CASE("an error entry of a coordinator stays as it is") {
  const auto frame = support::frame("S4o");
  for (const auto piece : piece_sizes()) CHECK(receive(frame, 10, 1, piece).bytes == frame);
}

TEST_CASE("an ApiVersions answer keeps unknown APIs and the minimum of Produce") {
  const auto frame = support::frame("S2");
  for (const auto piece : piece_sizes()) CHECK(to_hex(receive(frame, 18, 4, piece).bytes) == to_hex(frame));
}

TEST_CASE("a broker that is another one than the client meant is told about, and its answer passes") {
  const auto frame = support::frame("S1b");
  for (const auto piece : piece_sizes()) {
    const auto received = receive(frame, 18, 5, piece);
    CHECK(received.bytes == frame);
    CHECK(received.observer.rebootstraps == 1);
  }
}

TEST_CASE("a long Fetch response streams, keeps its size, and its addresses are blanked") {
  const auto version = GENERATE(std::int16_t{16}, std::int16_t{17}, std::int16_t{18});
  const auto nodes = GENERATE(NodeIds{1}, NodeIds{1, 2, 900});
  const auto frame = fetch(ResponseFilter::fetch_whole_size_max, nodes, "kept");
  for (const auto piece : coarse_pieces) {
    INFO("version " << version << ", pieces of " << piece);
    const auto received = receive(frame, 1, version, piece);
    CHECK(received.status == Status::more);
    CHECK(received.in_flight == 0);
    REQUIRE(received.bytes.size() == frame.size());
    CHECK_FALSE(contains(received.bytes, hidden));
    CHECK(contains(received.bytes, "kept"));
    CHECK(is_settled(received.bytes, 1, version));
    // All in front of the tagged fields at the end is as it was.
    const auto same = frame.size() - 200;
    CHECK(std::ranges::equal(std::span(frame).first(same), std::span(received.bytes).first(same)));
  }
}

TEST_CASE("what of a long Fetch response is decided upon has gone on before the rest arrives") {
  const auto frame = fetch(1 << 20, {1});
  Connection connection;
  connection.expect(correlation, 1, 16);
  const auto half = connection.receive(std::span(frame).first(frame.size() / 2), 10'000);
  CHECK(half.bytes.size() == frame.size() / 2);
  CHECK(half.undecided == 0);
}

TEST_CASE("the end of a long Fetch response may be cut anywhere") {
  const auto frame = fetch(ResponseFilter::fetch_whole_size_max, {1, 2});
  const auto expected = receive(frame, 1, 16).bytes;
  for (std::size_t tail = 1; tail < 120; ++tail) {
    Connection connection;
    connection.expect(correlation, 1, 16);
    const auto first = connection.receive(std::span(frame).first(frame.size() - tail));
    const auto undecided = std::span(frame).last(tail + first.undecided);
    const auto second = connection.receive(undecided, tail + first.undecided);
    CHECK(first.bytes + second.bytes == expected);
  }
}

TEST_CASE("a Fetch response up to 64 KiB is rewritten, and a longer one blanked") {
  const auto overhead = fetch(0, {1}).size() + 2;  // two more bytes of a length
  const auto at_limit = fetch(ResponseFilter::fetch_whole_size_max - overhead, {1});
  REQUIRE(at_limit.size() == ResponseFilter::fetch_whole_size_max);
  CHECK(contains(receive(at_limit, 1, 16).bytes, "proxy.example.org"));
  const auto over_limit = fetch(ResponseFilter::fetch_whole_size_max - overhead + 1, {1});
  CHECK_FALSE(contains(receive(over_limit, 1, 16).bytes, "proxy.example.org"));
}

TEST_CASE("a Fetch response of a version without addresses passes unread") {
  const auto frame = Writer(false).integer(correlation).raw(Bytes(100'000, std::byte{0xff})).frame();
  for (const auto version : {std::int16_t{4}, std::int16_t{15}}) CHECK(receive(frame, 1, version, 999).bytes == frame);
}

TEST_CASE("a long ShareFetch response streams, keeps its size, and its addresses are blanked") {
  const auto frame = share_fetch(ResponseFilter::fetch_whole_size_max, {1, 2, 900});
  const auto without = share_fetch(ResponseFilter::fetch_whole_size_max, {});
  for (const auto piece : coarse_pieces) {
    const auto received = receive(frame, 78, 1, piece);
    REQUIRE(received.bytes.size() == frame.size());
    CHECK_FALSE(contains(received.bytes, hidden));
    CHECK(is_settled(received.bytes, 78, 1));
    CHECK(receive(without, 78, 1, piece).bytes == without);
  }
}

TEST_CASE("what follows a streamed response on its connection is read as if it had not been there") {
  const auto opaque = Writer(false).integer(correlation).raw(Bytes(100, std::byte{0})).frame();
  const auto addresses = metadata({1, 2});
  const std::vector<Bytes> streamed{share_fetch(ResponseFilter::fetch_whole_size_max, {1, 2}),
                                    share_fetch(ResponseFilter::fetch_whole_size_max, {}),
                                    fetch(ResponseFilter::fetch_whole_size_max, {1, 2})};
  for (std::size_t i = 0; i < streamed.size(); ++i) {
    for (const auto piece : coarse_pieces) {
      CAPTURE(i, piece);
      Connection connection;
      connection.nodes = {{1, {"p", 1}}, {2, {"p", 2}}};
      Bytes bytes = streamed[i];
      connection.expect(correlation, i < 2 ? 78 : 1, i < 2 ? 1 : 16);
      for (int again = 0; again < 2; ++again) {
        connection.expect(correlation, 999, 0);
        connection.expect(correlation, 3, 12);
        bytes.insert(bytes.end(), opaque.begin(), opaque.end());
        bytes.insert(bytes.end(), addresses.begin(), addresses.end());
      }
      const auto outcome = connection.receive(bytes, piece);
      CHECK(outcome.status == Status::more);
      CHECK(connection.in_flight.empty());
      CHECK_FALSE(contains(outcome.bytes, hidden));
    }
  }
}

TEST_CASE("more addresses than can be blanked are a fault and do not go on") {
  const auto frame = share_fetch(ResponseFilter::fetch_whole_size_max, NodeIds(3000));
  Connection connection;
  connection.expect(correlation, 78, 1);
  const auto outcome = connection.receive(frame, 4096);
  CHECK(outcome.status == Status::fault);
  CHECK_FALSE(contains(outcome.bytes, hidden));
}

TEST_CASE("responses of APIs that need no look pass byte for byte") {
  const auto frame = support::frame("F8") + Bytes{};
  Bytes response = Writer(false).integer(correlation).raw(frame).frame();
  for (const auto piece : piece_sizes()) CHECK(receive(response, 999, 0, piece).bytes == response);
  const auto empty = from_hex(
      "00000004"
      "00000007");
  for (const auto piece : piece_sizes()) CHECK(receive(empty, 36, 0, piece).in_flight == 0);
}

TEST_CASE("responses are told apart by the order of their requests") {
  const auto opaque = Writer(false).integer(correlation).raw(Bytes(20, std::byte{0xff})).frame();
  for (const auto piece : piece_sizes()) {
    Connection connection;
    advertise_nodes(connection, {0, 1, 2});
    connection.expect(correlation, 999, 0);
    connection.expect(correlation, 3, 12);
    connection.expect(correlation, 1, 16);
    connection.expect(correlation, 999, 0);
    const auto outcome = connection.receive(opaque + metadata({1}) + fetch(50, {2}) + opaque, piece);
    CHECK(outcome.status == Status::more);
    CHECK_FALSE(contains(outcome.bytes, hidden));
    CHECK(connection.observer.responses == 4);
    CHECK(connection.in_flight.empty());
  }
}

TEST_CASE("an answer of the proxy never cuts into a response") {
  const auto frame = metadata({1});
  const auto expected = receive(frame, 3, 12).bytes;
  const auto local = codec::unsupported_api_versions(8);
  for (std::size_t cut = 1; cut < frame.size(); ++cut) {
    Connection connection;
    advertise_nodes(connection, {0, 1, 2});
    connection.expect(correlation, 3, 12);
    connection.in_flight.push({.correlation_id = 8, .api_key = 18, .version = 99, .is_local = true});
    CHECK(connection.answer_local().empty());
    const auto first = connection.receive(std::span(frame).first(cut));
    CHECK(connection.answer_local().empty());
    const auto rest = std::span(frame).subspan(cut - first.undecided);
    const auto second = connection.receive(rest);
    CHECK(first.bytes + second.bytes == expected + local);
  }
}

TEST_CASE("responses that cannot be are faults that say so") {
  struct Case {
    const char* what;
    Bytes bytes;
    std::int16_t api_key, version;
    const char* reason;
  };
  const Case cases[] = {
      {"a size of -1",
       from_hex("ffffffff"
                "00000007"),
       999, 0, "response size -1"},
      {"a size of 3",
       from_hex("00000003"
                "00000007"),
       999, 0, "response size 3"},
      {"another correlation id",
       from_hex("00000004"
                "00000008"),
       999, 0, "correlation id 8 where 7 was next"},
      {"more than can be rewritten",
       from_hex("04000001"
                "00000007"),
       3, 12, "67108869 bytes"},
      {"no message", Writer(false).integer(correlation).raw(Bytes(40, std::byte{0xff})).frame(), 3, 12, ""},
      {"a long Fetch that is none", Writer(false).integer(correlation).raw(Bytes(100'000, std::byte{0xff})).frame(), 1,
       16, ""},
      {"ApiVersions that are none", Writer(false).integer(correlation).raw(Bytes(9, std::byte{0xff})).frame(), 18, 3,
       ""},
  };
  for (const auto& [what, bytes, api_key, version, reason] : cases) {
    for (const std::size_t piece : {std::size_t{8}, support::in_one_piece}) {
      INFO(what << ", pieces of " << piece);
      Connection connection;
      connection.expect(correlation, api_key, version);
      const auto outcome = connection.receive(bytes, piece);
      REQUIRE(outcome.status == Status::fault);
      const auto& fault = connection.responses.fault();
      INFO(fault.reason);
      CHECK(fault.reason.find(reason) != std::string::npos);
      CHECK_FALSE(fault.reason.empty());
      CHECK(fault.api_key == api_key);
      CHECK(fault.api_version == version);
      CHECK(fault.correlation_id == correlation);
      CHECK(outcome.bytes.size() < bytes.size());
    }
  }
}

TEST_CASE("a response that nobody asked for is a fault") {
  Connection connection;
  CHECK(connection
            .receive(from_hex("00000004"
                              "00000007"))
            .status == Status::fault);
  CHECK(connection.responses.fault().reason.find("nobody asked for") != std::string::npos);
}

TEST_CASE("a response that ends early is never taken for a whole one") {
  const auto frame = metadata({0, 1});
  for (std::size_t size = 0; size < frame.size(); ++size) {
    Connection connection;
    connection.expect(correlation, 3, 12);
    const auto outcome = connection.receive(std::span(frame).first(size));
    CHECK(outcome.status == Status::more);
    CHECK(outcome.bytes.empty());
    if (size < sizeof(codec::ResponseHead)) continue;
    CHECK_FALSE(connection.responses.is_at_frame_boundary());
    auto claimed = Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
    codec::store(claimed, boost::endian::big_int32_t(static_cast<std::int32_t>(size - 4)));
    Connection other;
    other.expect(correlation, 3, 12);
    CHECK(other.receive(claimed).status == Status::fault);
  }
}

}  // namespace proxy
