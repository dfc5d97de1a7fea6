// The job of README.md with the librdkafka that is installed:
//
//   librdkafka_job NAME BOOTSTRAP PARTITIONS REPLICATION RECORDS

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

constexpr int timeout_ms = 60'000;

[[noreturn]] void fail(const std::string& what, const std::string& reason) {
  std::fprintf(stderr, "librdkafka_job: %s: %s\n", what.c_str(), reason.c_str());
  std::exit(1);
}

void check(rd_kafka_resp_err_t error, const char* what) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail(what, rd_kafka_err2str(error));
}

struct Destroy {
  void operator()(rd_kafka_t* handle) const { rd_kafka_destroy(handle); }
  void operator()(rd_kafka_topic_partition_list_t* list) const { rd_kafka_topic_partition_list_destroy(list); }
  void operator()(rd_kafka_consumer_group_metadata_t* group) const { rd_kafka_consumer_group_metadata_destroy(group); }
  void operator()(rd_kafka_error_t* error) const { rd_kafka_error_destroy(error); }
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
};
template <typename T>
using Owned = std::unique_ptr<T, Destroy>;

// The name of what went wrong, or nothing.
std::string name_of(rd_kafka_error_t* error) {
  const Owned<rd_kafka_error_t> owned(error);
  return owned ? rd_kafka_error_name(owned.get()) : "";
}

void check(rd_kafka_error_t* error, const char* what) {
  if (const std::string name = name_of(error); !name.empty()) fail(what, name);
}

struct Task {
  std::string name, bootstrap;
  int partitions, replication, records;
};

// {partition: offsets of the first and the last record}
using Ranges = std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>>;

struct Delivered {
  Ranges ranges;
  std::string error;
};

void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto& delivered = *static_cast<Delivered*>(opaque);
  if (message->err) {
    if (delivered.error.empty()) delivered.error = rd_kafka_err2name(message->err);
    return;
  }
  const auto range = delivered.ranges.try_emplace(message->partition, message->offset, message->offset).first;
  range->second.second = message->offset;
}

Owned<rd_kafka_t> connect(const Task& task, rd_kafka_type_t type, std::map<std::string, std::string> properties,
                          Delivered* delivered = nullptr) {
  char reason[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  properties["bootstrap.servers"] = task.bootstrap;
  properties["client.id"] = task.name;
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), reason, sizeof reason)) fail(name, reason);
  }
  if (delivered) {
    rd_kafka_conf_set_opaque(conf, delivered);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  }
  Owned<rd_kafka_t> client(rd_kafka_new(type, conf, reason, sizeof reason));
  if (!client) fail("connect", reason);
  return client;
}

Owned<rd_kafka_t> connect_consumer(const Task& task, const std::string& group) {
  auto consumer = connect(task, RD_KAFKA_CONSUMER,
                          {{"group.id", group},
                           {"auto.offset.reset", "earliest"},
                           {"enable.auto.commit", "false"},
                           {"isolation.level", "read_committed"}});
  check(rd_kafka_poll_set_consumer(consumer.get()), "poll_set_consumer");
  return consumer;
}

class Producer {
 public:
  Producer(const Task& task, const std::string& transactional_id) : task_(task) {
    std::map<std::string, std::string> properties{
        {"enable.idempotence", "true"}, {"batch.num.messages", "20"}, {"linger.ms", "5"}};
    if (!transactional_id.empty()) properties["transactional.id"] = transactional_id;
    client_ = connect(task, RD_KAFKA_PRODUCER, properties, &delivered_);
    if (!transactional_id.empty()) check(rd_kafka_init_transactions(get(), timeout_ms), "init_transactions");
  }

  rd_kafka_t* get() const { return client_.get(); }

