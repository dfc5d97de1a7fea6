#include "codec/walker.hpp"

#include <algorithm>
#include <set>

#include "codec/frame.hpp"
#include "codec/messages.hpp"
#include "codec/writer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/encoder.hpp"
#include "tests/support/trace.hpp"
#include "tests/support/vectors.hpp"

namespace codec {
namespace {

using VersionList = std::initializer_list<Version>;
using Kind = Walker::Step::Kind;
using support::Bytes;
using support::from_hex;
using support::Trace;
using support::trace;

// A message of the vectors that a table describes: what follows its header.
struct Case {
  std::string title;
  const Message* message;
  Version version;
  Bytes body;
  Walker walker() const { return {*message, version, body.size()}; }
};

std::vector<Case> golden_cases() {
  std::vector<Case> cases;
  for (auto& row : support::golden_messages()) {
    const auto* api = find_api(row.api_key);
    const auto* message = api == nullptr ? nullptr : row.is_request ? api->request : api->response;
    if (message == nullptr) continue;
    INFO(row.title);
    const auto header_version =
        row.is_request ? request_header_version(*api, row.version) : response_header_version(*api, row.version);
    // A request header of version 1 and one of 2 differ as those of a response do, by their tagged fields.
    CHECK(header_version == row.header_version);
    const auto head_size = row.is_request ? sizeof(RequestHead) : sizeof(ResponseHead);
    auto rest = std::span(row.frame).subspan(head_size);
    Walker header(row.is_request ? headers::request : headers::response, header_version, rest.size());
    Cursor in(rest);
    REQUIRE(header.next(in).kind == Kind::done);
    rest = rest.subspan(in.position());
    cases.push_back({row.title, message, row.version, Bytes(rest.begin(), rest.end())});
  }
  REQUIRE(cases.size() > 50);
  return cases;
}

Trace walk(const Message& message, Version version, const Bytes& body) {
  return trace(Walker(message, version, body.size()), body);
}

void check_malformed(const Message& message, Version version, const Bytes& body, Error error) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, support::whole}) {
    CAPTURE(message.name, version, piece);
    const auto seen = trace(Walker(message, version, body.size()), body, piece);
    CHECK(seen.end == Kind::malformed);
    CHECK(seen.error == error);
  }
}

// A Produce request up to the count of its topics.
Writer produce_up_to_topics(Version version) {
  Writer out(produce::request.is_flexible(version));
  out.null_string().integer(std::int16_t{-1}).integer(std::int32_t{1000});
  return out;
}

}  // namespace

TEST_CASE("every golden message is walked to its end, whole and in pieces of 1 to 63 bytes alike") {
  for (const auto& row : golden_cases()) {
    CAPTURE(row.title);
    const auto seen = trace(row.walker(), row.body);
    REQUIRE(seen.end == Kind::done);
    CHECK(seen.left == 0);
    for (std::size_t piece = 1; piece <= 63; ++piece) {
      CAPTURE(piece);
      REQUIRE(trace(row.walker(), row.body, piece) == seen);
    }
  }
}

TEST_CASE("a Produce request says its acks behind whatever header and transactional id stand in front") {
  struct Row {
    const char* id;
    std::int16_t acks;
  };
  for (const auto& [id, acks] :
       {Row{"F3", 0}, Row{"F4", 0}, Row{"F5", -1}, Row{"F6", 0}, Row{"R2", -1}, Row{"R3", -1}}) {
    CAPTURE(id);
    auto frame = support::frame(id);
    const auto head = load<RequestHead>(frame);
    const Version version = head.api_version;
    auto rest = std::span(frame).subspan(sizeof head);
    Walker header(headers::request, request_header_version(*find_api(head.api_key), version), rest.size());
    Cursor in(rest);
    REQUIRE(header.next(in).kind == Kind::done);
    rest = rest.subspan(in.position());
    const auto seen = trace(Walker(produce::request, version, rest.size()), rest);
    REQUIRE(seen.end == Kind::done);
    CHECK(seen.left == 0);
    REQUIRE(seen.steps.at(0).role == Role::acks);
    CHECK(load<boost::endian::big_int16_t>(seen.steps[0].value) == acks);
    for (std::size_t piece = 1; piece <= 63; ++piece)
      REQUIRE(trace(Walker(produce::request, version, rest.size()), rest, piece) == seen);
  }
}

