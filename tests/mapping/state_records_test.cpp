#include "mapping/state_records.hpp"

#include <boost/json.hpp>
#include <string>

#include <algorithm>
#include "mapping/salt.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/hex.hpp"
#include "tests/support/json.hpp"

namespace mapping {
namespace {

using boost::json::object;

boost::json::array rows(const std::string& file) {
  auto rows = support::read_json(TEST_VECTORS "/" + file).as_array();
  REQUIRE_FALSE(rows.empty());
  return rows;
}

std::string text(const object& row, std::string_view name) {
  return std::string(row.at(name).as_string());
}
std::int64_t wide(const object& row, std::string_view name) {
  return std::stoll(text(row, name));
}
std::int32_t int32(const object& row, std::string_view name) {
  return row.at(name).to_number<std::int32_t>();
}
Time time(const object& row) {
  return Time{Duration{wide(row, "timestamp_ms")}};
}
TopicId topic_id(const object& row) {
  return TopicId::parse(text(row, "topic_id")).value();
}
Nonce nonce(const object& row) {
  Nonce nonce;
  std::ranges::copy(support::from_hex(text(row, "nonce")), nonce.bytes.begin());
  return nonce;
}

Collision collision(const object& key, const object* value) {
  Collision collision{
      {topic_id(key), int32(key, "partition"), text(key, "source_cluster_id"), {wide(key, "original_pid")}}, {}};
  if (value) collision.value = {wide(*value, "salt"), text(*value, "colliding_cluster_id"), time(*value)};
  return collision;
}
Registration registration(const object& key, const object* value) {
  Registration registration{{{key.at("region").to_number<std::uint32_t>()}, text(key, "source_cluster_id"), nonce(key)},
                            {}};
  if (value) registration.value = {int32(*value, "partitions"), time(*value)};
  return registration;
}
Claim claim(const object& key, const object* value) {
  Claim claim{{topic_id(key), int32(key, "partition"), nonce(key)}, {}};
  if (value)
    claim.value = {
        text(*value, "source_cluster_id"), {wide(*value, "original_pid")}, wide(*value, "salt"), time(*value)};
  return claim;
}

struct Golden {
  std::string name;
  Bytes key;
  std::optional<Bytes> value;
  std::variant<Collision, Registration, Claim> entry;
  std::vector<std::int64_t> salts;  // of attempts 0, 1 and 1023

