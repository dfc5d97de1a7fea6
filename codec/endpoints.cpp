#include "codec/endpoints.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "codec/frame.hpp"
#include "codec/walker.hpp"
#include "codec/writer.hpp"

namespace codec {
namespace {

constexpr std::int16_t coordinator_not_available = 15;
constexpr std::int8_t controllers = 2;  // DescribeCluster's EndpointType
using Bytes = std::span<std::byte>;

// Collects the edits of one response. Arrays are known to the walker by their ends only, so each level remembers where
// its count stood and puts the splice for it in front when the last element is through.
class Rewriter {
 public:
  Rewriter(Bytes frame, const Api& api, Version version, const Advertise& advertise)
      : frame_(frame),
        version_(version),
        is_flexible_(api.response->is_flexible(version)),
        is_coordinator_(api.response == &find_coordinator::response),
        advertise_(advertise) {}

  // Walks to the end of the message, or of the rows of a tagged field.
  ErrorCode walk(Walker& walker, Bytes bytes) {
    Cursor in(bytes);
    for (;;) {
      const auto step = walker.next(in);
      switch (step.kind) {
        case Walker::Step::Kind::field: see(step); break;
        case Walker::Step::Kind::records: in.take(step.size); break;
        case Walker::Step::Kind::array: enter(step, in.position() + offset_of(bytes)); break;
        case Walker::Step::Kind::element_end: leave_element(in.position() + offset_of(bytes)); break;
        case Walker::Step::Kind::tagged:
          if (const auto error = walk_tagged(step, in.take(step.size))) return error;
          break;
        case Walker::Step::Kind::done: return {};
        case Walker::Step::Kind::malformed: return walker.error();
        case Walker::Step::Kind::none:
        case Walker::Step::Kind::need_more: return Error::truncated;
      }
    }
  }

  // FindCoordinator names one coordinator outside of any array before version 4.
  void finish() {
    if (is_coordinator_ && node_.id) rewrite_node();
    std::sort(edits_.splices.begin(), edits_.splices.end(),
              [](const Splice& a, const Splice& b) { return a.offset < b.offset; });
  }

  EndpointEdits take() { return std::move(edits_); }

 private:
  struct Address {
    Bytes host, port;  // as encoded
  };
  struct Node {
    std::optional<std::int32_t> id;
    Bytes id_bytes, error_bytes;
    std::vector<Address> addresses;
    std::size_t begin = 0;
  };
  struct Array {
    Bytes count_bytes;
    std::uint32_t count = 0, left = 0;
  };

  std::size_t offset_of(Bytes bytes) const { return static_cast<std::size_t>(bytes.data() - frame_.data()); }

  void see(const Walker::Step& step) {
    switch (step.role) {
      case Role::node_id:
        node_.id = load<boost::endian::big_int32_t>(step.value);
        node_.id_bytes = step.encoded;
        break;
      case Role::host: node_.addresses.push_back({step.encoded, {}}); break;
      case Role::port: node_.addresses.back().port = step.encoded; break;
      case Role::error_code: node_.error_bytes = step.encoded; break;
      case Role::endpoint_type: are_controllers_ = load<boost::endian::big_int8_t>(step.value) == controllers; break;
      default: break;
    }
  }

  void enter(const Walker::Step& step, std::size_t position) {
    if (step.role == Role::listeners) {
      listeners_left_ = step.size;
      return;
    }
    array_ = {step.encoded, step.size, step.size};
    node_ = {};
    node_.begin = position;
  }

  void leave_element(std::size_t position) {
    if (listeners_left_ > 0) {
      --listeners_left_;
      return;
    }
    if (!rewrite_node()) {
      edits_.splices.push_back({node_.begin, position - node_.begin, {}});
      --array_.count;
    }
    node_ = {};
    node_.begin = position;
    if (--array_.left == 0 && array_.count != count_on_wire()) replace(array_.count_bytes, encoded_count(array_.count));
  }

  std::uint32_t count_on_wire() const {
    Cursor in(array_.count_bytes);
    return is_flexible_ ? in.unsigned_varint() - 1 : in.integer<std::uint32_t>();
  }

  std::vector<std::byte> encoded_count(std::uint32_t count) const {
    Writer out(is_flexible_);
    return std::move(out.array(count).data());
  }

