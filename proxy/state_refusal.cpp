#include "proxy/state_refusal.hpp"

#include <fmt/format.h>

#include "proxy/rdkafka_conf.hpp"

namespace proxy {
namespace {

// As the brokers' tools call it.
std::string_view acl_for(StateOperation operation) {
  switch (operation) {
    case StateOperation::describe: return "Describe";
    case StateOperation::create: return "Create";
    case StateOperation::describe_configs: return "DescribeConfigs";
    case StateOperation::read: return "Read";
    case StateOperation::write: return "Write";
  }
  return "";
}

}  // namespace

std::string explain_refusal(StateOperation operation, rd_kafka_resp_err_t error, const std::string& topic) {
  const auto words = rd_kafka_err2str(error);
  switch (error) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED: {
      auto sentence = fmt::format(
          "the destination does not allow {} on the state topic '{}' ({}): the principal of `destination.client` "
          "needs the ACLs Describe, DescribeConfigs, Read and Write on it",
          acl_for(operation), topic, words);
      if (operation == StateOperation::create || operation == StateOperation::describe)
        sentence += ", and Create unless the topic is there already";
      return sentence;
    }
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      if (operation == StateOperation::write)  // of an idempotent producer
        return fmt::format(
            "the destination does not allow Write on the state topic '{}' ({}): the principal of "
            "`destination.client` needs the ACLs Describe, DescribeConfigs, Read and Write on it, and at brokers "
            "before 2.8 IdempotentWrite on the cluster",
            topic, words);
      return fmt::format(
          "the destination does not allow {} on the cluster ({}): give the principal of `destination.client` the "
          "ACL Create on the topic '{}', or create the topic with cleanup.policy=compact",
          acl_for(operation), words, topic);
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
      return fmt::format(
          "the destination does not take '{}' for a topic of ours ({}): the name is a broker's own or not a valid "
          "one; choose another with `state.topic`",
          topic, words);
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
      return fmt::format(
          "the destination's rules for new topics do not allow the state topic '{}' ({}): create it yourself, with "
          "cleanup.policy=compact and the numbers of `state.partitions` and `state.replication_factor`",
          topic, words);
    default: return {};
  }
}

std::string explain_login_failure(rd_kafka_resp_err_t error, const std::string& text,
                                  const config::Destination& destination) {
  if (error == RD_KAFKA_RESP_ERR__SSL)
    return fmt::format(
        "no TLS connection to the destination ({}): check `destination.tls`, and security.protocol and ssl.* in "
        "`destination.client`",
        text);
  if (error != RD_KAFKA_RESP_ERR__AUTHENTICATION) return {};
  if (has_broken_scram(destination))
    return fmt::format(
        "the destination refuses the login ({}): this librdkafka ({}) cannot log in by SCRAM at a broker from 4.0 "
        "on, it needs 2.6.1 or newer (the container image has it); for older brokers check sasl.* in "
        "`destination.client`",
        text, rd_kafka_version_str());
  return fmt::format("the destination refuses the login ({}): check sasl.* in `destination.client`", text);
}

}  // namespace proxy
