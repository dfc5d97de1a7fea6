#include "tests/support/topic_client.hpp"

#include <algorithm>
#include <thread>

#include "codec/messages.hpp"

namespace support {
namespace {

using codec::Type;
using codec::Writer;

constexpr std::chrono::milliseconds retry_pause{100};

// The table of the one version of ListOffsets that is used here; the proxy has no business with this API.
constexpr codec::Field listed_partition[] = {
    {"PartitionIndex", Type::int32},
    {"ErrorCode", Type::int16},
    {"Timestamp", Type::int64},
    {"Offset", Type::int64},
};
constexpr codec::Field listed_topic[] = {
    {"Name", Type::string},
    {"Partitions", Type::structs, {}, codec::Role::none, listed_partition},
};
constexpr codec::Field listed_fields[] = {{"Topics", Type::structs, {}, codec::Role::none, listed_topic}};
constexpr codec::Message list_offsets_response{"ListOffsetsResponse", 2, {1, 1}, codec::never_flexible, listed_fields};

// Names of topics stand in these versions, and batches of magic 2.
constexpr Call produce_call{0, "Produce", {3, 12}, 9, &codec::produce::response};
constexpr Call fetch_call{1, "Fetch", {4, 12}, 12, &codec::fetch::response};
constexpr Call list_offsets_call{2, "ListOffsets", {1, 1}, codec::never_flexible, &list_offsets_response};
constexpr Call metadata_call{3, "Metadata", {1, 9}, 9, &codec::metadata::response};

constexpr std::int16_t unknown_topic_or_partition = 3;
constexpr std::int16_t leader_not_available = 5;
constexpr std::int16_t not_leader_or_follower = 6;

// Sends a request and waits for its response, alone on the connection.
template <typename WriteBody>
Result<Response> ask(KafkaConnection& connection, const Call& call, WriteBody write_body) {
  const auto version = connection.negotiate(call);
  if (!version) return version.error();
  const auto sent = connection.send(call, *version, [&](Writer& body) { write_body(body, *version); });
  if (!sent) return sent.error();
  return connection.receive(*sent);
}

// The only partition in the only topic of a response.
const MessageValue* only_partition(const MessageValue& response, std::string_view topics, std::string_view partitions) {
  const auto& all = response[topics].elements;
  if (all.size() != 1 || all[0][partitions].elements.size() != 1) return nullptr;
  return &all[0][partitions].elements[0];
}

std::int16_t error_code_of(const MessageValue& fields) {
  return static_cast<std::int16_t>(fields["ErrorCode"].number);
}

void write_fetch(Writer& body, codec::Version version, const std::string& topic, std::int32_t partition,
                 std::int64_t offset, std::int32_t size_max) {
  constexpr std::int32_t wait_max_ms = 100;
  body.integer(std::int32_t{-1}).integer(wait_max_ms).integer(std::int32_t{1}).integer(size_max);
  body.integer(std::int8_t{0});                                               // everything, aborted records too
  if (version >= 7) body.integer(std::int32_t{0}).integer(std::int32_t{-1});  // no fetch session
  body.array(1).string(topic).array(1).integer(partition);
  if (version >= 9) body.integer(std::int32_t{-1});  // the leader's epoch: whichever
  body.integer(offset);
  if (version >= 12) body.integer(std::int32_t{-1});
  if (version >= 5) body.integer(std::int64_t{-1});
  body.integer(size_max).no_tags().no_tags();
  if (version >= 7) body.array(0);
  if (version >= 11) body.string("");
  body.no_tags();
}

}  // namespace

bool is_about_leaders(std::int16_t error_code) {
  return error_code == unknown_topic_or_partition || error_code == leader_not_available ||
         error_code == not_leader_or_follower;
}

Result<bool> TopicClient::ask_leaders(std::string& reason) {
  auto connection = KafkaConnection::open(bootstrap_, timeout_);
  if (!connection) return connection.error();
  const auto response = ask(*connection, metadata_call, [&](Writer& body, codec::Version version) {
    body.array(1).string(topic_).no_tags();
    if (version >= 4) body.integer(std::int8_t{0});  // no topic is created
    if (version >= 8) body.integer(std::int8_t{0}).integer(std::int8_t{0});
    body.no_tags();
  });
  if (!response) return response.error();

  nodes_.clear();
  leaders_.clear();
  for (const auto& broker : response->fields["Brokers"].elements)
    nodes_[static_cast<std::int32_t>(broker["NodeId"].number)] = {std::string(broker["Host"].text()),
                                                                  static_cast<std::uint16_t>(broker["Port"].number)};
  bool is_ready = false;
  for (const auto& topic : response->fields["Topics"].elements) {
    if (topic["Name"].text() != topic_) continue;
    is_ready = error_code_of(topic) == error_none;
    if (!is_ready) reason = "topic '" + topic_ + "': error " + std::to_string(error_code_of(topic));
    for (const auto& partition : topic["Partitions"].elements) {
      const auto index = static_cast<std::int32_t>(partition["PartitionIndex"].number);
      const auto leader = static_cast<std::int32_t>(partition["LeaderId"].number);
      leaders_[index] = leader;
      if (nodes_.contains(leader)) continue;
      is_ready = false;
      reason = "topic '" + topic_ + "': partition " + std::to_string(index) + " has no leader";
    }
  }
  return is_ready && !leaders_.empty();
}

Result<void> TopicClient::refresh(std::chrono::milliseconds patience) {
  connections_.clear();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::string reason = "topic '" + topic_ + "' is not there";
    const auto ready = ask_leaders(reason);
    if (ready && *ready) return {};
    if (std::chrono::steady_clock::now() >= deadline)
      return ready ? Failure{to_string(bootstrap_) + ": " + reason} : ready.error();
    std::this_thread::sleep_for(retry_pause);
  }
}

