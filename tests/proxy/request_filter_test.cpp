#include "proxy/request_filter.hpp"

#include <algorithm>

#include "codec/api_versions.hpp"
#include "codec/crc32c.hpp"
#include "codec/writer.hpp"
#include "tests/proxy/filters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/vectors.hpp"

namespace proxy {
namespace {

using codec::Writer;
using mapping::Action;
using mapping::Refusal;
using support::Bytes;
using support::Connection;
using support::from_hex;
using support::piece_sizes;
using support::to_hex;
using Status = RequestFilter::Status;

constexpr std::int32_t correlation = 7;

Bytes operator+(Bytes left, std::span<const std::byte> right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes repeated(const Bytes& bytes, int times) {
  Bytes all;
  while (times-- > 0) all = std::move(all) + bytes;
  return all;
}

Writer request_head(std::int16_t api_key, std::int16_t version, bool flexible) {
  Writer out(flexible);
  out.integer(api_key).integer(version).integer(correlation).classic_string("mirror").no_tags();
  return out;
}

// A Produce request of version 3 or later with one partition.
Writer produce_up_to_records(std::int16_t version, std::int16_t acks = -1, std::uint32_t topics = 1) {
  auto out = request_head(0, version, version >= 9);
  out.null_string().integer(acks).integer(std::int32_t{30000}).array(topics);
  if (version >= 13) {
    out.integer(std::uint64_t{0x1122334455667788}).integer(std::uint64_t{0x99aabbccddeeff00});
  } else {
    out.string("orders");
  }
  return out.array(1).integer(std::int32_t{3});
}

Bytes produce(std::int16_t version, std::span<const std::byte> records, std::int16_t acks = -1) {
  return produce_up_to_records(version, acks).bytes(records).no_tags().no_tags().no_tags().frame();
}

struct BatchFields {
  std::int64_t pid = 5;
  std::int16_t epoch = 0;
  std::int32_t sequence = 0;
  std::int16_t attributes = 0;
};

Bytes batch(const BatchFields& fields) {
  constexpr std::string_view payload = "\x1a\x00\x00\x00\x04k1\x0ahello";
  Writer signed_part(false);
  signed_part.integer(fields.attributes).integer(std::int32_t{0});
  signed_part.integer(std::int64_t{1'700'000'000'000}).integer(std::int64_t{1'700'000'000'000});
  signed_part.integer(fields.pid).integer(fields.epoch).integer(fields.sequence).integer(std::int32_t{1});
  signed_part.raw(std::as_bytes(std::span(payload)));
  const auto& bytes = signed_part.data();
  Writer out(false);
  out.integer(std::int64_t{0}).integer(static_cast<std::int32_t>(bytes.size() + 9)).integer(std::int32_t{-1});
  out.integer(std::int8_t{2}).integer(codec::crc32c(bytes)).raw(bytes);
  return out.data();
}

// The records field of a Produce request that `produce` made.
Bytes records_of(const Bytes& frame, std::int16_t version, std::size_t size) {
  const auto end = frame.size() - (version >= 9 ? 3 : 0);
  return {frame.begin() + static_cast<std::ptrdiff_t>(end - size), frame.begin() + static_cast<std::ptrdiff_t>(end)};
}

Fault fault_of(Connection& connection, const Bytes& bytes) {
  const auto outcome = connection.send(bytes);
  REQUIRE(outcome.status == Status::fault);
  return connection.requests.fault();
}

}  // namespace

TEST_CASE("every golden request leaves as the vectors say, cut anywhere") {
  int rows = 0;
  for (const auto& row : support::golden_messages()) {
    if (!row.is_request) continue;
    if (row.api == "ApiVersions" && row.version > 5) continue;  // answered by the proxy: a test of its own
    ++rows;
    for (const auto piece : piece_sizes()) {
      INFO(row.title << ", pieces of " << piece);
      Connection connection;
      const auto outcome = connection.send(row.frame, piece);
      CHECK(outcome.status == Status::more);
      CHECK(outcome.undecided == 0);
      CHECK(connection.requests.is_at_frame_boundary());
      REQUIRE(to_hex(outcome.bytes) == to_hex(row.frame_after));
    }
  }
  CHECK(rows > 20);
}

TEST_CASE("every golden batch leaves as the vectors say in every form of a Produce request, cut anywhere") {
  const auto version = GENERATE(std::int16_t{3}, std::int16_t{9}, std::int16_t{13});
  for (const auto& row : support::golden_batches()) {
    const auto frame = produce(version, row.in);
    const auto expected = produce(version, row.out);
    for (const auto piece : piece_sizes()) {
      INFO(row.name << " in version " << version << ", pieces of " << piece);
      Connection connection({.region = row.region});
      const auto outcome = connection.send(frame, piece);
      REQUIRE(outcome.status == Status::more);
      REQUIRE(to_hex(outcome.bytes) == to_hex(expected));
      CHECK(connection.in_flight.size() == 1);
    }
  }
}

TEST_CASE("frames that carry no producer id pass byte for byte") {
  const auto id = GENERATE("R6", "F2", "F8", "R1", "R5");
  const auto frame = support::frame(id);
  for (const auto piece : piece_sizes()) {
    INFO(id << ", pieces of " << piece);
    Connection connection;
    const auto outcome = connection.send(frame, piece);
    CHECK(outcome.bytes == frame);
    CHECK(outcome.status == Status::more);
    CHECK(connection.in_flight.size() == 1);
  }
}

TEST_CASE("Produce frames keep their size and all but ids, checksums and null records") {
  const auto id = GENERATE("R2", "R3", "F3", "F4", "F5", "F6");
  const auto frame = support::frame(id);
  Connection whole;
  const auto expected = whole.send(frame).bytes;
  CHECK(expected.size() == frame.size());
  CHECK(expected != frame);
  for (const auto piece : piece_sizes()) {
    INFO(id << ", pieces of " << piece);
    Connection connection;
    const auto outcome = connection.send(frame, piece);
    CHECK(outcome.status == Status::more);
    REQUIRE(to_hex(outcome.bytes) == to_hex(expected));
  }
}

TEST_CASE("several batches in a partition are each decided upon, and null records become empty ones") {
  Connection connection;
  connection.send(support::frame("R2"));
  std::vector<std::int64_t> before;
  for (const auto& seen : connection.observer.batches) {
    before.push_back(seen.pid_before);
    CHECK(seen.topic == "t");
    CHECK(seen.partition == 0);
  }
  CHECK(before == std::vector<std::int64_t>{5, 5, 6, -1});
  CHECK(connection.observer.null_records == 1);
}

TEST_CASE("a null records field becomes an empty one of the same size") {
  const auto version = GENERATE(std::int16_t{3}, std::int16_t{8}, std::int16_t{9}, std::int16_t{13});
  auto null_field = produce_up_to_records(version);
  if (version >= 9) {
    null_field.unsigned_varint(0);
  } else {
    null_field.integer(std::int32_t{-1});
  }
  const auto frame = null_field.no_tags().no_tags().no_tags().frame();
  for (const auto piece : piece_sizes()) {
    Connection connection;
    CHECK(to_hex(connection.send(frame, piece).bytes) == to_hex(produce(version, Bytes{})));
    CHECK(connection.observer.null_records == 1);
    CHECK(connection.in_flight.size() == 1);
  }
}

TEST_CASE("a request with acks 0 is never in flight, in any form") {
  const auto id = GENERATE("F3", "F4", "F6");
  const auto frame = support::frame(id);
  Connection connection;
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(connection.send(frame).status == Status::more);
    REQUIRE(connection.in_flight.empty());
  }
  const auto acknowledged = produce(9, batch({}), 1);
  connection.send(acknowledged);
  CHECK(connection.in_flight.size() == 1);
}

TEST_CASE("entries of magic 0 and 1 pass, and batches behind them are mapped") {
  const auto old = support::frame("R4a") + support::frame("R4b");
  for (const auto piece : piece_sizes()) {
    Connection connection;
    const auto sent = old + batch({.pid = 5}) + old;
    const auto outcome = connection.send(produce(3, sent), piece);
    const auto records = records_of(outcome.bytes, 3, sent.size());
    CHECK(Bytes(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(old.size())) == old);
    CHECK(Bytes(records.end() - static_cast<std::ptrdiff_t>(old.size()), records.end()) == old);
    REQUIRE(connection.observer.batches.size() == 1);
    CHECK(connection.observer.batches[0].action == Action::map);
  }
}

TEST_CASE("a batch that must not reach a log is made refusable, with a right checksum") {
  struct Case {
    BatchFields fields;
    Refusal refusal;
    std::int64_t pid_after;
  };
  constexpr auto control = codec::RecordBatchHeader::control_bit;
  constexpr auto transactional = codec::RecordBatchHeader::transactional_bit;
  constexpr std::int64_t mapped = -9223371946660462587;  // F(42, 5)
  constexpr auto marked = mapping::mark::bit | 5;
  const Case cases[] = {
      {{.pid = 5, .epoch = -1}, Refusal::negative_epoch, mapped},
      {{.pid = 5, .sequence = -1}, Refusal::negative_sequence, mapped},
      {{.pid = marked, .epoch = -1}, Refusal::negative_epoch, mapped},
      {{.pid = -7, .epoch = -1}, Refusal::negative_epoch, -7},
      {{.pid = -7, .sequence = -2}, Refusal::negative_sequence, -7},
      {{.pid = 5, .attributes = control}, Refusal::control_batch, mapped},
      {{.pid = -1, .epoch = -1, .sequence = -1, .attributes = transactional}, Refusal::no_producer, -1},
  };
  for (const auto version : {std::int16_t{3}, std::int16_t{9}}) {
    for (const auto& [fields, refusal, pid_after] : cases) {
      INFO("pid " << fields.pid << ", epoch " << fields.epoch << ", sequence " << fields.sequence << ", attributes "
                  << fields.attributes);
      const auto good = batch({.pid = 8});
      const auto bad = batch(fields);
      Connection connection;
      const auto outcome = connection.send(produce(version, bad + good));
      const auto records = records_of(outcome.bytes, version, bad.size() + good.size());
      const auto header = codec::load<codec::RecordBatchHeader>(records);
      CHECK(header.base_offset == 1);
      CHECK(header.producer_id == pid_after);
      const auto signed_part = std::span<const std::byte>(records).first(bad.size()).subspan(21);
      CHECK(header.crc == codec::crc32c(signed_part));
      CHECK(std::ranges::equal(signed_part.subspan(30), std::span<const std::byte>(bad).subspan(51)));
      REQUIRE(connection.observer.batches.size() == 2);
      CHECK(connection.observer.batches[0].action == Action::refuse);
      CHECK(connection.observer.batches[0].refusal == refusal);
      CHECK(connection.observer.batches[0].topic == "orders");
      CHECK(connection.observer.batches[0].partition == 3);
      CHECK(connection.observer.batches[1].action == Action::map);
    }
  }
}

TEST_CASE("a producer id that would be mapped to -1 is refused") {
  Connection connection({.region = UINT32_MAX});
  const auto sent = batch({.pid = mapping::layout::producer_max});
  const auto records = records_of(connection.send(produce(9, sent)).bytes, 9, sent.size());
  const auto header = codec::load<codec::RecordBatchHeader>(records);
  CHECK(header.base_offset == 1);
  CHECK(connection.observer.batches.at(0).refusal == Refusal::is_no_producer_id);
}

TEST_CASE("a marked id becomes the destination's own again") {
  Connection connection;
  const auto sent = batch({.pid = mapping::mark::bit | 4711});
  CHECK(records_of(connection.send(produce(9, sent)).bytes, 9, sent.size()) == batch({.pid = 4711}));
  CHECK(connection.observer.batches.at(0).action == Action::unmark);
}

TEST_CASE("a batch without a producer and one that was mapped before pass byte for byte") {
  const auto fields =
      GENERATE(BatchFields{.pid = -1, .epoch = -1, .sequence = -1}, BatchFields{.pid = -7},
               BatchFields{.pid = -9223371946660462587}, BatchFields{.pid = INT64_MIN, .epoch = 9, .sequence = 80});
  Connection connection;
  const auto frame = produce(9, batch(fields));
  CHECK(connection.send(frame).bytes == frame);
}

TEST_CASE("mapping twice is mapping once") {
  Connection first({.region = 42}), second({.region = 99});
  const auto once = first.send(produce(9, batch({.pid = 1000}))).bytes;
  CHECK(second.send(once).bytes == once);
}

TEST_CASE("an id past 31 bits is mapped by its low bits and told as a possible alias") {
  Connection connection;
  const auto sent = batch({.pid = (std::int64_t{1} << 31) + 5});
  const auto records = records_of(connection.send(produce(9, sent)).bytes, 9, sent.size());
  CHECK(records == records_of(connection.send(produce(9, batch({.pid = 5}))).bytes, 9, sent.size()));
  CHECK(connection.observer.batches.at(0).is_possible_alias);
  CHECK_FALSE(connection.observer.batches.at(1).is_possible_alias);
}

TEST_CASE("a checksum that was wrong stays wrong by the same bits") {
  auto sent = batch({.pid = 5});
  sent.back() ^= std::byte{0x40};
  Connection connection;
  const auto records = records_of(connection.send(produce(9, sent)).bytes, 9, sent.size());
  const auto header = codec::load<codec::RecordBatchHeader>(records);
  CHECK(header.producer_id == -9223371946660462587);
  CHECK(header.crc != codec::crc32c(std::span<const std::byte>(records).subspan(21)));
}

TEST_CASE("bytes behind a request's last field pass") {
  const auto version = GENERATE(std::int16_t{3}, std::int16_t{9});
  auto out = produce_up_to_records(version);
  const auto records = batch({.pid = -1, .epoch = -1, .sequence = -1});
  out.bytes(records).no_tags().no_tags().no_tags().raw(std::as_bytes(std::span(std::string_view("behind"))));
  const auto frame = out.frame();
  for (const auto piece : piece_sizes()) {
    Connection connection;
    CHECK(connection.send(frame + frame, piece).bytes == frame + frame);
    CHECK(connection.in_flight.size() == 2);
  }
}

TEST_CASE("unknown tagged fields survive at every level of a Produce request") {
  const auto tags = from_hex("02630261626401ff");  // two that no version knows
  auto out = Writer(true);
  out.integer(std::int16_t{0}).integer(std::int16_t{9}).integer(correlation).classic_string("mirror").raw(tags);
  out.null_string().integer(std::int16_t{1}).integer(std::int32_t{0}).array(1).string("orders").array(1);
  out.integer(std::int32_t{0}).bytes(batch({.pid = -1, .epoch = -1, .sequence = -1})).raw(tags).raw(tags).raw(tags);
  const auto frame = out.frame();
  for (const auto piece : piece_sizes()) {
    Connection connection;
    const auto outcome = connection.send(frame, piece);
    CHECK(outcome.status == Status::more);
    CHECK(to_hex(outcome.bytes) == to_hex(frame));
    CHECK(connection.in_flight.size() == 1);
  }
}

TEST_CASE("a frame size that cannot be is a fault as soon as it is there") {
  const auto [size, text] = GENERATE(Catch::Generators::table<std::string, std::string>({
      {"ffffffff", "frame size -1"},
      {"00000000", "frame size 0"},
      {"00000003", "frame size 3"},
      {"00000007", "frame size 7"},
      {"7fffffff", "frame size 2147483647"},
      {"06400001", "frame size 104857601"},
      {"80000000", "frame size -2147483648"},
  }));
  Connection connection;
  const auto bytes = from_hex(size);
  CHECK(connection.requests.check_first_head(bytes) == Status::fault);
  const auto fault = fault_of(connection, bytes);
  INFO(fault.reason);
  CHECK(fault.reason.find(text) != std::string::npos);
  CHECK(fault.api_key == -1);
  CHECK(connection.in_flight.empty());
}

TEST_CASE("a frame of exactly the limit passes") {
  Connection connection({.frame_size_max = 64});
  const auto head = from_hex(
      "00000040"
      "03e7"
      "0000"
      "00000007");
  const auto frame = head + Bytes(64 - 8);
  CHECK(connection.send(frame).bytes == frame);
  CHECK(connection.send(from_hex("00000041")).status == Status::fault);
}

TEST_CASE("protocols that are sent to a Kafka port by mistake are named") {
  const auto [bytes, name] = GENERATE(Catch::Generators::table<std::string, std::string>({
      {"1603010200", "a TLS handshake"},
      {"1503030002", "a TLS alert"},
      {"47455420", "an HTTP request"},
  }));
  Connection connection;
  const auto fault = fault_of(connection, from_hex(bytes));
  INFO(fault.reason);
  CHECK(fault.reason.find(name) != std::string::npos);
}

TEST_CASE("the first head of a connection is sane or not at its twelfth byte at the latest") {
  Connection connection;
  const auto frame = support::frame("F3");
  for (std::size_t size = 0; size <= sizeof(codec::RequestHead); ++size)
    CHECK(connection.requests.check_first_head(std::span(frame).first(size)) == Status::more);
  CHECK(connection.requests.check_first_head(from_hex("00000010"
                                                      "ffff"
                                                      "0000"
                                                      "00000007")) == Status::fault);
}

TEST_CASE("lengths and counts that cannot be true are faults and allocate nothing") {
  struct Case {
    const char* what;
    std::int16_t version;
    const char* body;  // behind the client id
  };
  const auto [what, version, body] =
      GENERATE(Case{"a count of 2^31 - 1 topics", 3,
                    "ffff"
                    "0001"
                    "00000000"
                    "7fffffff"},
               Case{"a count of -2 topics", 3,
                    "ffff"
                    "0001"
                    "00000000"
                    "fffffffe"},
               Case{"a count of 2^31 - 1 topics, compact", 9,
                    "00"
                    "00"
                    "0001"
                    "00000000"
                    "8080808008"},
               Case{"a string longer than the frame", 3, "7fff"}, Case{"a string of length -2", 3, "fffe"},
               Case{"a compact string longer than the frame", 9,
                    "00"
                    "ff7f"},
               Case{"a varint of six bytes", 9,
                    "00"
                    "808080808001"},
               Case{"a tag of 2^31 bytes", 9,
                    "01"
                    "00"
                    "8080808008"},
               Case{"records longer than the frame", 3,
                    "ffff"
                    "0001"
                    "00000000"
                    "00000001"
                    "000161"
                    "00000001"
                    "00000000"
                    "7fffffff"},
               Case{"records of length -2", 3,
                    "ffff"
                    "0001"
                    "00000000"
                    "00000001"
                    "000161"
                    "00000001"
                    "00000000"
                    "fffffffe"});
  Writer out(false);
  out.integer(std::int16_t{0}).integer(version).integer(correlation).classic_string("m").raw(from_hex(body));
  const auto frame = out.raw(Bytes(40)).frame();
  for (const auto piece : piece_sizes()) {
    INFO(what << ", pieces of " << piece);
    Connection connection;
    const auto outcome = connection.send(frame, piece);
    REQUIRE(outcome.status == Status::fault);
    CHECK(outcome.bytes.size() < frame.size());
    CHECK(connection.requests.fault().api_key == 0);
    CHECK(connection.requests.fault().api_version == version);
    CHECK(connection.requests.fault().correlation_id == correlation);
  }
}

TEST_CASE("a batch head that makes no sense is a fault that names topic and partition") {
  const auto [what, records] = GENERATE(Catch::Generators::table<std::string, std::string>({
      {"a negative length",
       "0000000000000000"
       "ffffffff"
       "00000000"
       "02"},
      {"a batch shorter than its header",
       "0000000000000000"
       "00000010"
       "00000000"
       "02"},
      {"magic 3",
       "0000000000000000"
       "00000040"
       "00000000"
       "03"},
      {"magic -1",
       "0000000000000000"
       "00000040"
       "00000000"
       "ff"},
  }));
  Connection connection;
  INFO(what);
  const auto fault = fault_of(connection, produce(9, from_hex(records) + Bytes(80)));
  INFO(fault.reason);
  CHECK(fault.reason.find("topic orders, partition 3") != std::string::npos);
}

TEST_CASE("the tail of a records field that is no complete batch passes as it is") {
  const auto whole = batch({.pid = 5});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto tail = Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    for (const std::size_t piece : {std::size_t{1}, std::size_t{16}, support::in_one_piece}) {
      Connection connection;
      const auto sent = whole + tail;
      const auto outcome = connection.send(produce(9, sent), piece);
      REQUIRE(outcome.status == Status::more);
      const auto records = records_of(outcome.bytes, 9, sent.size());
      CHECK(Bytes(records.end() - static_cast<std::ptrdiff_t>(size), records.end()) == tail);
      CHECK(connection.observer.batches.size() == 1);
    }
  }
}

