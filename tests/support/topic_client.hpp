#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/kafka_connection.hpp"

namespace support {

inline constexpr std::int16_t error_none = 0;
// The broker is not, or not yet, the one to ask: another look at the cluster helps.
bool is_about_leaders(std::int16_t error_code);

struct Fetched {
  std::int16_t error_code = error_none;
  std::vector<std::byte> records = {};  // whole entries, and at the end perhaps the beginning of one
};

struct Produced {
  std::int16_t error_code = error_none;
  std::int64_t base_offset = -1;
};

struct ListedOffset {
  std::int16_t error_code = error_none;
  std::int64_t offset = -1;
};

// One topic of a cluster, raw: it learns from the given address who leads a partition, and speaks with that broker
// under the address that it advertises, as every Kafka client does.
class TopicClient {
 public:
  enum class Offset : std::int64_t { earliest = -2, latest = -1 };

  // `timeout`: of each answer.
  TopicClient(Address bootstrap, std::string topic, std::chrono::milliseconds timeout)
      : bootstrap_(std::move(bootstrap)), topic_(std::move(topic)), timeout_(timeout) {}

  // Asks for the leaders anew; connections that are open are closed. Until every partition has a leader, or `patience`
  // is over.
  Result<void> refresh(std::chrono::milliseconds patience);
  const std::string& topic() const { return topic_; }
  std::int32_t partitions() const { return static_cast<std::int32_t>(leaders_.size()); }

  // The leader's connection, made when it is first asked for; it is valid until refresh().
  Result<KafkaConnection*> leader(std::int32_t partition);

  Result<ListedOffset> list_offset(std::int32_t partition, Offset which);
  Result<Fetched> fetch(std::int32_t partition, std::int64_t offset, std::int32_t size_max);

  // With acks -1. The empty transactional id: none.
  Result<Sent> send_produce(KafkaConnection& leader, std::int32_t partition, std::span<const std::byte> records,
                            const std::string& transactional_id);
  static Result<Produced> receive_produce(KafkaConnection& leader, const Sent& sent);

 private:
  // Nothing: the topic or one of its partitions is not ready; `reason` says which.
  Result<bool> ask_leaders(std::string& reason);

  Address bootstrap_;
  std::string topic_;
  std::chrono::milliseconds timeout_;
  std::map<std::int32_t, std::int32_t> leaders_;  // partition: node
  std::map<std::int32_t, Address> nodes_;
  std::map<std::int32_t, KafkaConnection> connections_;  // by node
};

}  // namespace support