TEST_CASE("every truncation of every golden message is malformed, whole and in pieces") {
  for (const auto& row : golden_cases()) {
    for (std::size_t size = 0; size < row.body.size(); ++size) {
      CAPTURE(row.title, size);
      const Bytes cut(row.body.begin(), row.body.begin() + static_cast<std::ptrdiff_t>(size));
      for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, support::whole})
        REQUIRE(trace(Walker(*row.message, row.version, size), cut, piece).end == Kind::malformed);
    }
  }
}

TEST_CASE("a golden message whose last bytes have not arrived is neither done nor malformed") {
  for (const auto& row : golden_cases()) {
    for (std::size_t size = 0; size < row.body.size(); ++size) {
      CAPTURE(row.title, size);
      const Bytes cut(row.body.begin(), row.body.begin() + static_cast<std::ptrdiff_t>(size));
      REQUIRE(trace(row.walker(), cut).end == Kind::need_more);
    }
  }
}

TEST_CASE("bytes behind the last field are left, and those of the next message are not touched") {
  for (const auto& row : golden_cases()) {
    CAPTURE(row.title);
    auto body = row.body;
    body.resize(body.size() + 5, std::byte{0x99});
    auto with_trailing_bytes = trace(Walker(*row.message, row.version, body.size()), body);
    CHECK(with_trailing_bytes.end == Kind::done);
    CHECK(with_trailing_bytes.left == 5);
    auto with_next_message = trace(row.walker(), body);
    CHECK(with_next_message == trace(row.walker(), row.body));
  }
}

TEST_CASE("a message of any table and version is seen as it was encoded, whole and in pieces of 1 to 63 bytes") {
  for (const auto* message : support::all_messages()) {
    for (auto version = message->versions.first; version <= message->versions.last; ++version) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CAPTURE(message->name, version, seed);
        const auto encoded = support::encode_random(*message, version, seed);
        const Walker walker(*message, version, encoded.bytes.size());
        const auto seen = trace(walker, encoded.bytes);
        REQUIRE(seen == Trace{encoded.steps, Kind::done, {}, 0});
        for (std::size_t piece = 1; piece <= 63; piece += seed < 2 ? 1 : 13)
          REQUIRE(trace(walker, encoded.bytes, piece) == seen);
      }
    }
  }
}

TEST_CASE("every truncation of a message of any table and version is malformed") {
  for (const auto* message : support::all_messages()) {
    for (auto version = message->versions.first; version <= message->versions.last; ++version) {
      const auto bytes = support::encode_random(*message, version, 3).bytes;
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(message->name, version, size);
        const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        REQUIRE(trace(Walker(*message, version, size), cut).end == Kind::malformed);
      }
    }
  }
}

TEST_CASE("the encoder makes every role of every table, so nothing above holds for want of it") {
  for (const auto* message : support::all_messages()) {
    std::set<Role> in_table, seen;
    const auto collect = [&](auto& self, std::span<const Field> fields, bool is_inside_tag) -> void {
      for (const auto& field : fields) {
        // What stands inside a tagged field is walked by itself.
        if (!is_inside_tag && field.role != Role::none) in_table.insert(field.role);
        self(self, field.element, is_inside_tag || field.tag != untagged);
      }
    };
    collect(collect, message->fields, false);
    for (auto version = message->versions.first; version <= message->versions.last; ++version)
      for (std::uint64_t seed = 0; seed < 20; ++seed)
        for (const auto& step : support::encode_random(*message, version, seed).steps) seen.insert(step.role);
    CAPTURE(message->name);
    CHECK(seen == in_table);
  }
}

