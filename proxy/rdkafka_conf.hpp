#pragma once
#include <librdkafka/rdkafka.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"

// librdkafka's things with owners, and the configuration of the program's own connections.
namespace proxy {

template <auto destroy>
struct KafkaDestroy {
  template <typename Thing>
  void operator()(Thing* thing) const {
    destroy(thing);
  }
};
template <typename Thing, auto destroy>
using KafkaOwned = std::unique_ptr<Thing, KafkaDestroy<destroy>>;

using KafkaConf = KafkaOwned<rd_kafka_conf_t, rd_kafka_conf_destroy>;
using KafkaClient = KafkaOwned<rd_kafka_t, rd_kafka_destroy>;
using KafkaTopic = KafkaOwned<rd_kafka_topic_t, rd_kafka_topic_destroy>;
using KafkaQueue = KafkaOwned<rd_kafka_queue_t, rd_kafka_queue_destroy>;
using KafkaEvent = KafkaOwned<rd_kafka_event_t, rd_kafka_event_destroy>;
using KafkaMessage = KafkaOwned<rd_kafka_message_t, rd_kafka_message_destroy>;

// Where `destination` is and how to log in there: `destination.client`, with librdkafka's lines in the program's log.
// Nothing: librdkafka does not take a property, and `error` says which; never its value, which may be a secret.
KafkaConf make_conf(const config::Destination& destination, std::string& error);

// The properties of `destination.client` that librdkafka does not take, by their places in it, each with a sentence.
std::vector<std::pair<std::size_t, std::string>> refused_properties(const config::Destination& destination);

// A property of the program's own choice, whatever `destination.client` says.
void set(KafkaConf& conf, const char* name, const std::string& value);

// Nothing: librdkafka does not take the properties together, and `error` says why.
KafkaClient make_client(rd_kafka_type_t type, KafkaConf conf, std::string& error);

// The login is by SCRAM, and this librdkafka sends the client's nonce twice, which brokers from 4.0 on refuse as bad
// credentials. Mended in 2.6.1.
bool has_broken_scram(const config::Destination& destination);

}  // namespace proxy