TEST_CASE("a Produce request with fewer topics than it declares is a fault and does not go on whole") {
  const auto version = GENERATE(std::int16_t{3}, std::int16_t{9}, std::int16_t{13});
  const auto frame = produce_up_to_records(version, -1, 2).bytes(batch({})).no_tags().no_tags().no_tags().frame();
  for (const auto piece : piece_sizes()) {
    Connection connection;
    const auto outcome = connection.send(frame, piece);
    CHECK(outcome.status == Status::fault);
    CHECK(outcome.bytes.size() < frame.size());
  }
}

TEST_CASE("a Produce request that ends early is not forwarded whole, wherever it ends") {
  const auto version = GENERATE(std::int16_t{3}, std::int16_t{9}, std::int16_t{13});
  const auto whole = produce(version, batch({.pid = 5}));
  for (std::size_t size = sizeof(codec::RequestHead); size < whole.size(); ++size) {
    // The sender stops: nothing but a beginning has left.
    Connection stopped;
    const auto beginning = std::span(whole).first(size);
    const auto so_far = stopped.send(beginning);
    CHECK(so_far.status == Status::more);
    CHECK(so_far.bytes.size() <= size);
    CHECK_FALSE(stopped.requests.is_at_frame_boundary());

    // The frame claims to be complete.
    auto claimed = Bytes(beginning.begin(), beginning.end());
    codec::store(claimed, boost::endian::big_int32_t(static_cast<std::int32_t>(size - 4)));
    for (const std::size_t piece : {std::size_t{1}, std::size_t{16}, support::in_one_piece}) {
      INFO("version " << version << ", " << size << " of " << whole.size() << " bytes, pieces of " << piece);
      Connection connection;
      const auto outcome = connection.send(claimed, piece);
      CHECK(outcome.status == Status::fault);
      CHECK(outcome.bytes.size() < claimed.size());
    }
  }
}

