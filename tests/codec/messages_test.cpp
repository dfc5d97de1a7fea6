#include "codec/messages.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/encoder.hpp"
#include "tests/support/json.hpp"

namespace codec {
namespace {

using boost::json::array;
using boost::json::object;

const std::filesystem::path folder = TEST_VECTORS "/kafka-messages";

std::string text(const object& definition, std::string_view name) {
  const auto* value = definition.if_contains(name);
  return value == nullptr ? std::string() : std::string(value->as_string());
}

// "3", "3-13", "3+", "none", or nothing.
std::optional<Versions> parse_versions(const std::string& text) {
  if (text.empty() || text == "none") return std::nullopt;
  const auto first = static_cast<Version>(std::stoi(text));
  if (text.ends_with('+')) return since(first);
  const auto dash = text.find('-');
  if (dash == text.npos) return Versions{first, first};
  return Versions{first, static_cast<Version>(std::stoi(text.substr(dash + 1)))};
}

bool contains(const object& definition, std::string_view name, Version version) {
  const auto versions = parse_versions(text(definition, name));
  return versions && versions->contain(version);
}

// By its type, or by its name where the type was forgotten.
bool is_producer_id(const object& field) {
  return text(field, "entityType") == "producerId" || text(field, "name").find("ProducerId") != std::string::npos;
}

// The versions of each field of a message that is a producer id, at any depth; an inner field's count for all of it.
std::vector<Versions> producer_id_versions(const object& definition) {
  std::vector<Versions> all;
  for (const auto* list : {"fields", "commonStructs"}) {
    const auto* fields = definition.if_contains(list);
    if (fields == nullptr) continue;
    for (const auto& value : fields->as_array()) {
      const auto& field = value.as_object();
      const auto versions = parse_versions(text(field, "versions"));
      if (is_producer_id(field) && versions) all.push_back(*versions);
      const auto inner = producer_id_versions(field);
      all.insert(all.end(), inner.begin(), inner.end());
    }
  }
  return all;
}

bool has_role(std::span<const Field> fields, Role role, Version version) {
  return std::ranges::any_of(fields, [&](const Field& field) {
    return field.versions.contain(version) && (field.role == role || has_role(field.element, role, version));
  });
}

// A definition of Kafka's and our table for it, held against each other in one version.
class Comparison {
 public:
  Comparison(const object& definition, Version version) : version_(version) {
    if (const auto* common = definition.if_contains("commonStructs")) common_structs_ = &common->as_array();
  }

  void compare(const array& definitions, std::span<const Field> table, std::size_t definitions_skipped = 0) const {
    std::vector<const object*> there, there_tagged;
    for (const auto& value : definitions) {
      if (definitions_skipped > 0) {
        --definitions_skipped;
        continue;
      }
      const auto& definition = value.as_object();
      if (!contains(definition, "versions", version_)) continue;
      (contains(definition, "taggedVersions", version_) ? there_tagged : there).push_back(&definition);
    }
    std::vector<const Field*> here, here_tagged;
    for (const auto& field : table)
      if (field.versions.contain(version_)) (field.tag == untagged ? here : here_tagged).push_back(&field);

    REQUIRE(here.size() == there.size());
    for (std::size_t i = 0; i < here.size(); ++i) compare(*there[i], *here[i]);
    REQUIRE(here_tagged.size() == there_tagged.size());
    for (std::size_t i = 0; i < here_tagged.size(); ++i) {
      CHECK(here_tagged[i]->tag == there_tagged[i]->at("tag").to_number<int>());
      compare(*there_tagged[i], *here_tagged[i]);
    }
  }

 private:
  void compare(const object& definition, const Field& field) const {
    const auto name = text(definition, "name");
    const auto type = text(definition, "type");
    CAPTURE(name, type);
    REQUIRE(field.name == name);
    // Of an array of ids the elements have the role.
    if (is_producer_id(definition))
      CHECK((type.starts_with("[]") ? field.element[0].role : field.role) == Role::producer_id);
    if (type == "records") CHECK(field.role == Role::records);

    if (type.starts_with("[]")) return compare_array(definition, type.substr(2), field);
    if (const auto scalar = scalar_type(type)) {
      const bool is_classic = text(definition, "flexibleVersions") == "none";
      CHECK(field.type == (is_classic ? Type::classic_string : *scalar));
      return;
    }
    REQUIRE(field.type == Type::structure);
    // A struct that can be null has one byte more, which our tables do not know.
    REQUIRE_FALSE(contains(definition, "nullableVersions", version_));
    compare(fields_of(definition, type), field.element);
  }

  void compare_array(const object& definition, const std::string& element, const Field& field) const {
    if (const auto scalar = scalar_type(element)) {
      REQUIRE(field.type == Type::scalars);
      REQUIRE(field.element.size() == 1);
      CHECK(field.element[0].type == *scalar);
      return;
    }
    REQUIRE(field.type == Type::structs);
    compare(fields_of(definition, element), field.element);
  }

  const array& fields_of(const object& definition, const std::string& type) const {
    if (const auto* fields = definition.if_contains("fields")) return fields->as_array();
    for (const auto& common : *common_structs_)
      if (text(common.as_object(), "name") == type) return common.as_object().at("fields").as_array();
    FAIL("no struct " << type);
    throw std::logic_error("not reached");
  }

