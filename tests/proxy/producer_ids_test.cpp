#include <algorithm>
#include <array>

#include "codec/writer.hpp"
#include "tests/proxy/filters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/encoder.hpp"

// Producer ids outside of record batches: the destination's own are marked on their way to a client and unmarked where
// the client uses them, in every version of every message that has them.
namespace proxy {
namespace {

using boost::endian::big_int16_t;
using boost::endian::big_int64_t;
using codec::Api;
using codec::Role;
using codec::Version;
using codec::Writer;
using support::Bytes;
using support::Connection;
using support::piece_sizes;
using support::to_hex;
using Events = std::vector<std::pair<IdEvent, std::int64_t>>;
using Status = RequestFilter::Status;

constexpr std::int32_t correlation = 7;
constexpr std::int64_t mark = mapping::mark::bit;
constexpr std::int64_t mapped_5 = mapping::layout::pack({42}, {5}).value;
constexpr std::int64_t two_to_31 = std::int64_t{1} << 31;
constexpr auto& markers_api = *codec::find_api(27);

constexpr std::int64_t ids[] = {
    -1, 0, 5, 0x7fffffff, two_to_31, mark - 1, mark, mark | 5, INT64_MAX, mapped_5, -7, INT64_MIN,
};

std::int64_t as_broker_gets(const Api& api, std::int64_t pid) {
  if (pid < 0) return pid;
  if (pid & mark) return pid - mark;
  return &api == &markers_api ? mapping::layout::pack({42}, {pid}).value : pid;
}

std::int64_t as_client_gets(std::int64_t pid) {
  return pid < 0 || pid & mark ? pid : pid + mark;
}

Bytes request(const Api& api, Version version, std::span<const std::byte> body) {
  Writer out(version >= api.flexible_since);
  out.integer(api.key).integer(version).integer(correlation).classic_string("mirror").no_tags();
  return out.raw(body).frame();
}

Bytes response(const Api& api, Version version, std::span<const std::byte> body) {
  Writer out(version >= api.flexible_since);
  out.integer(correlation);
  out.no_tags();
  return out.raw(body).frame();
}

// A drawn message whose ids are those above in turn, as they are or as `map` makes them. Where `has_errors`, an id
// stays as it is while the last error code in front of it is not 0.
template <typename Map>
Bytes draw(const codec::Message& message, Version version, std::uint64_t seed, bool has_errors, Map map) {
  auto next = static_cast<std::size_t>(seed);
  std::int16_t error_code = 0;
  const auto decide = [&](const codec::Field& field, Bytes& value) {
    if (field.role == Role::error_code) {
      error_code = has_errors && value[0] < std::byte{0x80} ? std::int16_t{53} : std::int16_t{0};
      codec::store(value, big_int16_t(error_code));
    }
    if (field.role != Role::producer_id) return;
    const auto pid = ids[next++ % std::size(ids)];
    codec::store(value, big_int64_t(error_code == 0 ? map(pid) : pid));
  };
  return support::encode_random(message, version, seed, {.value = decide, .keeps_element = {}}).bytes;
}

constexpr auto as_it_is = [](std::int64_t pid) { return pid; };

// Calls `check` for each version of each API whose requests, or whose responses, have ids.
template <typename Check>
void for_each_version(bool is_request, Check check) {
  for (const auto& api : codec::apis) {
    const bool has_ids = is_request ? api.request != nullptr && api.request != &codec::produce::request : api.tells_ids;
    if (!has_ids) continue;
    for (auto version = api.served.first; version <= api.served.last; ++version) {
      CAPTURE(api.name, version);
      check(api, version);
    }
  }
}

// A WriteTxnMarkers request of version 1 and an answer to it, each with one marker an id.
Bytes markers_request(std::span<const std::int64_t> pids) {
  Writer out(true);
  out.array(pids.size());
  for (const auto pid : pids) {
    out.integer(pid).integer(std::int16_t{3}).integer(std::int8_t{0});
    out.array(1).string("orders").array(1).integer(std::int32_t{4}).no_tags();
    out.integer(std::int32_t{9}).no_tags();
  }
  return request(markers_api, 1, out.no_tags().data());
}

Bytes markers_response(std::span<const std::int64_t> pids, std::int16_t error_code = 0) {
  Writer out(true);
  out.array(pids.size());
  for (const auto pid : pids) {
    out.integer(pid).array(1).string("orders").array(1);
    out.integer(std::int32_t{4}).integer(error_code).no_tags().no_tags().no_tags();
  }
  return response(markers_api, 1, out.no_tags().data());
}

std::int64_t f_42(std::int64_t pid) {
  return mapping::layout::pack({42}, {pid}).value;
}

}  // namespace

TEST_CASE("ids in requests of every API and version are unmarked, and those in markers mapped, cut anywhere") {
  int changed = 0;
  for_each_version(true, [&](const Api& api, Version version) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      CAPTURE(seed);
      const auto in = request(api, version, draw(*api.request, version, seed, false, as_it_is));
      const auto out =
          request(api, version,
                  draw(*api.request, version, seed, false, [&](std::int64_t pid) { return as_broker_gets(api, pid); }));
      changed += in != out;
      for (const auto piece : piece_sizes()) {
        if (seed > 1 && piece > 13 && piece != support::in_one_piece) continue;
        CAPTURE(piece);
        Connection connection;
        const auto outcome = connection.send(in, piece);
        REQUIRE(outcome.status == Status::more);
        REQUIRE(connection.requests.is_at_frame_boundary());
        REQUIRE(connection.in_flight.size() == 1);
        REQUIRE(to_hex(outcome.bytes) == to_hex(out));
      }
    }
  });
  CHECK(changed > 100);
}