  // Returns the name of the first error.
  std::string send(const std::string& series, int first, int last) {
    delivered_ = {};
    for (int i = first; i < last; ++i) {
      const std::string key = series + "-" + std::to_string(i);
      std::string value = series + " " + std::to_string(i) + " " + std::string(static_cast<std::size_t>(i % 200), 'x');
      const rd_kafka_resp_err_t error =
          rd_kafka_producev(get(), RD_KAFKA_V_TOPIC(task_.name.c_str()), RD_KAFKA_V_PARTITION(i % task_.partitions),
                            RD_KAFKA_V_KEY(key.data(), key.size()), RD_KAFKA_V_VALUE(value.data(), value.size()),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
      if (error) return rd_kafka_err2name(error);
    }
    const rd_kafka_resp_err_t error = rd_kafka_flush(get(), timeout_ms);
    return error ? rd_kafka_err2name(error) : delivered_.error;
  }

  Ranges must_send(const std::string& series, int first, int last) {
    if (const std::string error = send(series, first, last); !error.empty()) fail(series, error);
    return delivered_.ranges;
  }

  Ranges transaction(const std::string& series, bool commit, rd_kafka_t* group = nullptr) {
    check(rd_kafka_begin_transaction(get()), "begin_transaction");
    Ranges sent = must_send(series, 0, 30);
    if (group) {
      const Owned<rd_kafka_consumer_group_metadata_t> metadata(rd_kafka_consumer_group_metadata(group));
      const Owned<rd_kafka_topic_partition_list_t> offsets(rd_kafka_topic_partition_list_new(1));
      rd_kafka_topic_partition_list_add(offsets.get(), task_.name.c_str(), 0)->offset = 7;
      check(rd_kafka_send_offsets_to_transaction(get(), offsets.get(), metadata.get(), timeout_ms), "send_offsets");
    }
    check(commit ? rd_kafka_commit_transaction(get(), timeout_ms) : rd_kafka_abort_transaction(get(), timeout_ms),
          "the end of a transaction");
    return sent;
  }

  // What a producer is told that has been fenced: records only say that they have been thrown away.
  std::string fencing() {
    if (const std::string error = name_of(rd_kafka_begin_transaction(get())); !error.empty()) return error;
    send("fenced", 0, 3);
    return name_of(rd_kafka_commit_transaction(get(), timeout_ms));
  }

 private:
  const Task& task_;
  Delivered delivered_;
  Owned<rd_kafka_t> client_;
};

void create_topic(const Task& task, rd_kafka_t* client) {
  char reason[512];
  rd_kafka_NewTopic_t* topic =
      rd_kafka_NewTopic_new(task.name.c_str(), task.partitions, task.replication, reason, sizeof reason);
  if (!topic) fail("NewTopic", reason);
  rd_kafka_queue_t* queue = rd_kafka_queue_new(client);
  rd_kafka_CreateTopics(client, &topic, 1, nullptr, queue);
  rd_kafka_event_t* event = rd_kafka_queue_poll(queue, timeout_ms);
  if (!event) fail("CreateTopics", "no answer");
  check(rd_kafka_event_error(event), "CreateTopics");
  std::size_t count = 0;
  const auto* topics = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
  check(rd_kafka_topic_result_error(topics[0]), "CreateTopics");
  rd_kafka_event_destroy(event);
  rd_kafka_queue_destroy(queue);
  rd_kafka_NewTopic_destroy(topic);
}

// Partition, offset, key, value.
using Row = std::tuple<std::int32_t, std::int64_t, std::string, std::string>;

std::vector<Row> consume(const Task& task, std::size_t count) {
  const auto consumer = connect_consumer(task, task.name + "-group");
  const Owned<rd_kafka_topic_partition_list_t> topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), task.name.c_str(), RD_KAFKA_PARTITION_UA);
  check(rd_kafka_subscribe(consumer.get(), topics.get()), "subscribe");
  std::vector<Row> read;
  std::map<std::int32_t, std::int64_t> ends;
  while (read.size() < count) {
    const Owned<rd_kafka_message_t> message(rd_kafka_consumer_poll(consumer.get(), timeout_ms));
    if (!message) fail("consume", "nothing arrived");
    check(message->err, "consume");
    ends[message->partition] = message->offset + 1;
    read.emplace_back(message->partition, message->offset,
                      std::string(static_cast<const char*>(message->key), message->key_len),
                      std::string(static_cast<const char*>(message->payload), message->len));
  }
  const Owned<rd_kafka_topic_partition_list_t> offsets(rd_kafka_topic_partition_list_new(1));
  for (const auto& [partition, end] : ends) {
    rd_kafka_topic_partition_list_add(offsets.get(), task.name.c_str(), partition)->offset = end;
  }
  check(rd_kafka_commit(consumer.get(), offsets.get(), 0), "commit");
  check(rd_kafka_consumer_close(consumer.get()), "close");
  std::sort(read.begin(), read.end());
  return read;
}

