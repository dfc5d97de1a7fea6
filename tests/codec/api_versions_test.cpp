#include "codec/api_versions.hpp"

#include <array>

#include "codec/messages.hpp"
#include "codec/writer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/vectors.hpp"

namespace codec {
namespace {

using support::Bytes;
using support::from_hex;
using support::to_hex;

using VersionList = std::initializer_list<Version>;
using Entry = std::array<std::int16_t, 3>;  // key, first version, last version

Bytes response(Version version, std::int16_t error, const std::vector<Entry>& entries, const std::string& tags = "00") {
  const bool flexible = version >= 3;
  Writer out(flexible);
  out.integer(std::int32_t{7}).integer(error).array(entries.size());
  for (const auto& [key, first, last] : entries) out.integer(key).integer(first).integer(last).no_tags();
  if (version >= 1) out.integer(std::int32_t{0});
  if (flexible) out.raw(from_hex(tags));
  return out.frame();
}

// The frame as the client gets it.
Bytes clamped(Bytes frame, Version version) {
  const auto result = clamp_api_versions(frame, version);
  REQUIRE(result.has_value());
  return result->frame.empty() ? frame : result->frame;
}

}  // namespace

TEST_CASE("what brokers answer today passes as it is") {
  int rows = 0;
  for (const auto& row : support::golden_messages()) {
    if (row.api_key != 18 || row.is_request) continue;
    CAPTURE(row.title);
    CHECK(to_hex(clamped(row.frame, row.version)) == to_hex(row.frame_after));
    ++rows;
  }
  CHECK(rows > 0);
}

TEST_CASE("versions are clamped to what the proxy can read, for the APIs that it reads alone") {
  for (const Version version : VersionList{0, 1, 3, 5}) {
    CAPTURE(version);
    const auto before =
        response(version, 0, {{3, 0, 99}, {300, 0, 99}, {0, 0, 99}, {1, 4, 20}, {10005, 7, 9}, {78, 0, 9}});
    const auto after =
        response(version, 0, {{3, 0, 13}, {300, 0, 99}, {0, 0, 13}, {1, 4, 18}, {10005, 7, 9}, {78, 1, 2}});
    CHECK(to_hex(clamped(before, version)) == to_hex(after));
  }
}

TEST_CASE("every API that the proxy reads is clamped at both ends") {
  for (const auto& api : apis) {
    CAPTURE(api.name);
    const auto before = response(4, 0, {{api.key, 0, 32767}});
    CHECK(to_hex(clamped(before, 4)) == to_hex(response(4, 0, {{api.key, api.served.first, api.served.last}})));
  }
}

TEST_CASE("Produce keeps its minimum of 0, and features and other tagged fields stay byte for byte") {
  const auto frame = support::frame("S2");
  CHECK(to_hex(clamped(frame, 4)) == to_hex(frame));
  // Features and a tag that nobody knows, with a clamp in front of them.
  const std::string tags =
      "03"
      "0008"
      "0202610001000200"
      "0108"
      "000000000000000d"
      "7f02"
      "abcd";
  CHECK(to_hex(clamped(response(4, 0, {{3, 0, 99}}, tags), 4)) == to_hex(response(4, 0, {{3, 0, 13}}, tags)));
}

TEST_CASE("tagged fields of an entry go and stay with it") {
  // Entries of 6 bytes and one tagged field, number 5, of one byte.
  const auto frame = [](const std::string& count, const std::string& entries) {
    return Writer(true)
        .integer(std::int32_t{7})
        .integer(std::int16_t{0})
        .raw(from_hex(count + entries + "0000000000"))
        .frame();
  };
  const std::string kept =
                        "0003"
                        "0000"
                        "000d"
                        "010501aa",
                    left_out =
                        "0001"
                        "0063"
                        "0064"
                        "010501bb";
  CHECK(to_hex(clamped(frame("04", left_out + kept + left_out), 4)) == to_hex(frame("02", kept)));
}

TEST_CASE("an API whose minimum at the broker is above ours, or whose maximum below, is left out") {
  for (const Version version : VersionList{0, 2, 4}) {
    CAPTURE(version);
    CHECK(to_hex(clamped(response(version, 0, {{0, 3, 13}, {3, 14, 20}, {18, 0, 5}}), version)) ==
          to_hex(response(version, 0, {{0, 3, 13}, {18, 0, 5}})));
    CHECK(to_hex(clamped(response(version, 0, {{78, 0, 0}}), version)) == to_hex(response(version, 0, {})));
  }
  // The count of a compact array gets shorter by a byte.
  std::vector<Entry> many(127, Entry{300, 0, 1});
  many.push_back({3, 14, 20});
  const auto after = response(4, 0, std::vector<Entry>(127, Entry{300, 0, 1}));
  CHECK(to_hex(clamped(response(4, 0, many), 4)) == to_hex(after));
  many.pop_back();
  many.back() = {3, 14, 20};
  CHECK(to_hex(clamped(response(4, 0, many), 4)) == to_hex(response(4, 0, std::vector<Entry>(126, Entry{300, 0, 1}))));
}

TEST_CASE("APIs that are to be hidden are left out, known to the proxy or not") {
  const auto version = GENERATE(Version{0}, Version{3}, Version{5});
  auto frame = response(version, 0, {{0, 0, 13}, {300, 0, 1}, {18, 0, 5}, {10005, 2, 2}});
  const std::int16_t hidden[] = {10005, 300, 42};
  const auto result = clamp_api_versions(frame, version, hidden);
  REQUIRE(result.has_value());
  CHECK(to_hex(result->frame) == to_hex(response(version, 0, {{0, 0, 13}, {18, 0, 5}})));
}

TEST_CASE("an answer of unsupported version has the form of version 0 whatever was asked") {
  for (Version version = 0; version <= 127; ++version) {
    CAPTURE(version);
    auto frame = support::frame("S1");
    const auto result = clamp_api_versions(frame, version);
    REQUIRE(result.has_value());
    CHECK(result->error_code == error_unsupported_version);
    CHECK(result->frame.empty());
    CHECK(frame == support::frame("S1"));
    // A broker that knows more than the proxy does.
    CHECK(to_hex(clamped(response(0, 35, {{18, 0, 9}}), version)) == to_hex(response(0, 35, {{18, 0, 5}})));
  }
}

TEST_CASE("an answer of another broker than was meant passes and is told") {
  auto frame = support::frame("S1b");
  const auto result = clamp_api_versions(frame, 5);
  REQUIRE(result.has_value());
  CHECK(result->error_code == error_rebootstrap_required);
  CHECK(result->frame.empty());
  CHECK(frame == support::frame("S1b"));
}

TEST_CASE("an answer in a version that no table describes is an error and not read by guess") {
  auto frame = support::frame("S2");
  for (const Version version : VersionList{-1, 6, 127}) {
    const auto result = clamp_api_versions(frame, version);
    CHECK(result.has_error());
    CHECK(result.error() == Error::unsupported_version);
  }
}

TEST_CASE("every truncation of an ApiVersions answer is an error") {
  for (const auto* id : {"S1", "S1b", "S2"}) {
    const auto frame = support::frame(id);
    const Version version = std::string_view(id) == "S2" ? 4 : 5;
    for (std::size_t size = 0; size < frame.size(); ++size) {
      CAPTURE(id, size);
      Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK(clamp_api_versions(cut, version).has_error());
    }
  }
}

TEST_CASE("the proxy's own answer says what it knows, in the form of version 0") {
  CHECK(to_hex(unsupported_api_versions(1)) == to_hex(support::frame("S1")));
  const auto frame = unsupported_api_versions(-2);
  CHECK(to_hex(frame) ==
        "00000010"
        "fffffffe"
        "0023"
        "00000001"
        "0012"
        "0000"
        "0005");
}

}  // namespace codec