TEST_CASE("an API that must be read is not forwarded in a version that no table describes") {
  const auto [api_key, version] = GENERATE(Catch::Generators::table<std::int16_t, std::int16_t>(
      {{0, 14}, {0, -1}, {1, 19}, {3, 14}, {10, 7}, {60, 3}, {78, 0}, {78, 3}, {79, 3}}));
  Connection connection;
  const auto outcome = connection.send(request_head(api_key, version, false).raw(Bytes(30)).frame());
  CHECK(outcome.status == Status::fault);
  CHECK(outcome.bytes.empty());
  CHECK(connection.in_flight.empty());
}

TEST_CASE("tokens behind a SaslHandshake of version 0 are a fault that says so") {
  Connection connection;
  const auto handshake = support::frame("R5");
  CHECK(connection.send(handshake).bytes == handshake);
  const auto fault = fault_of(connection, from_hex("0000000c") + Bytes(12));
  CHECK(fault.reason.find("SaslHandshake version 0") != std::string::npos);
}

TEST_CASE("an ApiVersions request newer than ours goes nowhere and is answered in its turn") {
  for (const auto piece : piece_sizes()) {
    Connection connection;
    const auto opaque = support::frame("F8");
    const auto unknown = support::frame("F1");
    const auto outcome = connection.send(opaque + unknown + opaque, piece);
    CHECK(outcome.bytes == opaque + opaque);
    CHECK(connection.in_flight.size() == 3);
    CHECK(connection.answer_local().empty());
    const auto response = from_hex(
        "00000006"
        "00000001"
        "abcd");
    CHECK(connection.receive(response).bytes == response + support::frame("S1"));
    CHECK(connection.receive(response).bytes == response);
    CHECK(connection.in_flight.empty());
    CHECK(connection.observer.requests == 3);
    CHECK(connection.observer.responses == 3);
  }
}