  std::optional<ByteView> value_view() const { return value ? std::optional<ByteView>(*value) : std::nullopt; }
};

std::vector<Golden> golden() {
  std::vector<Golden> all;
  for (const auto& json : rows("state_records.json")) {
    const auto& row = json.as_object();
    const auto& key = row.at("key").as_object();
    const auto* value = row.at("value").if_object();
    Golden one{text(row, "name"), support::from_hex(text(row, "key_hex")), std::nullopt, Collision{}, {}};
    if (value) one.value = support::from_hex(text(row, "value_hex"));
    const auto type = text(row, "type");
    if (type == "collision") one.entry = collision(key, value);
    if (type == "registration") one.entry = registration(key, value);
    if (type == "claim") one.entry = claim(key, value);
    if (const auto* salts = row.if_contains("salts"))
      for (const auto& salt : salts->as_array()) one.salts.push_back(std::stoll(std::string(salt.as_string())));
    all.push_back(std::move(one));
  }
  return all;
}

std::string reason(const Decoded& decoded) {
  REQUIRE(std::holds_alternative<Undecodable>(decoded));
  return std::get<Undecodable>(decoded).reason;
}

const Bytes collision_key = encode(CollisionKey{{}, 0, "abc", {5}});

}  // namespace

TEST_CASE("the records of the state topic are the golden bytes, and read back the same") {
  for (const auto& one : golden()) {
    CAPTURE(one.name);
    std::visit(
        [&](const auto& entry) {
          CHECK(support::to_hex(encode(entry.key)) == support::to_hex(one.key));
          REQUIRE(entry.value.has_value() == one.value.has_value());
          if (entry.value) CHECK(support::to_hex(encode(*entry.value)) == support::to_hex(*one.value));
          const auto decoded = decode(one.key, one.value_view());
          using Entry = std::decay_t<decltype(entry)>;
          REQUIRE(std::holds_alternative<Entry>(decoded));
          CHECK(std::get<Entry>(decoded) == entry);
        },
        one.entry);
  }
}

TEST_CASE("a record that ends too early, or goes on behind its last field, cannot be decoded") {
  for (const auto& one : golden()) {
    CAPTURE(one.name);
    for (std::size_t size = 0; size < one.key.size(); ++size) {
      CAPTURE(size);
      const Bytes cut(one.key.begin(), one.key.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK(reason(decode(cut, one.value_view())).starts_with("the key ends too early"));
    }
    auto longer = one.key;
    longer.push_back(std::byte{0});
    CHECK(reason(decode(longer, one.value_view())).starts_with("the key goes on behind its last field"));
    if (!one.value) continue;
    for (std::size_t size = 0; size < one.value->size(); ++size) {
      CAPTURE(size);
      const Bytes cut(one.value->begin(), one.value->begin() + static_cast<std::ptrdiff_t>(size));
      CHECK(reason(decode(one.key, cut)).starts_with("the value ends too early"));
    }
    longer = *one.value;
    longer.push_back(std::byte{0});
    CHECK(reason(decode(one.key, longer)).starts_with("the value goes on behind its last field"));
  }
}

TEST_CASE("a record of an unknown type is told apart from one that cannot be decoded") {
  for (const std::string type : {"0000", "0002", "0004", "0066", "7fff", "8000"}) {
    CAPTURE(type);
    const auto decoded = decode(support::from_hex(type + "beef"), std::nullopt);
    REQUIRE(std::holds_alternative<UnknownType>(decoded));
    CHECK(static_cast<std::uint16_t>(std::get<UnknownType>(decoded).type) == std::stoul(type, nullptr, 16));
  }
}

TEST_CASE("a value of another version, and lengths that make no sense, cannot be decoded") {
  CHECK(reason(decode(collision_key, support::from_hex("0001"))) == "the value has version 1, only 0 is known");
  const std::string salt(16, '0');
  CHECK(reason(decode(collision_key, support::from_hex("0000" + salt + "00"))).starts_with("the value has a null"));
  for (const std::string varint : {"ffffffff10", "ffffffffff01", "8080808080"})
    CHECK(reason(decode(collision_key, support::from_hex("0000" + salt + varint)))
              .starts_with("the value has a varint that is too long"));
  for (const std::string time : {"ffffffffffffffff", "0000e677d21fdc00", "7fffffffffffffff"}) {
    CAPTURE(time);
    CHECK(reason(decode(collision_key, support::from_hex("0000" + salt + "01" + time + "00")))
              .starts_with("the value has a time that makes no sense"));
  }
  const std::string negative = "0064" + std::string(8, '0') + "ffff";
  CHECK(reason(decode(support::from_hex(negative), std::nullopt)) ==
        "the key has a string of negative length (byte 8)");
}

TEST_CASE("tagged fields of a newer version are skipped") {
  const auto value = encode(CollisionValue{1, "abc", Time{}});
  auto tagged = value;
  tagged.back() = std::byte{2};
  for (const int byte : {0, 1, 0xaa, 200, 1, 0}) tagged.push_back(static_cast<std::byte>(byte));
  CHECK(std::get<Collision>(decode(collision_key, tagged)) == std::get<Collision>(decode(collision_key, value)));
  tagged.pop_back();
  CHECK(reason(decode(collision_key, tagged)).starts_with("the value ends too early"));
}

TEST_CASE("the deciding partition is that of Java's hash") {
  for (const auto& json : rows("log_partitions.json")) {
    const auto& row = json.as_object();
    const auto id = text(row, "topic_id");
    CAPTURE(id, int32(row, "partition"), int32(row, "of"));
    CHECK(java_hash(id + ":" + std::to_string(int32(row, "partition"))) == int32(row, "java_hash"));
    CHECK(log_partition_of(topic_id(row), int32(row, "partition"), int32(row, "of")) == int32(row, "log_partition"));
  }
}

TEST_CASE("a topic id is 22 characters both ways") {
  for (const std::string id : {"J6vyCXi7TYaxqdHPwUXoxA", "AAAAAAAAAAAAAAAAAAAAAA", "_____________________w"}) {
    const auto parsed = TopicId::parse(id);
    REQUIRE(parsed);
    CHECK(parsed->text() == id);
  }
  for (const std::string no_id : {"", "J6vyCXi7TYaxqdHPwUXox", "J6vyCXi7TYaxqdHPwUXoxA==", "J6vyCXi7TYaxqdHPwUXox+"})
    CHECK_FALSE(TopicId::parse(no_id));
}

TEST_CASE("salts are those that every implementation draws") {
  int checked = 0;
  for (const auto& one : golden()) {
    if (one.salts.empty()) continue;
    CAPTURE(one.name);
    const auto& key = std::get<Collision>(one.entry).key;
    CHECK(draw_salt(key, 0) == one.salts.at(0));
    CHECK(draw_salt(key, 1) == one.salts.at(1));
    CHECK(draw_salt(key, 1023) == one.salts.at(2));
    ++checked;
  }
  CHECK(checked > 0);
}

}  // namespace mapping