  // False: the node has to be left out.
  bool rewrite_node() {
    const auto id = node_.id.value_or(-1);
    if (are_controllers_) return true;
    // Nobody has no address, and one that came all the same is a broker's own.
    const bool is_nobody = is_coordinator_ && id < 0;
    const auto* endpoint = is_nobody ? nullptr : advertise_(id);
    if (endpoint == nullptr && !is_nobody) {
      edits_.nodes_left_out.push_back(id);
      if (!is_coordinator_) return false;
      replace(node_.id_bytes, Writer(is_flexible_).integer(std::int32_t{-1}).data());
      replace(node_.error_bytes, Writer(is_flexible_).integer(coordinator_not_available).data());
    }
    for (const auto& address : node_.addresses) {
      replace(address.host, Writer(is_flexible_).string(endpoint ? endpoint->host : "").data());
      const std::int32_t port = endpoint ? endpoint->port : -1;
      replace(address.port, address.port.size() == sizeof(std::uint16_t)
                                ? Writer(is_flexible_).integer(static_cast<std::uint16_t>(port)).data()
                                : Writer(is_flexible_).integer(port).data());
    }
    return true;
  }

  void replace(Bytes bytes, std::vector<std::byte> replacement) {
    if (std::ranges::equal(bytes, replacement)) return;
    edits_.splices.push_back({offset_of(bytes), bytes.size(), std::move(replacement)});
  }

  // The size in front of a tagged field grows with what the splices inside make of it.
  ErrorCode walk_tagged(const Walker::Step& step, Bytes content) {
    if (std::exchange(has_tagged_, true)) return Error::bad_tagged_field;
    const auto first = edits_.splices.size();
    const Field row{"", Type::structs, {}, step.role, node_endpoint};
    Walker walker(std::span(&row, 1), version_, is_flexible_, content.size());
    if (const auto error = walk(walker, content)) return error;
    if (walker.left() > 0) return Error::bad_tagged_field;
    std::ptrdiff_t size = step.size;
    for (auto i = first; i < edits_.splices.size(); ++i) size += edits_.splices[i].growth();
    Writer out(is_flexible_);
    replace(step.value, std::move(out.unsigned_varint(static_cast<std::uint32_t>(size)).data()));
    return {};
  }

  Bytes frame_;
  Version version_;
  bool is_flexible_;
  bool is_coordinator_;
  bool are_controllers_ = false;
  bool has_tagged_ = false;
  const Advertise& advertise_;
  Array array_;
  Node node_;
  std::uint32_t listeners_left_ = 0;
  EndpointEdits edits_;
};

}  // namespace

Result<EndpointEdits> rewrite_endpoints(std::span<std::byte> frame, const Api& api, Version version,
                                        const Advertise& advertise) {
  if (!api.response->versions.contain(version)) return Error::unsupported_version;
  if (frame.size() < sizeof(ResponseHead)) return Error::truncated;
  auto bytes = frame.subspan(sizeof(ResponseHead));
  Walker header(headers::response, response_header_version(api, version), bytes.size());
  Cursor in(bytes);
  const auto step = header.next(in);
  if (step.kind == Walker::Step::Kind::malformed) return header.error();
  if (step.kind != Walker::Step::Kind::done) return Error::truncated;
  bytes = bytes.subspan(in.position());

  Rewriter rewriter(frame, api, version, advertise);
  Walker walker(*api.response, version, bytes.size());
  if (const auto error = rewriter.walk(walker, bytes)) return error;
  rewriter.finish();
  return rewriter.take();
}

Result<void> blank_share_fetch_tail(std::span<std::byte> tail, Version version) {
  // Read: the array, then how many tagged fields there are; their bytes stay where they are.
  static constexpr Field rows[] = {{"NodeEndpoints", Type::structs, {}, Role::none, node_endpoint}};
  Walker array(rows, version, true, tail.size());
  Cursor in(tail);
  auto step = array.next(in);
  while (step.kind == Walker::Step::Kind::field) step = array.next(in);
  if (step.kind == Walker::Step::Kind::malformed) return array.error();
  const auto tags = in.unsigned_varint();
  if (step.kind != Walker::Step::Kind::done || !in.good()) return Error::truncated;
  if (tags > in.remaining()) return Error::bad_length;
  constexpr std::uint32_t empty_array = 1;  // its count and one; 0 is a null
  if (Cursor(tail).unsigned_varint() <= empty_array) return {};

  const auto room = in.position();
  Writer blank(true);
  blank.array(0).unsigned_varint(tags + 1).raw(std::span(&unknown_tag, 1));
  // The field's size, written in as many bytes as it takes to fill the room with zeros exactly. One node alone has more
  // bytes than all this.
  const auto head = blank.data().size();
  for (std::size_t size_bytes = 1;; ++size_bytes) {
    const auto zeros = static_cast<std::uint32_t>(room - head - size_bytes);
    Writer size(true);
    size.unsigned_varint(zeros);
    if (size.data().size() > size_bytes) continue;
    while (size.data().size() < size_bytes) {  // a longer form of the same number
      size.data().back() |= std::byte{0x80};
      size.data().push_back(std::byte{0});
    }
    blank.raw(size.data());
    std::ranges::copy(blank.data(), tail.begin());
    std::fill_n(tail.begin() + static_cast<std::ptrdiff_t>(blank.data().size()), zeros, std::byte{0});
    return {};
  }
}

}  // namespace codec