TEST_CASE("at the in-flight limit a request stays with the caller until a response has left") {
  Connection connection({.in_flight_max = 3});
  const auto frame = support::frame("F8");
  const auto frames = repeated(frame, 5);
  const auto outcome = connection.send(frames);
  CHECK(outcome.status == Status::full);
  CHECK(outcome.bytes == repeated(frame, 3));
  CHECK(outcome.undecided == 2 * frame.size());
  CHECK(connection.send(repeated(frame, 2)).bytes.empty());
  connection.receive(
      from_hex("00000004"
               "00000001"));
  CHECK(connection.send(repeated(frame, 2)).undecided == frame.size());
}

TEST_CASE("after end_after_frame the frame that was begun is the last") {
  const auto frame = produce(9, batch({}));
  for (std::size_t cut = 0; cut <= frame.size(); ++cut) {
    Connection connection;
    const auto first = connection.send(std::span(frame).first(cut));
    connection.requests.end_after_frame();
    const auto undecided = std::span(frame).subspan(cut - first.undecided);
    const auto rest = connection.send(Bytes(undecided.begin(), undecided.end()) + frame);
    CHECK(rest.status == Status::ended);
    const bool was_begun = cut > 0 && cut >= sizeof(codec::RequestHead) && cut < frame.size();
    CHECK(first.bytes.size() + rest.bytes.size() == (was_begun || cut == frame.size() ? frame.size() : 0));
  }
}

