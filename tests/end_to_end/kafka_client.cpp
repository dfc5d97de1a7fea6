// An ordinary Kafka client for the tests on real brokers, on librdkafka: it produces and consumes as anybody's program
// would.
//
//   kafka_client load    --bootstrap HOST:PORT --topic T --codec CODEC --records N --partitions P --seed S
//                        [--transactional-id ID --transaction-records M --abort-every K] [--per-second R]
//   kafka_client consume --bootstrap HOST:PORT --topic T [--check-crcs] [--isolation read_committed]
//
// Both take --set "NAME=VALUE NAME=VALUE...", more properties of librdkafka. SIGTERM ends a load early, and well.
//
// What was done goes to stdout as one line of JSON, notes to stderr. Exit: 0 done, 1 failed, 2 usage.

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int timeout_ms = 180'000;

[[noreturn]] void fail(int exit_code, const std::string& reason) {
  std::fprintf(stderr, "kafka_client: %s\n", reason.c_str());
  std::exit(exit_code);
}

// The options of a command line of `--name value` pairs; a name that is followed by another name is a flag.
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
      const std::string_view name = argv[i];
      if (!name.starts_with("--")) fail(2, "not an option: " + std::string(name));
      const bool has_value = i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--");
      values_[std::string(name.substr(2))] = has_value ? argv[++i] : "";
    }
  }

  bool has(const std::string& name) const { return values_.contains(name); }

  std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) fail(2, "--" + name + " is missing");
    return found->second;
  }

  std::int32_t number(const std::string& name) const {
    const std::string value = text(name);
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number < 0)
      fail(2, "--" + name + " is no number");
    return number;
  }

  std::int32_t number_or(const std::string& name, std::int32_t otherwise) const {
    return has(name) ? number(name) : otherwise;
  }

 private:
  std::map<std::string, std::string> values_;
};

struct Destroy {
  void operator()(rd_kafka_t* handle) const { rd_kafka_destroy(handle); }
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
  void operator()(rd_kafka_topic_partition_list_t* list) const { rd_kafka_topic_partition_list_destroy(list); }
  void operator()(rd_kafka_error_t* error) const { rd_kafka_error_destroy(error); }
};
template <typename T>
using Owned = std::unique_ptr<T, Destroy>;

using Properties = std::map<std::string, std::string>;

Properties with_more(Properties properties, const Options& options) {
  std::istringstream words(options.has("set") ? options.text("set") : "");
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) fail(2, "not NAME=VALUE: " + word);
    properties[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return properties;
}

Owned<rd_kafka_t> make_client(rd_kafka_type_t type, const Properties& properties, void* opaque,
                              void (*on_delivery)(rd_kafka_t*, const rd_kafka_message_t*, void*)) {
  char reason[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), reason, sizeof reason) != RD_KAFKA_CONF_OK)
      fail(2, reason);
  }
  rd_kafka_conf_set_opaque(conf, opaque);
  if (on_delivery) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  Owned<rd_kafka_t> client(rd_kafka_new(type, conf, reason, sizeof reason));
  if (!client) fail(2, reason);
  return client;
}

void check(rd_kafka_error_t* error, const char* what) {
  const Owned<rd_kafka_error_t> owned(error);
  if (owned) fail(1, std::string(what) + ": " + rd_kafka_error_string(owned.get()));
}

void check(rd_kafka_resp_err_t error, const char* what) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail(1, std::string(what) + ": " + rd_kafka_err2str(error));
}

// --- load ---

volatile std::sig_atomic_t is_stopping = 0;

struct Delivered {
  std::int64_t acknowledged = 0;
  std::int64_t refused = 0;  // records of an aborted transaction that had not left yet are among these
};

void count_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto& delivered = *static_cast<Delivered*>(opaque);
  ++(message->err ? delivered.refused : delivered.acknowledged);
}

