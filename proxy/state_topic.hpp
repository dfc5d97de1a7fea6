#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "proxy/rdkafka_conf.hpp"

namespace proxy {

// Makes the state topic where it is missing, and holds an existing one against what it must be: compacted and nothing
// else, since a record that is deleted while its id is in use gives the id to somebody else; and with the configured
// number of partitions, since a record's partition follows from it.
class StateTopic {
 public:
  struct Outcome {
    enum class Kind {
      done,     // it is there, as it must be, and every partition has a leader
      again,    // not yet: `reason` says why
      refused,  // trying again does not help: `reason` says what does
    };
    Kind kind;
    std::string reason;
  };

  // `expiration` of assignments: a reader that lags so long must still see what was deleted.
  StateTopic(const config::Destination& destination, const config::State& config, std::chrono::milliseconds expiration)
      : destination_(destination), config_(config), expiration_(expiration) {}

  enum class Use {
    serve,
    read,  // nothing is made, and the topic is taken as it is
  };
  // One attempt; at most half a minute, and a second after `is_stopping`.
  Outcome prepare(Use use, const std::atomic<bool>& is_stopping);

  // As the cluster has it, once prepared.
  std::int32_t partitions() const { return partitions_; }

 private:
  Outcome look(Use use, const std::atomic<bool>& is_stopping);
  Outcome create(int brokers, const std::atomic<bool>& is_stopping);
  Outcome check_configs(const std::atomic<bool>& is_stopping);
  Outcome not_yet(std::string reason);
  KafkaEvent wait_for(rd_kafka_queue_t* queue, const std::atomic<bool>& is_stopping);

  const config::Destination& destination_;
  const config::State& config_;
  std::chrono::milliseconds expiration_;
  KafkaClient client_;
  std::string login_failure_;  // the last one
  std::int32_t partitions_ = 0;
  bool is_created_ = false;
  bool has_warned_ = false;
};

}  // namespace proxy