TEST_CASE("ids in responses of every API and version are marked, but for those of errors, cut anywhere") {
  const bool has_errors = GENERATE(false, true);
  int changed = 0;
  for_each_version(false, [&](const Api& api, Version version) {
    if (!api.response_read.contain(version)) return;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      CAPTURE(seed);
      const auto in = response(api, version, draw(*api.response, version, seed, has_errors, as_it_is));
      const auto out = response(api, version, draw(*api.response, version, seed, has_errors, as_client_gets));
      changed += in != out;
      for (const auto piece : piece_sizes()) {
        if (seed > 1 && piece > 13 && piece != support::in_one_piece) continue;
        CAPTURE(piece);
        Connection connection;
        connection.expect(correlation, api.key, version);
        const auto outcome = connection.receive(in, piece);
        REQUIRE(outcome.status == Status::more);
        REQUIRE(connection.responses.is_at_frame_boundary());
        REQUIRE(connection.in_flight.empty());
        REQUIRE(to_hex(outcome.bytes) == to_hex(out));
      }
    }
  });
  CHECK(changed > 50);
}

TEST_CASE("a request with ids that is cut short never reaches the broker whole") {
  for_each_version(true, [&](const Api& api, Version version) {
    const auto body = draw(*api.request, version, 3, false, as_it_is);
    for (std::size_t size = 0; size < body.size(); ++size) {
      CAPTURE(size);
      const auto frame = request(api, version, std::span(body).first(size));
      for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, support::in_one_piece}) {
        Connection connection;
        const auto outcome = connection.send(frame, piece);
        REQUIRE(outcome.status == Status::fault);
        REQUIRE(outcome.bytes.size() < frame.size());
        REQUIRE(connection.requests.fault().api_key == api.key);
        connection.requests.forget_incomplete();
        REQUIRE(connection.in_flight.empty());
      }
    }
  });
}

TEST_CASE("a response with ids that is cut short never reaches the client whole") {
  for_each_version(false, [&](const Api& api, Version version) {
    if (!api.response_read.contain(version)) return;
    const auto body = draw(*api.response, version, 3, false, as_it_is);
    for (std::size_t size = 0; size < body.size(); ++size) {
      CAPTURE(size);
      const auto frame = response(api, version, std::span(body).first(size));
      for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, support::in_one_piece}) {
        Connection connection;
        connection.expect(correlation, api.key, version);
        const auto outcome = connection.receive(frame, piece);
        REQUIRE(outcome.status == Status::fault);
        if (size > 0) REQUIRE(outcome.bytes.size() < frame.size());
        REQUIRE(connection.responses.fault().api_key == api.key);
      }
    }
  });
}

TEST_CASE("a version that no table describes is never forwarded") {
  for_each_version(true, [&](const Api& api, Version) {
    const auto version = static_cast<Version>(api.served.last + 1);
    Connection connection;
    const auto outcome = connection.send(request(api, version, Bytes(100)));
    REQUIRE(outcome.status == Status::fault);
    CHECK(outcome.bytes.empty());
    CHECK(connection.requests.fault().reason.find("this proxy must read it") != std::string::npos);
  });
}