TEST_CASE("a tagged field that declares 2 GiB is malformed at once") {
  const auto frame = support::frame("F7");
  const auto head = load<RequestHead>(frame);
  const Bytes rest(frame.begin() + sizeof(RequestHead), frame.end());
  check_malformed(headers::request, 2, rest, Error::bad_length);
  // Though the frame declares to be 128 MiB and more of it may come.
  const std::uint64_t declared = static_cast<std::uint64_t>(head.size) - (sizeof(RequestHead) - frame_prefix_size);
  const auto seen = trace(Walker(headers::request, 2, declared), rest);
  CHECK(seen.end == Kind::malformed);
  CHECK(seen.error == Error::bad_length);
}

TEST_CASE("an array that counts more elements than bytes are left is malformed at once") {
  constexpr std::uint64_t declared = 100u << 20;
  for (const Version version : VersionList{3, 9}) {
    for (const std::uint32_t count : {0x7fffffffu, 0x06400001u}) {
      auto out = produce_up_to_topics(version);
      const auto body = out.array(count).data();
      const auto seen = trace(Walker(produce::request, version, declared), body);
      CAPTURE(version, count);
      CHECK(seen.end == Kind::malformed);
      CHECK(seen.error == Error::bad_length);
    }
  }
}

TEST_CASE("a string longer than what is left of the message is malformed at once, with a role or without") {
  for (const Version version : VersionList{3, 9}) {
    Writer transactional_id(version == 9);
    transactional_id.string(std::string(100, 't'));
    auto body = transactional_id.data();
    body.resize(60);
    check_malformed(produce::request, version, body, Error::bad_length);

    auto topic_name = produce_up_to_topics(version);
    topic_name.array(1).string(std::string(100, 'n'));
    body = topic_name.data();
    body.resize(body.size() - 50);
    check_malformed(produce::request, version, body, Error::bad_length);
  }
}

TEST_CASE("records longer than what is left of the message are malformed at once") {
  auto out = produce_up_to_topics(9);
  out.array(1).string("t").array(1).integer(std::int32_t{0}).unsigned_varint(1000);
  check_malformed(produce::request, 9, out.data(), Error::bad_length);
}

TEST_CASE("a varint of six bytes is malformed wherever a length stands") {
  const auto six = from_hex("818181818101");
  const auto with = [&](Writer out) {
    out.raw(six).raw(Bytes(200));
    return out.data();
  };
  check_malformed(produce::request, 9, with(Writer(true)), Error::bad_length);             // a string
  check_malformed(produce::request, 9, with(produce_up_to_topics(9)), Error::bad_length);  // an array
  auto tags = produce_up_to_topics(9);
  tags.array(0);
  check_malformed(produce::request, 9, with(tags), Error::bad_length);  // the number of tagged fields
  tags.unsigned_varint(1);
  check_malformed(produce::request, 9, with(tags), Error::bad_length);  // a tag
  tags.unsigned_varint(5);
  check_malformed(produce::request, 9, with(tags), Error::bad_length);  // its size
}

TEST_CASE("a negative length is malformed, but for -1, which is null") {
  auto out = Writer(false);
  out.integer(std::int16_t{-2}).raw(Bytes(100));
  check_malformed(produce::request, 3, out.data(), Error::bad_length);
  for (const std::int32_t count : {-2, INT32_MIN}) {
    auto topics = produce_up_to_topics(3);
    topics.integer(count).raw(Bytes(100));
    check_malformed(produce::request, 3, topics.data(), Error::bad_length);
  }
  auto null = produce_up_to_topics(3);
  null.integer(std::int32_t{-1});
  CHECK(walk(produce::request, 3, null.data()).end == Kind::done);
}

TEST_CASE("more tagged fields than bytes are malformed") {
  auto out = produce_up_to_topics(9);
  out.array(0).unsigned_varint(0x7fffffff).raw(Bytes(100));
  check_malformed(produce::request, 9, out.data(), Error::bad_length);
}

