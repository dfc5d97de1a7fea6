#include "proxy/state_topic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "proxy/log.hpp"
#include "proxy/state_refusal.hpp"

namespace proxy {
namespace {

using Outcome = StateTopic::Outcome;

constexpr std::chrono::milliseconds slice{500};  // of a wait that cannot be interrupted
constexpr int metadata_attempts = 10;
constexpr int request_timeout_ms = 10'000;

using Metadata = KafkaOwned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy>;
using Options = KafkaOwned<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>;

Outcome judge(StateOperation operation, rd_kafka_resp_err_t error, const std::string& topic, const char* text) {
  if (auto sentence = explain_refusal(operation, error, topic); !sentence.empty())
    return {Outcome::Kind::refused, std::move(sentence)};
  return {Outcome::Kind::again, text ? text : rd_kafka_err2str(error)};
}

Options make_options(rd_kafka_t* client, rd_kafka_admin_op_t operation) {
  char why[128];
  Options options(rd_kafka_AdminOptions_new(client, operation));
  rd_kafka_AdminOptions_set_request_timeout(options.get(), request_timeout_ms, why, sizeof why);
  return options;
}

}  // namespace

Outcome StateTopic::prepare(Use use, const std::atomic<bool>& is_stopping) {
  if (!client_) {
    std::string error;
    auto conf = make_conf(destination_, error);
    if (!conf) return {Outcome::Kind::refused, error};
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t*, int code, const char* text, void* self) {
      auto& topic = *static_cast<StateTopic*>(self);
      const auto failure = explain_login_failure(static_cast<rd_kafka_resp_err_t>(code), text, topic.destination_);
      if (!failure.empty()) topic.login_failure_ = failure;
    });
    // A consumer: the metadata requests of a producer may create topics.
    client_ = make_client(RD_KAFKA_CONSUMER, std::move(conf), error);
    if (!client_) return {Outcome::Kind::refused, error};
  }
  auto outcome = look(use, is_stopping);
  // A new client begins at the bootstrap servers again, and has forgotten that the topic was missing.
  if (outcome.kind == Outcome::Kind::again) client_.reset();
  return outcome;
}

Outcome StateTopic::not_yet(std::string reason) {
  rd_kafka_poll(client_.get(), 0);
  if (login_failure_.empty()) return {Outcome::Kind::again, std::move(reason)};
  return {Outcome::Kind::refused, login_failure_};
}