TEST_CASE("what happens to an id is told") {
  Connection connection;
  const auto& init = *codec::find_api(22);
  Writer body(false);
  body.integer(std::int32_t{0}).integer(std::int16_t{0}).integer(std::int64_t{4711}).integer(std::int16_t{0});
  connection.expect(correlation, init.key, 0);
  connection.receive(response(init, 0, body.data()));
  CHECK(connection.observer.ids == Events{{IdEvent::handed_out, 4711}});

  connection.observer.ids.clear();
  const std::int64_t sent[] = {mark | 8, 5, mapped_5, -1};
  connection.send(markers_request(sent));
  CHECK(connection.observer.ids == Events{{IdEvent::unmarked, mark | 8}, {IdEvent::marker_mapped, 5}});

  connection.observer.ids.clear();
  const std::int64_t answered[] = {8, mapped_5, -1, mark | 9};
  connection.receive(markers_response(answered));
  CHECK(connection.observer.ids == Events{{IdEvent::marked, 8}, {IdEvent::marked_upstream, mark | 9}});
}

TEST_CASE("the answer to markers names the ids that the client sent, in whatever order it comes") {
  const std::int64_t sent[] = {7, mark | 7, two_to_31 + 9, mapped_5, 5, -1, 0};
  const std::int64_t written[] = {f_42(7), 7, f_42(9), mapped_5, mapped_5, -1, f_42(0)};
  // Brokers answer with one entry an id.
  const std::int64_t answered[] = {f_42(0), -1, f_42(9), 7, f_42(7)};
  const std::int64_t expected[] = {0, -1, two_to_31 + 9, mark | 7, 7};
  for (const auto piece : piece_sizes()) {
    CAPTURE(piece);
    Connection connection;
    REQUIRE(to_hex(connection.send(markers_request(sent), piece).bytes) == to_hex(markers_request(written)));
    REQUIRE(to_hex(connection.receive(markers_response(answered, 31), piece).bytes) ==
            to_hex(markers_response(expected, 31)));
  }
}

TEST_CASE("answers to several marker requests in flight are told apart") {
  Connection connection;
  const std::int64_t first[] = {5}, second[] = {two_to_31 + 5}, third[] = {mapped_5}, written[] = {mapped_5};
  for (const auto* sent : {first, second, third})
    CHECK(connection.send(markers_request(std::span(sent, 1))).bytes == markers_request(written));
  for (const auto* sent : {first, second, third})
    CHECK(connection.receive(markers_response(written)).bytes == markers_response(std::span(sent, 1)));
}

TEST_CASE("a source's id that would be mapped to -1 is written as -1, which brokers refuse, and answered as it came") {
  Connection connection({.region = UINT32_MAX});
  const std::int64_t sent[] = {0x7fffffff}, written[] = {-1};
  CHECK(connection.send(markers_request(sent)).bytes == markers_request(written));
  CHECK(connection.receive(markers_response(written, -1)).bytes == markers_response(sent, -1));
}

TEST_CASE("markers of more producers than can be kept in mind are never forwarded whole") {
  std::vector<std::int64_t> sent(RequestFilter::markers_max);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::int64_t>(i);
  Connection enough;
  CHECK(enough.send(markers_request(sent)).status == Status::more);
  std::vector<std::int64_t> written;
  for (const auto pid : sent) written.push_back(f_42(pid));
  std::ranges::reverse(written);
  std::vector<std::int64_t> expected(sent.rbegin(), sent.rend());
  CHECK(enough.receive(markers_response(written)).bytes == markers_response(expected));

  sent.push_back(5);
  Connection connection;
  const auto outcome = connection.send(markers_request(sent));
  CHECK(outcome.status == Status::fault);
  CHECK(outcome.bytes.size() < markers_request(sent).size());
  CHECK(connection.requests.fault().reason == "markers of more than 4096 producers of a source");
}

TEST_CASE("a long answer with ids streams, and every id in it is marked") {
  // Far past what of an answer with addresses could be kept.
  constexpr std::size_t producers = 60'000;
  const auto& api = *codec::find_api(61);
  const auto frame = [&](std::int64_t flag) {
    Writer out(true);
    out.integer(std::int32_t{0}).array(1).string("orders").array(1);
    out.integer(std::int32_t{0}).integer(std::int16_t{0}).null_string().array(producers);
    for (std::size_t i = 0; i < producers; ++i) {
      out.integer(static_cast<std::int64_t>(i) | flag).integer(std::int32_t{0}).integer(std::int32_t{0});
      out.integer(std::int64_t{0}).integer(std::int32_t{0}).integer(std::int64_t{-1}).no_tags();
    }
    return response(api, 0, out.no_tags().no_tags().no_tags().data());
  };
  Connection connection;
  connection.expect(correlation, api.key, 0);
  const auto outcome = connection.receive(frame(0), 4096);
  CHECK(outcome.status == Status::more);
  CHECK(outcome.bytes == frame(mark));
  CHECK(connection.observer.ids.size() == producers);
}

}  // namespace proxy