bool lists_topic(const Task& task, rd_kafka_t* client) {
  const rd_kafka_metadata_t* metadata = nullptr;
  check(rd_kafka_metadata(client, 1, nullptr, &metadata, timeout_ms), "metadata");
  const bool found = std::any_of(metadata->topics, metadata->topics + metadata->topic_cnt,
                                 [&](const rd_kafka_metadata_topic& topic) { return task.name == topic.topic; });
  rd_kafka_metadata_destroy(metadata);
  return found;
}

std::vector<std::string> groups_of(const Task& task, rd_kafka_t* client) {
  const rd_kafka_group_list* listed = nullptr;
  check(rd_kafka_list_groups(client, nullptr, &listed, timeout_ms), "list_groups");
  std::vector<std::string> groups;
  for (int i = 0; i < listed->group_cnt; ++i) {
    const std::string group = listed->groups[i].group;
    if (group.starts_with(task.name)) groups.push_back(group.substr(task.name.size()));
  }
  rd_kafka_group_list_destroy(listed);
  std::sort(groups.begin(), groups.end());
  return groups;
}

// --- The result, printed: no name or value has a character in it that JSON would write otherwise ---

std::string json(const Ranges& ranges) {
  std::string text;
  for (const auto& [partition, range] : ranges) {
    text += (text.empty() ? "\"" : ",\"") + std::to_string(partition) + "\":[" + std::to_string(range.first) + "," +
            std::to_string(range.second) + "]";
  }
  return "{" + text + "}";
}

std::string json(const std::vector<Row>& rows) {
  std::string text;
  for (const auto& [partition, offset, key, value] : rows) {
    text += (text.empty() ? "[" : ",[") + std::to_string(partition) + "," + std::to_string(offset) + ",\"" + key +
            "\",\"" + value + "\"]";
  }
  return "[" + text + "]";
}

std::string json(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) text += (text.empty() ? "\"" : ",\"") + one + "\"";
  return "[" + text + "]";
}

std::string committed_offsets(const Task& task, const std::string& group) {
  const auto consumer = connect_consumer(task, group);
  const Owned<rd_kafka_topic_partition_list_t> asked(rd_kafka_topic_partition_list_new(1));
  for (int p = 0; p < task.partitions; ++p) rd_kafka_topic_partition_list_add(asked.get(), task.name.c_str(), p);
  check(rd_kafka_committed(consumer.get(), asked.get(), timeout_ms), "committed");
  std::string text;
  for (int i = 0; i < asked->cnt; ++i) {
    const auto& row = asked->elems[i];
    if (row.offset < 0) continue;
    text += (text.empty() ? "\"" : ",\"") + std::to_string(row.partition) + "\":" + std::to_string(row.offset);
  }
  check(rd_kafka_consumer_close(consumer.get()), "close");
  return "{" + text + "}";
}

void run(const Task& task) {
  Producer plain(task, "");
  create_topic(task, plain.get());
  std::string parts;
  for (int part = 0; part < 3; ++part) {
    parts += (part ? "," : "") + json(plain.must_send("plain", task.records * part / 3, task.records * (part + 1) / 3));
  }
  std::printf("{\"plain\":[%s]", parts.c_str());
  const auto print = [](const char* name, const std::string& value) { std::printf(",\"%s\":%s", name, value.c_str()); };

  const std::string tx = task.name + "-tx";
  Producer first(task, tx);
  {
    const auto group = connect_consumer(task, tx);
    print("committed", json(first.transaction("committed", true, group.get())));
    rd_kafka_consumer_close(group.get());
  }
  print("aborted", json(first.transaction("aborted", false)));
  Producer second(task, tx);
  print("second", json(second.transaction("second", true)));
  print("fenced", "\"" + first.fencing() + "\"");
  print("third", json(second.transaction("third", true)));

  print("read", json(consume(task, static_cast<std::size_t>(task.records) + 90)));
  print("group_offsets", committed_offsets(task, task.name + "-group"));
  print("transaction_offsets", committed_offsets(task, tx));
  print("topic_listed", lists_topic(task, plain.get()) ? "true" : "false");
  print("groups", json(groups_of(task, plain.get())));
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage", "librdkafka_job NAME BOOTSTRAP PARTITIONS REPLICATION RECORDS");
  run({argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5])});
  return 0;
}
