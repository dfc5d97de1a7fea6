#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codec/endpoints.hpp"
#include "codec/writer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hex.hpp"

// What the tests of codec/endpoints.hpp share.
namespace codec {

using support::Bytes;

// What clients are told of each node. The endpoints stay where they are, as `Advertise` has to promise.
class Nodes {
 public:
  explicit Nodes(std::map<std::int32_t, Endpoint> endpoints) : endpoints_(std::move(endpoints)) {}

  Advertise advertise() const {
    return [this](std::int32_t node) {
      const auto found = endpoints_.find(node);
      return found == endpoints_.end() ? nullptr : &found->second;
    };
  }

 private:
  std::map<std::int32_t, Endpoint> endpoints_;
};

struct Rewritten {
  Bytes frame;
  std::vector<std::int32_t> left_out;
};

inline Rewritten rewrite(Bytes frame, const Api& api, Version version, const Nodes& nodes) {
  const auto before = frame;
  const auto edits = rewrite_endpoints(frame, api, version, nodes.advertise());
  REQUIRE(edits.has_value());
  CHECK(frame == before);
  return {edits->splices.empty() ? frame : apply_splices(frame, edits->splices), edits->nodes_left_out};
}

struct Node {
  std::int32_t id;
  std::string host;
  std::int32_t port;
};

inline Bytes node_endpoints(const std::vector<Node>& nodes) {
  Writer out(true);
  out.array(nodes.size());
  for (const auto& [id, host, port] : nodes) out.integer(id).string(host).integer(port).null_string().no_tags();
  return out.data();
}

inline Bytes tagged(std::uint32_t tag, const Bytes& content) {
  return Writer(true)
      .unsigned_varint(tag)
      .unsigned_varint(static_cast<std::uint32_t>(content.size()))
      .raw(content)
      .data();
}

inline Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

}  // namespace codec