Outcome StateTopic::look(Use use, const std::atomic<bool>& is_stopping) {
  const KafkaTopic topic(rd_kafka_topic_new(client_.get(), config_.topic.c_str(), nullptr));
  Metadata metadata;
  auto error = RD_KAFKA_RESP_ERR__TIMED_OUT;
  for (int i = 0; i < metadata_attempts && error != RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    if (is_stopping) return {Outcome::Kind::again, "stopped"};
    const rd_kafka_metadata_t* found = nullptr;
    error = rd_kafka_metadata(client_.get(), 0, topic.get(), &found, static_cast<int>(slice.count()));
    metadata.reset(found);
    rd_kafka_poll(client_.get(), 0);
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return not_yet(rd_kafka_err2str(error));
  login_failure_.clear();  // one broker let us in
  if (metadata->topic_cnt != 1) return not_yet("the metadata name another topic");
  const auto& found = metadata->topics[0];
  if (found.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
    if (is_created_) return not_yet("the topic was made and is not known everywhere yet");
    if (use == Use::read)
      return {Outcome::Kind::refused,
              fmt::format("the destination has no topic '{}': no mirrorpid has been started with it, or `state.topic` "
                          "is another one there",
                          config_.topic)};
    return create(metadata->broker_cnt, is_stopping);
  }
  if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR && found.err != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
    return judge(StateOperation::describe, found.err, config_.topic, nullptr);
  partitions_ = found.partition_cnt;
  if (use == Use::serve && partitions_ != config_.partitions)
    return {Outcome::Kind::refused,
            fmt::format("the state topic '{}' has {} partitions and `state.partitions` says {}: the number must never "
                        "change; set `state.partitions: {}`, or another `state.topic` if this one is not mirrorpid's",
                        config_.topic, partitions_, config_.partitions, partitions_)};
  if (use == Use::serve)
    if (auto checked = check_configs(is_stopping); checked.kind != Outcome::Kind::done) return checked;
  for (int i = 0; i < found.partition_cnt; ++i)
    if (found.partitions[i].leader < 0)
      return not_yet(fmt::format("partition {} of '{}' has no leader", found.partitions[i].id, config_.topic));
  return {Outcome::Kind::done, {}};
}

Outcome StateTopic::create(int brokers, const std::atomic<bool>& is_stopping) {
  char why[256] = "";
  const KafkaOwned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy> topic(
      rd_kafka_NewTopic_new(config_.topic.c_str(), config_.partitions, config_.replication_factor, why, sizeof why));
  if (!topic) return {Outcome::Kind::refused, why};
  const auto set = [&](const char* name, const std::string& value) {
    rd_kafka_NewTopic_set_config(topic.get(), name, value.c_str());
  };
  set("cleanup.policy", "compact");
  set("delete.retention.ms", std::to_string(expiration_.count()));
  set("min.insync.replicas", std::to_string(std::min<int>(2, config_.replication_factor)));
  set("unclean.leader.election.enable", "false");

  const auto options = make_options(client_.get(), RD_KAFKA_ADMIN_OP_CREATETOPICS);
  rd_kafka_AdminOptions_set_operation_timeout(options.get(), request_timeout_ms / 2, why, sizeof why);
  const KafkaQueue queue(rd_kafka_queue_new(client_.get()));
  auto* topics = topic.get();
  rd_kafka_CreateTopics(client_.get(), &topics, 1, options.get(), queue.get());
  const auto event = wait_for(queue.get(), is_stopping);
  if (!event) return {Outcome::Kind::again, "stopped"};
  if (const auto error = rd_kafka_event_error(event.get()); error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    const auto outcome = judge(StateOperation::create, error, config_.topic, rd_kafka_event_error_string(event.get()));
    return outcome.kind == Outcome::Kind::again ? not_yet(outcome.reason) : outcome;
  }
  std::size_t count = 0;
  const auto* result = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  const auto error = count == 1 ? rd_kafka_topic_result_error(result[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
  const auto* text = count == 1 ? rd_kafka_topic_result_error_string(result[0]) : nullptr;
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      is_created_ = true;
      log::info("made the state topic", {{"topic", config_.topic},
                                         {"partitions", std::to_string(config_.partitions)},
                                         {"replication_factor", std::to_string(config_.replication_factor)}});
      return {Outcome::Kind::again, "the topic was made and is not known everywhere yet"};
    case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: return {Outcome::Kind::again, rd_kafka_err2str(error)};
    case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
      return {Outcome::Kind::refused,
              fmt::format("the state topic '{}' cannot be made with replication factor {}, for the destination has {} "
                          "broker{} ({}): set `state.replication_factor` to at most that, or start the others",
                          config_.topic, config_.replication_factor, brokers, brokers == 1 ? "" : "s",
                          text ? text : rd_kafka_err2str(error))};
    case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
    case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
      return {Outcome::Kind::refused,
              fmt::format("the destination does not make the state topic '{}' ({}): create it yourself, with "
                          "cleanup.policy=compact and {} partitions, or lower `state.partitions`",
                          config_.topic, text ? text : rd_kafka_err2str(error), config_.partitions)};
    default: return judge(StateOperation::create, error, config_.topic, text);
  }
}

Outcome StateTopic::check_configs(const std::atomic<bool>& is_stopping) {
  const KafkaOwned<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy> resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, config_.topic.c_str()));
  const auto options = make_options(client_.get(), RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
  const KafkaQueue queue(rd_kafka_queue_new(client_.get()));
  auto* resources = resource.get();
  rd_kafka_DescribeConfigs(client_.get(), &resources, 1, options.get(), queue.get());
  const auto event = wait_for(queue.get(), is_stopping);
  if (!event) return {Outcome::Kind::again, "stopped"};
  auto error = rd_kafka_event_error(event.get());
  const auto* text = rd_kafka_event_error_string(event.get());
  const rd_kafka_ConfigResource_t** found = nullptr;
  std::size_t count = 0;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const auto* result = rd_kafka_event_DescribeConfigs_result(event.get());
    found = rd_kafka_DescribeConfigs_result_resources(result, &count);
    error = count == 1 ? rd_kafka_ConfigResource_error(found[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
    text = count == 1 ? rd_kafka_ConfigResource_error_string(found[0]) : nullptr;
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return judge(StateOperation::describe_configs, error, config_.topic, text);

  std::map<std::string, std::string, std::less<>> configs;
  const auto* entries = rd_kafka_ConfigResource_configs(found[0], &count);
  for (std::size_t i = 0; i < count; ++i)
    if (const auto* value = rd_kafka_ConfigEntry_value(entries[i]))
      configs.emplace(rd_kafka_ConfigEntry_name(entries[i]), value);
  if (configs["cleanup.policy"] != "compact")
    return {Outcome::Kind::refused,
            fmt::format("the state topic '{}' has cleanup.policy '{}', and must have 'compact' alone: what is deleted "
                        "there is forgotten, and its producer ids given to others; change it (kafka-configs.sh "
                        "--alter --topic {} --add-config cleanup.policy=compact) or choose another `state.topic`",
                        config_.topic, configs["cleanup.policy"], config_.topic)};
  if (std::exchange(has_warned_, true)) return {Outcome::Kind::done, {}};
  const auto advise = [&](std::string_view name, std::string_view wanted) {
    log::warn("the state topic should be set otherwise", {{"topic", config_.topic},
                                                          {"config", std::string(name)},
                                                          {"value", configs[std::string(name)]},
                                                          {"wanted", std::string(wanted)}});
  };
  const auto retention = std::string_view(configs["delete.retention.ms"]);
  std::int64_t retention_ms = 0;
  std::from_chars(retention.data(), retention.data() + retention.size(), retention_ms);
  if (retention_ms < expiration_.count()) advise("delete.retention.ms", fmt::format(">= {}", expiration_.count()));
  if (configs["unclean.leader.election.enable"] == "true") advise("unclean.leader.election.enable", "false");
  if (config_.replication_factor > 1 && configs["min.insync.replicas"] == "1") advise("min.insync.replicas", "2");
  return {Outcome::Kind::done, {}};
}

KafkaEvent StateTopic::wait_for(rd_kafka_queue_t* queue, const std::atomic<bool>& is_stopping) {
  while (!is_stopping)  // the request has a timeout of its own, and then there is an event
    if (KafkaEvent event{rd_kafka_queue_poll(queue, static_cast<int>(slice.count()))}) return event;
  return nullptr;
}

}  // namespace proxy