TEST_CASE("a request that the client broke off is not waited for") {
  const auto frame = produce(9, batch({}));
  for (std::size_t cut = 0; cut < frame.size(); ++cut) {
    Connection connection;
    connection.send(support::frame("F8"));
    connection.send(std::span(frame).first(cut));
    connection.requests.forget_incomplete();
    CHECK(connection.in_flight.size() == 1);
    CHECK(connection.in_flight.front().api_key == 999);
  }
}

TEST_CASE("a broken-off request that was answered already takes nothing else out of flight") {
  SECTION("by the proxy, whose answer needs the head alone") {
    Connection connection;
    const auto unknown = support::frame("F1");
    connection.send(std::span(unknown).first(unknown.size() - 1));
    CHECK(connection.answer_local() == support::frame("S1"));
    connection.requests.forget_incomplete();
    CHECK(connection.in_flight.empty());
  }
  SECTION("by a broker that did not wait for the end") {
    Connection connection;
    const auto frame = produce(3, batch({}));
    connection.send(std::span(frame).first(frame.size() - 1));
    connection.receive(
        from_hex("00000006"
                 "00000007"
                 "abcd"));
    connection.requests.forget_incomplete();
    CHECK(connection.in_flight.empty());
  }
  SECTION("by a broker whose response is on its way") {
    Connection connection;
    const auto frame = produce(3, batch({}));
    connection.send(std::span(frame).first(frame.size() - 1));
    const auto response = from_hex(
        "00000008"
        "00000007"
        "abcdef00");
    CHECK(connection.receive(std::span(response).first(9)).status == Status::more);
    connection.requests.forget_incomplete();
    CHECK(connection.receive(std::span(response).subspan(9)).status == Status::more);
    CHECK(connection.in_flight.empty());
  }
}

}  // namespace proxy