  static std::optional<Type> scalar_type(const std::string& name) {
    if (name == "bool" || name == "int8") return Type::int8;
    if (name == "int16") return Type::int16;
    if (name == "uint16") return Type::uint16;
    if (name == "int32") return Type::int32;
    if (name == "int64") return Type::int64;
    if (name == "uuid") return Type::uuid;
    if (name == "string") return Type::string;
    if (name == "bytes") return Type::bytes;
    if (name == "records") return Type::records;
    return std::nullopt;
  }

  Version version_;
  const array* common_structs_ = nullptr;
};

}  // namespace

TEST_CASE("the tables are Kafka's own definitions, field by field in every version") {
  if (!std::filesystem::exists(folder)) {
    WARN("skipped: " << folder << " is not there, so the tables are not held against Kafka's definitions");
    return;
  }
  for (const auto* message : support::all_messages()) {
    CAPTURE(message->name);
    const auto json = support::read_json(folder / (std::string(message->name) + ".json"));
    const auto& definition = json.as_object();
    CHECK(text(definition, "name") == message->name);
    if (const auto* key = definition.if_contains("apiKey")) CHECK(key->to_number<int>() == message->api_key);

    // Kafka's trunk has dropped versions that older brokers still speak.
    const auto valid = parse_versions(text(definition, "validVersions"));
    REQUIRE(valid);
    CHECK(message->versions.first <= valid->first);
    CHECK(message->versions.last == valid->last);
    // Codec's frame.hpp has what stands in front of the tables of the headers.
    const std::size_t fixed_fields = message == &headers::request ? 3 : message == &headers::response ? 1 : 0;
    for (auto version = valid->first; version <= valid->last; ++version) {
      CAPTURE(version);
      CHECK(message->is_flexible(version) == contains(definition, "flexibleVersions", version));
      Comparison(definition, version).compare(definition.at("fields").as_array(), message->fields, fixed_fields);
    }
  }
}

TEST_CASE("what the proxy serves of an API is what its tables describe, and its headers agree with the messages") {
  for (const auto& api : apis) {
    CAPTURE(api.name);
    CHECK(find_api(api.key) == &api);
    for (const auto* message : {api.request, api.response}) {
      if (message == nullptr) continue;
      CHECK(message->api_key == api.key);
      CHECK(message->versions.first == api.served.first);
      CHECK(message->versions.last == api.served.last);
      CHECK(message->flexible_since == api.flexible_since);
    }
    if (api.response == nullptr) {
      CHECK(api.response_read.last < api.response_read.first);
      continue;
    }
    CHECK(api.served.first <= api.response_read.first);
    CHECK(api.response_read.last == api.served.last);
  }
  CHECK(find_api(300) == nullptr);
  CHECK(find_api(-1) == nullptr);
}

TEST_CASE("every version whose response names an address or tells a producer id is read, and no other needs to be") {
  for (const auto& api : apis) {
    if (api.response == nullptr || api.response == &api_versions::response) continue;
    const auto role = api.tells_ids ? Role::producer_id : Role::host;
    for (auto version = api.served.first; version <= api.served.last; ++version) {
      CAPTURE(api.name, version);
      CHECK(api.response_read.contain(version) == has_role(api.response->fields, role, version));
      // One that told both would have to be read for both.
      if (api.response != &fetch::response)
        CHECK_FALSE((has_role(api.response->fields, Role::producer_id, version) &&
                     has_role(api.response->fields, Role::host, version)));
    }
  }
}

TEST_CASE(
    "every message of Kafka's that has a producer id is one that the proxy reads for it, Fetch answers excepted") {
  if (!std::filesystem::exists(folder)) {
    WARN("skipped: " << folder << " is not there, so nobody knows which messages have producer ids");
    return;
  }
  std::set<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    const auto json = support::read_json(file.path());
    const auto& definition = json.as_object();
    const auto name = text(definition, "name");
    if (producer_id_versions(definition).empty()) continue;
    CAPTURE(name);
    found.insert(name);
    const auto* api = find_api(definition.at("apiKey").to_number<std::int16_t>());
    REQUIRE(api != nullptr);
    const bool is_request = text(definition, "type") == "request";
    const auto* message = is_request ? api->request : api->response;
    REQUIRE(message != nullptr);
    CHECK(message->name == name);
    if (message == &fetch::response) continue;
    CHECK((is_request || api->tells_ids));
    for (const auto& versions : producer_id_versions(definition)) {
      const auto last = std::min(versions.last, api->served.last);
      for (auto version = std::max(versions.first, api->served.first); version <= last; ++version) {
        CAPTURE(version);
        CHECK(has_role(message->fields, Role::producer_id, version));
        CHECK((is_request || api->response_read.contain(version)));
      }
    }
  }
  CHECK(found == std::set<std::string>{"AddOffsetsToTxnRequest", "AddPartitionsToTxnRequest",
                                       "DescribeProducersResponse", "DescribeTransactionsResponse", "EndTxnRequest",
                                       "EndTxnResponse", "FetchResponse", "InitProducerIdRequest",
                                       "InitProducerIdResponse", "ListTransactionsRequest", "ListTransactionsResponse",
                                       "TxnOffsetCommitRequest", "WriteTxnMarkersRequest", "WriteTxnMarkersResponse"});
}

}  // namespace codec
