#include "codec/endpoints.hpp"

#include <algorithm>
#include <boost/endian/arithmetic.hpp>

#include "codec/frame.hpp"
#include "codec/writer.hpp"
#include "tests/codec/endpoint_frames.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/vectors.hpp"

namespace codec {
namespace {

using support::from_hex;
using support::to_hex;

const auto& metadata_api = *find_api(3);
const auto& find_coordinator_api = *find_api(10);
const auto& produce_api = *find_api(0);
const auto& fetch_api = *find_api(1);
const auto& quorum_api = *find_api(55);
const auto& cluster_api = *find_api(60);
const auto& share_fetch_api = *find_api(78);

// As the vectors have it: node N is proxy.example.org:(19090 + N).
Nodes vector_nodes() {
  std::map<std::int32_t, Endpoint> endpoints;
  for (std::int32_t node = 0; node < 4000; ++node)
    endpoints[node] = {"proxy.example.org", static_cast<std::uint16_t>(19090 + node)};
  return Nodes(std::move(endpoints));
}

// A response of version 9 and later of Metadata without topics. Each node: id, host, port.
Bytes metadata_v12(const std::vector<Node>& nodes) {
  Writer out(true);
  out.integer(std::int32_t{5}).no_tags().integer(std::int32_t{0}).array(nodes.size());
  for (const auto& [id, host, port] : nodes) out.integer(id).string(host).integer(port).string("rack").no_tags();
  out.string("cluster").integer(std::int32_t{1}).array(0).no_tags();
  return out.frame();
}

Bytes coordinator(Version version, std::int16_t error, const Node& node) {
  Writer out(version >= 3);
  out.integer(std::int32_t{5}).no_tags();
  if (version >= 1) out.integer(std::int32_t{0});
  if (version >= 4) {
    out.array(1).string("group").integer(node.id).string(node.host).integer(node.port);
    out.integer(error).null_string().no_tags();
  } else {
    out.integer(error);
    if (version >= 1) out.null_string();
    out.integer(node.id).string(node.host).integer(node.port);
  }
  out.no_tags();
  return out.frame();
}

// DescribeCluster of version 2 with one broker.
Bytes described_cluster(std::int8_t endpoint_type, const Node& node) {
  Writer out(true);
  out.integer(std::int32_t{5}).no_tags().integer(std::int32_t{0}).integer(std::int16_t{0}).null_string();
  out.integer(endpoint_type).string("cluster").integer(node.id).array(1);
  out.integer(node.id).string(node.host).integer(node.port).null_string().integer(std::int8_t{0}).no_tags();
  out.integer(std::int32_t{0}).no_tags();
  return out.frame();
}

// A Produce response of version 10 without topics, and the tagged fields given.
Bytes produced(std::uint32_t tags, const Bytes& tagged_fields) {
  Writer out(true);
  out.integer(std::int32_t{5}).no_tags().array(0).integer(std::int32_t{0}).unsigned_varint(tags).raw(tagged_fields);
  return out.frame();
}

Error error_of(Bytes frame, const Api& api, Version version) {
  const auto nodes = vector_nodes();
  const auto edits = rewrite_endpoints(frame, api, version, nodes.advertise());
  REQUIRE(edits.has_error());
  for (const auto error : {Error::truncated, Error::bad_length, Error::bad_tagged_field, Error::unsupported_version})
    if (edits.error() == error) return error;
  FAIL("another error: " << edits.error().message());
  return {};
}

}  // namespace

TEST_CASE("the responses of the vectors leave as they say, and those that name no address unchanged") {
  const auto nodes = vector_nodes();
  int changed = 0;
  for (const auto& row : support::golden_messages()) {
    const auto* api = find_api(row.api_key);
    if (api == nullptr || row.is_request || api->response == &api_versions::response || api->tells_ids) continue;
    CAPTURE(row.title);
    const auto rewritten = rewrite(row.frame, *api, row.version, nodes);
    CHECK(to_hex(rewritten.frame) == to_hex(row.frame_after));
    CHECK(rewritten.left_out.empty());
    changed += row.frame != row.frame_after;
  }
  CHECK(changed > 20);
}

TEST_CASE("what was rewritten once stays as it is the second time") {
  const auto nodes = vector_nodes();
  for (const auto& row : support::golden_messages()) {
    const auto* api = find_api(row.api_key);
    if (api == nullptr || row.is_request || api->response == &api_versions::response) continue;
    CAPTURE(row.title);
    auto frame = row.frame_after;
    const auto edits = rewrite_endpoints(frame, *api, row.version, nodes.advertise());
    REQUIRE(edits.has_value());
    CHECK(edits->splices.empty());
  }
}

TEST_CASE("every truncation of a response with addresses is an error") {
  for (const auto& row : support::golden_messages()) {
    if (row.is_request || row.frame == row.frame_after) continue;
    const auto* api = find_api(row.api_key);
    if (api == nullptr) continue;
    for (std::size_t size = 0; size < row.frame.size(); ++size) {
      CAPTURE(row.title, size);
      Bytes cut(row.frame.begin(), row.frame.begin() + static_cast<std::ptrdiff_t>(size));
      const auto nodes = Nodes({});
      REQUIRE(rewrite_endpoints(cut, *api, row.version, nodes.advertise()).has_error());
    }
  }
}

TEST_CASE("Metadata of every version keeps its racks, topics and the node ids in them") {
  const Nodes nodes({{0, {"proxy.example.org", 19090}}, {7, {"proxy.example.org", 19097}}, {1001, {"p", 1}}});
  for (const Version version : std::initializer_list<Version>{0, 1, 5, 8, 9, 12, 13}) {
    CAPTURE(version);
    const auto before = support::frame("S3v" + std::to_string(version));
    const auto rewritten = rewrite(before, metadata_api, version, nodes);
    CHECK(rewritten.left_out.empty());
    auto hex = to_hex(before);
    const auto replace = [&](const std::string& host, const std::string& by, std::uint16_t port,
                             std::uint16_t by_port) {
      const auto encoded = [&](const std::string& text, std::int32_t number) {
        return to_hex(Writer(version >= 9).string(text).integer(number).data());
      };
      const auto at = hex.find(encoded(host, port));
      REQUIRE(at != hex.npos);
      hex.replace(at, encoded(host, port).size(), encoded(by, by_port));
    };
    replace("b0.internal", "proxy.example.org", 9092, 19090);
    replace("2001:db8::7", "proxy.example.org", 9092, 19097);
    replace("b1001.internal", "p", 19092, 1);
    auto expected = from_hex(hex);
    store(expected, boost::endian::big_int32_t(static_cast<std::int32_t>(expected.size() - frame_prefix_size)));
    CHECK(to_hex(rewritten.frame) == to_hex(expected));
  }
}

TEST_CASE("an empty list of brokers stays empty") {
  const auto frame = support::frame("S3e");
  const auto rewritten = rewrite(frame, metadata_api, 13, Nodes({}));
  CHECK(to_hex(rewritten.frame) == to_hex(frame));
  CHECK(rewritten.left_out.empty());
}

TEST_CASE("a node that has no listener is left out, first, last or in between, and told") {
  const Node a{0, "a.internal", 9092}, b{7, "b.internal", 9092}, c{2147483647, "c.internal", 9092};
  const Node proxied_a{0, "p", 1}, proxied_c{2147483647, "p", 3};
  const Nodes nodes({{0, {"p", 1}}, {2147483647, {"p", 3}}});
  for (const auto& order : {std::vector{b, a, c}, std::vector{a, b, c}, std::vector{a, c, b}}) {
    const auto rewritten = rewrite(metadata_v12(order), metadata_api, 12, nodes);
    CHECK(to_hex(rewritten.frame) == to_hex(metadata_v12({proxied_a, proxied_c})));
    CHECK(rewritten.left_out == std::vector{7});
  }
  const auto rewritten = rewrite(metadata_v12({b, b}), metadata_api, 12, nodes);
  CHECK(to_hex(rewritten.frame) == to_hex(metadata_v12({})));
  CHECK(rewritten.left_out == std::vector{7, 7});
}

TEST_CASE("the count of an array gets shorter by a byte when nodes are left out") {
  std::vector<Node> nodes(127, Node{1, "internal", 9092});
  std::vector<Node> proxied(127, Node{1, "p", 1});
  nodes.insert(nodes.begin() + 60, Node{2, "internal", 9092});
  const auto rewritten = rewrite(metadata_v12(nodes), metadata_api, 12, Nodes({{1, {"p", 1}}}));
  CHECK(to_hex(rewritten.frame) == to_hex(metadata_v12(proxied)));
  nodes.pop_back();
  proxied.pop_back();
  CHECK(to_hex(rewrite(metadata_v12(nodes), metadata_api, 12, Nodes({{1, {"p", 1}}})).frame) ==
        to_hex(metadata_v12(proxied)));
}

TEST_CASE("hosts may be longer or shorter than before, IPv6, or of two length bytes") {
  for (const std::size_t before : {0u, 1u, 126u, 127u, 128u, 255u}) {
    for (const std::size_t after : {1u, 17u, 126u, 127u, 128u, 255u}) {
      CAPTURE(before, after);
      const Nodes nodes({{1, {std::string(after, 'p'), 19091}}});
      const auto rewritten = rewrite(metadata_v12({{1, std::string(before, 'b'), 9092}}), metadata_api, 12, nodes);
      CHECK(to_hex(rewritten.frame) == to_hex(metadata_v12({{1, std::string(after, 'p'), 19091}})));
    }
  }
  const Nodes nodes({{1, {"2001:db8::1", 65535}}});
  CHECK(to_hex(rewrite(metadata_v12({{1, "fe80::1%eth0", 9092}}), metadata_api, 12, nodes).frame) ==
        to_hex(metadata_v12({{1, "2001:db8::1", 65535}})));
}

TEST_CASE("a coordinator that has no listener becomes one that is not available, in every version") {
  for (auto version = find_coordinator_api.served.first; version <= find_coordinator_api.served.last; ++version) {
    CAPTURE(version);
    const auto known = rewrite(coordinator(version, 0, {1, "internal", 9092}), find_coordinator_api, version,
                               Nodes({{1, {"p", 19091}}}));
    CHECK(to_hex(known.frame) == to_hex(coordinator(version, 0, {1, "p", 19091})));
    CHECK(known.left_out.empty());
    const auto unknown =
        rewrite(coordinator(version, 0, {1, "internal", 9092}), find_coordinator_api, version, Nodes({}));
    CHECK(to_hex(unknown.frame) == to_hex(coordinator(version, 15, {-1, "", -1})));
    CHECK(unknown.left_out == std::vector{1});
  }
}

TEST_CASE("a coordinator's entry without a node stays as it is, in every version") {
  for (auto version = find_coordinator_api.served.first; version <= find_coordinator_api.served.last; ++version) {
    for (const auto& nodes : {Nodes({}), vector_nodes()}) {
      for (const std::int16_t error : std::initializer_list<std::int16_t>{0, 15, 30}) {
        CAPTURE(version, error);
        const auto frame = coordinator(version, error, {-1, "", -1});
        CHECK(to_hex(rewrite(frame, find_coordinator_api, version, nodes).frame) == to_hex(frame));
        CHECK(rewrite(frame, find_coordinator_api, version, nodes).left_out.empty());
      }
    }
  }
  const auto frame = support::frame("S4o");
  CHECK(to_hex(rewrite(frame, find_coordinator_api, 1, vector_nodes()).frame) == to_hex(frame));
}

TEST_CASE("an address that comes with no node is nobody's business") {
  for (auto version = find_coordinator_api.served.first; version <= find_coordinator_api.served.last; ++version) {
    for (const std::int32_t node : {-1, -2}) {
      CAPTURE(version, node);
      const auto frame = coordinator(version, 15, {node, "internal", 9092});
      CHECK(to_hex(rewrite(frame, find_coordinator_api, version, vector_nodes()).frame) ==
            to_hex(coordinator(version, 15, {node, "", -1})));
    }
  }
}

TEST_CASE("a coordinator that is named despite an error shows its own address no more than any other") {
  for (auto version = find_coordinator_api.served.first; version <= find_coordinator_api.served.last; ++version) {
    CAPTURE(version);
    const auto frame = coordinator(version, 30, {1, "internal", 9092});
    CHECK(to_hex(rewrite(frame, find_coordinator_api, version, Nodes({{1, {"p", 19091}}})).frame) ==
          to_hex(coordinator(version, 30, {1, "p", 19091})));
    CHECK(to_hex(rewrite(frame, find_coordinator_api, version, Nodes({})).frame) ==
          to_hex(coordinator(version, 15, {-1, "", -1})));
  }
}

TEST_CASE("of two coordinators the one with an error stays and the other is rewritten or made unavailable") {
  const auto frame = support::frame("S4");
  const auto of_g1 = to_hex(Writer(true)
                                .integer(std::int32_t{1001})
                                .string("b1001.internal")
                                .integer(std::int32_t{19092})
                                .integer(std::int16_t{0})
                                .data());
  REQUIRE(to_hex(frame).find(of_g1) != std::string::npos);
  const auto expected = [&](std::int32_t node, std::string_view host, std::int32_t port, std::int16_t error) {
    auto hex = to_hex(frame);
    hex.replace(hex.find(of_g1), of_g1.size(),
                to_hex(Writer(true).integer(node).string(host).integer(port).integer(error).data()));
    auto bytes = from_hex(hex);
    store(bytes, boost::endian::big_int32_t(static_cast<std::int32_t>(bytes.size() - frame_prefix_size)));
    return to_hex(bytes);
  };
  CHECK(to_hex(rewrite(frame, find_coordinator_api, 4, vector_nodes()).frame) ==
        expected(1001, "proxy.example.org", 20091, 0));
  const auto unknown = rewrite(frame, find_coordinator_api, 4, Nodes({}));
  CHECK(to_hex(unknown.frame) == expected(-1, "", -1, 15));
  CHECK(unknown.left_out == std::vector{1001});
}

TEST_CASE("DescribeCluster's brokers are rewritten and its controllers are not") {
  const Nodes nodes({{3, {"p", 19093}}});
  CHECK(to_hex(rewrite(described_cluster(1, {3, "internal", 9092}), cluster_api, 2, nodes).frame) ==
        to_hex(described_cluster(1, {3, "p", 19093})));
  for (const auto& none_or_all : {Nodes({}), Nodes({{3, {"p", 19093}}})}) {
    const auto controllers = rewrite(described_cluster(2, {3, "controller", 9093}), cluster_api, 2, none_or_all);
    CHECK(to_hex(controllers.frame) == to_hex(described_cluster(2, {3, "controller", 9093})));
    CHECK(controllers.left_out.empty());
  }

  const auto frame = support::frame("S5");
  auto hex = to_hex(frame);
  const auto before = to_hex(Writer(true).string("b0.internal").integer(std::int32_t{9092}).data());
  const auto after = to_hex(Writer(true).string("proxy.example.org").integer(std::int32_t{19090}).data());
  REQUIRE(hex.find(before) != hex.npos);
  hex.replace(hex.find(before), before.size(), after).replace(0, 8, "00000038");
  CHECK(to_hex(rewrite(frame, cluster_api, 1, vector_nodes()).frame) == hex);
}

TEST_CASE("node endpoints in Produce, Fetch and ShareFetch answers are rewritten, and emptied when unknown") {
  struct Row {
    const char* id;
    const Api& api;
    Version version;
    std::string before, after, emptied;  // from the tag's size, where there is one, to the frame's end
  };
  const auto nodes_of = [](const std::string& host, std::int32_t port) {
    return to_hex(
        Writer(true).array(1).integer(std::int32_t{1001}).string(host).integer(port).string("az3").no_tags().data());
  };
  const auto before = nodes_of("b1001.internal", 19092), after = nodes_of("proxy.example.org", 20091);
  for (const auto& row : {Row{"S6", produce_api, 10, "1d" + before, "20" + after, "0101"},
                          Row{"S7", fetch_api, 16, "1d" + before, "20" + after, "0101"},
                          Row{"S8", share_fetch_api, 1, before + "00", after + "00", "0100"}}) {
    CAPTURE(row.id);
    const auto frame = support::frame(row.id);
    auto hex = to_hex(frame);
    REQUIRE(hex.ends_with(row.before));
    hex.resize(hex.size() - row.before.size());
    const auto expected = [&](const std::string& end) {
      auto bytes = from_hex(hex + end);
      store(bytes, boost::endian::big_int32_t(static_cast<std::int32_t>(bytes.size() - frame_prefix_size)));
      return to_hex(bytes);
    };
    CHECK(to_hex(rewrite(frame, row.api, row.version, vector_nodes()).frame) == expected(row.after));
    const auto unknown = rewrite(frame, row.api, row.version, Nodes({}));
    CHECK(to_hex(unknown.frame) == expected(row.emptied));
    CHECK(unknown.left_out == std::vector{1001});
  }
}

TEST_CASE("unknown tagged fields around node endpoints stay in order, and the tag's size follows") {
  const auto other = tagged(3, from_hex("aabb")) + tagged(300, Bytes(200));
  for (const std::size_t size : {1u, 100u, 115u, 116u, 117u, 200u}) {
    CAPTURE(size);
    const std::string host(size, 'p');
    const auto frame = produced(3, tagged(0, node_endpoints({{1, "internal", 9092}, {2, "internal", 9092}})) + other);
    const auto rewritten = rewrite(frame, produce_api, 10, Nodes({{1, {host, 19091}}}));
    CHECK(to_hex(rewritten.frame) == to_hex(produced(3, tagged(0, node_endpoints({{1, host, 19091}})) + other)));
    CHECK(rewritten.left_out == std::vector{2});
  }
}

TEST_CASE("a tagged field longer than the array in it, or there twice, is an error") {
  const auto nodes = node_endpoints({{1, "internal", 9092}});
  CHECK(error_of(produced(1, tagged(0, nodes + from_hex("00"))), produce_api, 10) == Error::bad_tagged_field);
  CHECK(error_of(produced(2, tagged(0, nodes) + tagged(0, nodes)), produce_api, 10) == Error::bad_tagged_field);
  auto cut = nodes;
  cut.pop_back();
  CHECK(error_of(produced(1, tagged(0, cut)), produce_api, 10) == Error::truncated);
  CHECK(error_of(produced(1, tagged(0, {})), produce_api, 10) == Error::truncated);
  // The array inside counts more than the field holds, though the frame goes on.
  CHECK(error_of(produced(2, tagged(0, from_hex("64")) + tagged(9, Bytes(500))), produce_api, 10) == Error::bad_length);
}

TEST_CASE("bytes behind the last field stay") {
  const Nodes nodes({{1, {"proxy", 1}}});
  auto frame = metadata_v12({{1, "b", 9092}}) + from_hex("aabbcc");
  frame[3] = static_cast<std::byte>(frame.size() - 4);
  auto expected = metadata_v12({{1, "proxy", 1}}) + from_hex("aabbcc");
  expected[3] = static_cast<std::byte>(expected.size() - 4);
  CHECK(to_hex(rewrite(frame, metadata_api, 12, nodes).frame) == to_hex(expected));
}

TEST_CASE("a quorum's nodes get their address in each of their listeners") {
  const auto response = [](const std::string& host, std::uint16_t port, std::size_t listeners) {
    Writer out(true);
    out.integer(std::int32_t{5}).no_tags().integer(std::int16_t{0}).null_string().array(0).array(1);
    out.integer(std::int32_t{1}).array(listeners);
    for (std::size_t i = 0; i < listeners; ++i) out.string("CONTROLLER").string(host).integer(port).no_tags();
    out.no_tags().no_tags();
    return out.frame();
  };
  const Nodes nodes({{1, {"p", 65535}}});
  for (const std::size_t listeners : {0u, 1u, 3u}) {
    CAPTURE(listeners);
    CHECK(to_hex(rewrite(response("internal", 9093, listeners), quorum_api, 2, nodes).frame) ==
          to_hex(response("p", 65535, listeners)));
  }
}

TEST_CASE("a response in a version that no table describes is an error and not read by guess") {
  CHECK(error_of(metadata_v12({}), metadata_api, 14) == Error::unsupported_version);
  CHECK(error_of(metadata_v12({}), metadata_api, -1) == Error::unsupported_version);
  CHECK(error_of(support::frame("S8"), share_fetch_api, 0) == Error::unsupported_version);
}

}  // namespace codec
