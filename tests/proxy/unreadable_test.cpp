// What the proxy must read and cannot, in either direction: for every API and version of the tables, whatever they are.

#include <algorithm>
#include <set>

#include "codec/api_versions.hpp"
#include "codec/writer.hpp"
#include "tests/proxy/filters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/encoder.hpp"
#include "tests/support/vectors.hpp"

namespace proxy {
namespace {

using codec::Api;
using codec::Version;
using codec::Writer;
using support::Bytes;
using support::Connection;
using Status = RequestFilter::Status;

constexpr std::int32_t correlation = 7;

Bytes with_size(Bytes frame, std::size_t size) {
  frame.resize(size);
  codec::store(frame, boost::endian::big_int32_t(static_cast<std::int32_t>(size - codec::frame_prefix_size)));
  return frame;
}

Bytes request_of(const Api& api, Version version, const Bytes& body) {
  Writer out(version >= api.flexible_since);
  out.integer(api.key).integer(version).integer(correlation).classic_string("client").no_tags().raw(body);
  return out.frame();
}

Bytes response_of(const Api& api, Version version, const Bytes& body) {
  Writer out(codec::response_header_version(api, version) == 1);
  return out.integer(correlation).no_tags().raw(body).frame();
}

// What is drawn at random is no batch, and some roles must not say that all is different.
support::Decisions sensible() {
  static const Bytes records = support::golden_batches().front().in;
  return {[](const codec::Field& field, Bytes& value) {
            if (field.role == codec::Role::records) value = records;
            if (field.role == codec::Role::error_code) std::ranges::fill(value, std::byte{0});
            if (field.role == codec::Role::acks) std::ranges::fill(value, std::byte{0xff});
          },
          {}};
}

// Calls `test` for each version of each API whose request, or response, is read.
template <typename Test>
void for_each_request(Test test) {
  for (const auto& api : codec::apis) {
    if (api.request == nullptr) continue;
    for (auto version = api.served.first; version <= api.served.last; ++version) {
      INFO(api.name << " version " << version);
      test(api, version, request_of(api, version, encode_random(*api.request, version, 11, sensible()).bytes));
    }
  }
}
template <typename Test>
void for_each_response(Test test) {
  for (const auto& api : codec::apis) {
    if (api.response == nullptr) continue;
    for (auto version = api.response_read.first; version <= api.response_read.last; ++version) {
      INFO(api.name << " version " << version);
      test(api, version, response_of(api, version, encode_random(*api.response, version, 12, sensible()).bytes));
    }
  }
}

// Such responses are read whole before anything of them goes on; others may be patched while they stream.
bool names_address(std::span<const codec::Field> fields) {
  return std::ranges::any_of(fields, [](const codec::Field& field) {
    return field.role == codec::Role::host || names_address(field.element);
  });
}

void check_nothing_is_left(Connection& connection) {
  connection.requests.forget_incomplete();
  CHECK(connection.in_flight.empty());
}

}  // namespace

TEST_CASE("a request of a version that no table describes goes nowhere, whatever the API") {
  for (const auto& api : codec::apis) {
    std::set<Version> versions = {-1, static_cast<Version>(api.served.last + 1), 99, 32767, -32768};
    if (api.served.first > 0) versions.insert(static_cast<Version>(api.served.first - 1));
    for (const auto version : versions) {
      INFO(api.name << " version " << version);
      Connection connection;
      const auto outcome = connection.send(request_of(api, version, Bytes(30)));
      CHECK(outcome.bytes.empty());
      if (api.response == &codec::api_versions::response) {
        CHECK(connection.answer_local() == codec::unsupported_api_versions(correlation));
      } else {
        CHECK(outcome.status == Status::fault);
        CHECK(connection.requests.fault().reason.find(api.name) != std::string::npos);
        CHECK(connection.requests.fault().api_key == api.key);
        CHECK(connection.requests.fault().correlation_id == correlation);
      }
      check_nothing_is_left(connection);
    }
  }
}

TEST_CASE("a request of any API that is read passes whole") {
  for_each_request([](const Api&, Version, const Bytes& frame) {
    Connection connection;
    const auto outcome = connection.send(frame);
    CHECK(outcome.status == Status::more);
    CHECK(outcome.bytes.size() == frame.size());
    CHECK(connection.requests.is_at_frame_boundary());
    CHECK(connection.in_flight.size() == 1);
  });
}

TEST_CASE("a request of any API that is read and ends before its fields do is never forwarded whole") {
  for_each_request([](const Api&, Version, const Bytes& frame) {
    for (auto size = sizeof(codec::RequestHead); size < frame.size(); ++size) {
      Connection connection;
      const auto outcome = connection.send(with_size(frame, size));
      REQUIRE(outcome.status == Status::fault);
      REQUIRE(outcome.bytes.size() < size);
      check_nothing_is_left(connection);
    }
  });
}

TEST_CASE("a request of any API that is read, with any byte changed, passes whole or is a fault") {
  for_each_request([](const Api&, Version, const Bytes& frame) {
    for (auto at = sizeof(codec::RequestHead); at < frame.size(); ++at) {
      for (const auto flip : {std::byte{0xff}, std::byte{0x80}, std::byte{0x01}}) {
        auto changed = frame;
        changed[at] ^= flip;
        Connection connection;
        const auto outcome = connection.send(changed);
        const bool is_fault = outcome.status == Status::fault;
        if (is_fault && outcome.bytes.size() < frame.size()) continue;
        REQUIRE(outcome.status == Status::more);
        REQUIRE(outcome.bytes.size() == frame.size());
        REQUIRE(connection.requests.is_at_frame_boundary());
      }
    }
  });
}

TEST_CASE(
    "a response of any API that is read and ends before its fields do is a fault, and nothing of addresses goes on") {
  for_each_response([](const Api& api, Version version, const Bytes& frame) {
    for (auto size = sizeof(codec::ResponseHead); size < frame.size(); ++size) {
      Connection connection;
      connection.expect(correlation, api.key, version);
      const auto outcome = connection.receive(with_size(frame, size));
      REQUIRE(outcome.status == Status::fault);
      if (names_address(api.response->fields)) REQUIRE(outcome.bytes.empty());
      REQUIRE(connection.responses.fault().api_key == api.key);
    }
  });
}

TEST_CASE("a response of any API that is read, with any byte changed, goes on to its end or is a fault") {
  for_each_response([](const Api& api, Version version, const Bytes& frame) {
    for (auto at = sizeof(codec::ResponseHead); at < frame.size(); ++at) {
      for (const auto flip : {std::byte{0xff}, std::byte{0x80}, std::byte{0x01}}) {
        auto changed = frame;
        changed[at] ^= flip;
        Connection connection;
        connection.expect(correlation, api.key, version);
        const auto outcome = connection.receive(changed);
        const bool is_fault = outcome.status == Status::fault;
        if (is_fault && (outcome.bytes.empty() || !names_address(api.response->fields))) continue;
        REQUIRE(outcome.status == Status::more);
        REQUIRE(connection.responses.is_at_frame_boundary());
      }
    }
  });
}

}  // namespace proxy