// 40 to 600 bytes that compress well and differ by seed and index.
std::string make_value(std::int32_t seed, std::int32_t index) {
  const std::string word = "seed-" + std::to_string(seed) + "-record-" + std::to_string(index) + ';';
  const auto size = static_cast<std::size_t>(40 + (seed * 31 + index * 97) % 561);
  std::string value;
  while (value.size() < size) value += word;
  value.resize(size);
  return value;
}

void produce(rd_kafka_t* producer, const std::string& topic, std::int32_t partition, std::int32_t seed,
             std::int32_t index) {
  const std::string key = "key-" + std::to_string(index % 50);
  std::string value = make_value(seed, index);
  rd_kafka_resp_err_t error{};
  while ((error = rd_kafka_producev(
              producer, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(partition),
              RD_KAFKA_V_KEY(key.data(), key.size()), RD_KAFKA_V_VALUE(value.data(), value.size()),
              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END)) == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
    rd_kafka_poll(producer, 100);  // what is delivered counts until it has been heard of
  }
  check(error, "produce");
  rd_kafka_poll(producer, 0);
}

int load(const Options& options) {
  const std::string topic = options.text("topic");
  std::int32_t records = options.number("records");
  const std::int32_t partitions = options.number("partitions");
  const std::int32_t seed = options.number("seed");
  const bool transactional = options.has("transactional-id");
  const std::int32_t transaction_records = transactional ? options.number_or("transaction-records", 40) : records;
  const std::int32_t abort_every = options.number_or("abort-every", 0);
  const std::int32_t per_second = options.number_or("per-second", 0);
  if (partitions == 0 || transaction_records == 0) fail(2, "there must be something to produce to, and to produce");

  Properties properties{{"bootstrap.servers", options.text("bootstrap")},
                        {"enable.idempotence", "true"},
                        {"compression.type", options.text("codec")},
                        {"linger.ms", "5"},
                        {"batch.num.messages", "20"}};  // many batches of few records: batches are what is tested
  if (transactional) properties["transactional.id"] = options.text("transactional-id");

  std::signal(SIGTERM, [](int) { is_stopping = 1; });
  Delivered delivered;
  const auto producer = make_client(RD_KAFKA_PRODUCER, with_more(properties, options), &delivered, count_delivery);
  if (transactional) check(rd_kafka_init_transactions(producer.get(), timeout_ms), "init_transactions");

  int committed = 0;
  int aborted = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::int32_t index = 0; index < records;) {
    if (transactional) check(rd_kafka_begin_transaction(producer.get()), "begin_transaction");
    for (std::int32_t end = std::min(records, index + transaction_records); index < end; ++index) {
      if (per_second > 0)
        std::this_thread::sleep_until(begin + index * std::chrono::microseconds(1'000'000 / per_second));
      produce(producer.get(), topic, index % partitions, seed, index);
      if (is_stopping) records = end = index + 1;
    }
    check(rd_kafka_flush(producer.get(), timeout_ms),
          "flush");  // also before an abort: aborted records shall be in the log
    if (!transactional) continue;
    if (abort_every > 0 && (committed + aborted + 1) % abort_every == 0) {
      check(rd_kafka_abort_transaction(producer.get(), timeout_ms), "abort_transaction");
      ++aborted;
    } else {
      check(rd_kafka_commit_transaction(producer.get(), timeout_ms), "commit_transaction");
      ++committed;
    }
  }

  std::printf("{\"records\":%d,\"acknowledged\":%lld,\"refused\":%lld,\"committed\":%d,\"aborted\":%d}\n", records,
              static_cast<long long>(delivered.acknowledged), static_cast<long long>(delivered.refused), committed,
              aborted);
  return delivered.acknowledged == records ? 0 : 1;
}

// --- consume ---

// FNV-1a over all fields with their lengths, so that no two different sequences of records run together.
class Hash {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) value_ = (value_ ^ bytes[i]) * 0x100000001b3U;
  }
  void add(std::uint64_t number) { add(&number, sizeof number); }
  void add_field(const void* data, std::size_t size) {
    add(data == nullptr ? ~std::uint64_t{0} : std::uint64_t{size});
    add(data, size);
  }
  unsigned long long value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