Result<KafkaConnection*> TopicClient::leader(std::int32_t partition) {
  const auto at = leaders_.find(partition);
  if (at == leaders_.end())
    return Failure{to_string(bootstrap_) + ": topic '" + topic_ + "' has no partition " + std::to_string(partition)};
  if (const auto open = connections_.find(at->second); open != connections_.end()) return &open->second;
  const auto node = nodes_.find(at->second);
  if (node == nodes_.end())
    return Failure{"partition " + std::to_string(partition) + " of '" + topic_ + "' has no leader"};
  auto connection = KafkaConnection::open(node->second, timeout_);
  if (!connection) return connection.error();
  return &connections_.emplace(at->second, std::move(*connection)).first->second;
}

Result<ListedOffset> TopicClient::list_offset(std::int32_t partition, Offset which) {
  const auto connection = leader(partition);
  if (!connection) return connection.error();
  const auto response = ask(**connection, list_offsets_call, [&](Writer& body, codec::Version) {
    body.integer(std::int32_t{-1}).array(1).string(topic_);
    body.array(1).integer(partition).integer(static_cast<std::int64_t>(which));
  });
  if (!response) return response.error();
  const auto* listed = only_partition(response->fields, "Topics", "Partitions");
  if (listed == nullptr) return Failure{"ListOffsets was answered without the partition"};
  return ListedOffset{error_code_of(*listed), (*listed)["Offset"].number};
}

Result<Fetched> TopicClient::fetch(std::int32_t partition, std::int64_t offset, std::int32_t size_max) {
  const auto connection = leader(partition);
  if (!connection) return connection.error();
  const auto response = ask(**connection, fetch_call, [&](Writer& body, codec::Version version) {
    write_fetch(body, version, topic_, partition, offset, size_max);
  });
  if (!response) return response.error();
  if (const auto error = error_code_of(response->fields); error != error_none) return Fetched{error};
  const auto* fetched = only_partition(response->fields, "Responses", "Partitions");
  if (fetched == nullptr) return Failure{"Fetch was answered without the partition"};
  const auto records = (*fetched)["Records"].bytes;
  return Fetched{error_code_of(*fetched), {records.begin(), records.end()}};
}

Result<Sent> TopicClient::send_produce(KafkaConnection& leader, std::int32_t partition,
                                       std::span<const std::byte> records, const std::string& transactional_id) {
  const auto version = leader.negotiate(produce_call);
  if (!version) return version.error();
  return leader.send(produce_call, *version, [&](Writer& body) {
    if (transactional_id.empty()) {
      body.null_string();
    } else {
      body.string(transactional_id);
    }
    const auto timeout_ms = static_cast<std::int32_t>(timeout_.count());
    body.integer(std::int16_t{-1}).integer(timeout_ms).array(1).string(topic_);
    body.array(1).integer(partition).bytes(records).no_tags().no_tags().no_tags();
  });
}

Result<Produced> TopicClient::receive_produce(KafkaConnection& leader, const Sent& sent) {
  const auto response = leader.receive(sent);
  if (!response) return response.error();
  const auto* produced = only_partition(response->fields, "Responses", "PartitionResponses");
  if (produced == nullptr) return Failure{"Produce was answered without the partition"};
  return Produced{error_code_of(*produced), (*produced)["BaseOffset"].number};
}

}  // namespace support