TEST_CASE("a value that is looked at is at most as long as Kafka's longest string") {
  const auto body = [](std::size_t size) {
    auto out = produce_up_to_topics(9);
    out.array(1).string(std::string(size, 'n')).array(0).no_tags().no_tags();
    return out.data();
  };
  CHECK(walk(produce::request, 9, body(Walker::value_size_max)).end == Kind::done);
  check_malformed(produce::request, 9, body(Walker::value_size_max + 1), Error::bad_length);
  // One without a role is passed over, however long.
  Writer out(true);
  out.string(std::string(100'000, 't')).integer(std::int16_t{1}).integer(std::int32_t{1}).array(0).no_tags();
  CHECK(walk(produce::request, 9, out.data()).end == Kind::done);
}

TEST_CASE("null and empty records are told apart, and null and empty arrays are passed") {
  for (const Version version : VersionList{3, 9}) {
    const bool flexible = version == 9;
    auto out = produce_up_to_topics(version);
    out.array(2);
    out.string("t").array(2);
    out.integer(std::int32_t{0});  // Index
    flexible ? out.unsigned_varint(0) : out.integer(std::int32_t{-1});
    out.no_tags();
    out.integer(std::int32_t{1});  // Index
    out.bytes({}).no_tags();
    out.no_tags();
    out.string("").array(0).no_tags();
    out.no_tags();
    CAPTURE(version);
    const auto seen = walk(produce::request, version, out.data());
    REQUIRE(seen.end == Kind::done);
    CHECK(seen.left == 0);
    std::vector<support::Seen> records;
    std::ranges::copy_if(seen.steps, std::back_inserter(records),
                         [](auto& step) { return step.kind == Kind::records; });
    REQUIRE(records.size() == 2);
    CHECK(records[0].is_null);
    CHECK(records[0].size == 0);
    CHECK_FALSE(records[1].is_null);
    CHECK(records[1].size == 0);
  }
}

TEST_CASE("a tag that the message's version does not have yet is unknown and passed over") {
  // NodeEndpoints has tag 0 from version 10 on; here its bytes would be no array.
  const auto seen =
      walk(produce::response, 9, Writer(true).array(0).integer(std::int32_t{0}).raw(from_hex("010001ff")).data());
  CHECK(seen == Trace{{}, Kind::done, {}, 0});
  const auto known =
      walk(produce::response, 10, Writer(true).array(0).integer(std::int32_t{0}).raw(from_hex("010001ff")).data());
  REQUIRE(known.steps.size() == 1);
  CHECK(known.steps[0].kind == Kind::tagged);
  CHECK(known.steps[0].role == Role::endpoints);
  CHECK(known.steps[0].content == from_hex("ff"));
}

TEST_CASE("a value lies in the window, to be patched there") {
  auto body = from_hex(
      "ffff"
      "0001"
      "000003e8"
      "00000000");
  Walker walker(produce::request, 3, body.size());
  Cursor in(body);
  const auto step = walker.next(in);
  REQUIRE(step.kind == Kind::field);
  CHECK(step.role == Role::acks);
  CHECK(step.value.data() == body.data() + 2);
  CHECK(walker.left() == body.size() - 4);
}

TEST_CASE("a message is cut off when no byte of it is left and fields are") {
  auto body = from_hex(
      "ffff"
      "0001"
      "000003e8"
      "00000000");
  Cursor in(body);
  Walker walker(produce::request, 3, body.size());
  CHECK(walker.next(in).role == Role::acks);
  CHECK_FALSE(walker.is_cut_off());
  CHECK(walker.next(in).kind == Kind::done);
  CHECK_FALSE(walker.is_cut_off());

  constexpr std::size_t up_to_acks = 4;
  Cursor again(body);
  Walker cut(produce::request, 3, up_to_acks);
  CHECK(cut.next(again).role == Role::acks);
  CHECK(cut.is_cut_off());
}

TEST_CASE("an empty message has only its tagged fields") {
  CHECK(walk(headers::response, 0, {}) == Trace{{}, Kind::done, {}, 0});
  CHECK(walk(headers::response, 1, from_hex("00")) == Trace{{}, Kind::done, {}, 0});
  CHECK(walk(headers::response, 1, {}).end == Kind::malformed);
}

}  // namespace codec