struct Consumed {
  Hash hash;
  std::int64_t records = 0;
  bool at_end = false;
};

std::vector<std::int32_t> partitions_of(rd_kafka_t* client, const std::string& topic) {
  rd_kafka_topic_t* handle = rd_kafka_topic_new(client, topic.c_str(), nullptr);
  const rd_kafka_metadata_t* metadata = nullptr;
  check(rd_kafka_metadata(client, 0, handle, &metadata, timeout_ms), "metadata");
  std::vector<std::int32_t> partitions;
  for (int i = 0; i < metadata->topics[0].partition_cnt; ++i)
    partitions.push_back(metadata->topics[0].partitions[i].id);
  rd_kafka_metadata_destroy(metadata);
  rd_kafka_topic_destroy(handle);
  if (partitions.empty()) fail(1, "no partitions of " + topic);
  return partitions;
}

int consume(const Options& options) {
  const std::string topic = options.text("topic");
  const auto consumer = make_client(
      RD_KAFKA_CONSUMER,
      with_more({{"bootstrap.servers", options.text("bootstrap")},
                 {"group.id", "kafka_client"},
                 {"enable.auto.commit", "false"},
                 {"auto.offset.reset", "error"},
                 {"enable.partition.eof", "true"},
                 {"check.crcs", options.has("check-crcs") ? "true" : "false"},
                 {"isolation.level", options.has("isolation") ? options.text("isolation") : "read_uncommitted"}},
                options),
      nullptr, nullptr);
  check(rd_kafka_poll_set_consumer(consumer.get()), "poll_set_consumer");

  std::map<std::int32_t, Consumed> partitions;
  const Owned<rd_kafka_topic_partition_list_t> assignment(rd_kafka_topic_partition_list_new(1));
  for (const std::int32_t partition : partitions_of(consumer.get(), topic)) {
    partitions[partition];
    rd_kafka_topic_partition_list_add(assignment.get(), topic.c_str(), partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
  }
  check(rd_kafka_assign(consumer.get(), assignment.get()), "assign");

  std::int64_t records = 0;
  for (std::size_t open = partitions.size(); open > 0;) {
    const Owned<rd_kafka_message_t> message(rd_kafka_consumer_poll(consumer.get(), timeout_ms));
    if (!message) fail(1, "nothing arrived, and the end was not reached");
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      auto& partition = partitions.at(message->partition);
      if (!partition.at_end) --open;
      partition.at_end = true;
      continue;
    }
    if (message->err) {
      const char* reason = rd_kafka_message_errstr(message.get());
      if (message->err == RD_KAFKA_RESP_ERR__TRANSPORT || message->err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        std::fprintf(stderr, "kafka_client: %s\n", reason);  // it connects again by itself
        continue;
      }
      fail(1, "partition " + std::to_string(message->partition) + ": " + reason);
    }
    auto& partition = partitions.at(message->partition);
    partition.hash.add(static_cast<std::uint64_t>(message->offset));
    partition.hash.add(static_cast<std::uint64_t>(rd_kafka_message_timestamp(message.get(), nullptr)));
    partition.hash.add_field(message->key, message->key_len);
    partition.hash.add_field(message->payload, message->len);
    ++partition.records;
    ++records;
  }
  rd_kafka_consumer_close(consumer.get());

  std::printf("{\"records\":%lld,\"partitions\":[", static_cast<long long>(records));
  const char* separator = "";
  for (const auto& [number, partition] : partitions) {
    std::printf("%s{\"partition\":%d,\"records\":%lld,\"hash\":\"%016llx\"}", separator, number,
                static_cast<long long>(partition.records), partition.hash.value());
    separator = ",";
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "load") return load(Options(argc, argv));
  if (command == "consume") return consume(Options(argc, argv));
  fail(2, "load or consume?");
}
