#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "mapping/state.hpp"
#include "proxy/rdkafka_conf.hpp"
#include "proxy/wake.hpp"

namespace proxy {

// Writes to the state topic: idempotently, so that librdkafka's own repetitions neither double nor reorder, and with
// the acknowledgement of all in-sync replicas. A write that is given up is never begun again.
class StateWriter {
 public:
  using Clock = std::chrono::steady_clock;
  // For each write once, by poll() or give_up(). An error: it may be in the log all the same, or come to be.
  using OnAnswer = std::function<void(std::uint64_t id, rd_kafka_resp_err_t error)>;

  // Nothing: librdkafka does not want to, and `error` says why. `wake` is notified when there is something to poll.
  static std::unique_ptr<StateWriter> make(const config::Destination& destination, const config::State& config,
                                           Wake& wake, OnAnswer on_answer, std::string& error);
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  void write(const mapping::Write& write);
  // An error: none of this kind can succeed, and those under way have failed; the next one begins anew.
  rd_kafka_resp_err_t poll();
  // Answers all that are under way as failed by `error`.
  void give_up(rd_kafka_resp_err_t error);

  std::size_t under_way() const { return under_way_.size(); }
  Clock::duration oldest(Clock::time_point now) const;

 private:
  StateWriter(const config::Destination& destination, const config::State& config, Wake& wake, OnAnswer on_answer)
      : destination_(destination), config_(config), wake_(wake), on_answer_(std::move(on_answer)) {}
  bool open(std::string& error);
  void answer(std::uint64_t id, rd_kafka_resp_err_t error);
  void close();
  rd_kafka_resp_err_t cause_of(rd_kafka_resp_err_t error) const;

  const config::Destination& destination_;
  const config::State& config_;
  Wake& wake_;
  OnAnswer on_answer_;
  std::map<std::uint64_t, Clock::time_point> under_way_;                // ids grow with time
  std::vector<std::pair<std::uint64_t, rd_kafka_resp_err_t>> refused_;  // by librdkafka, at once
  KafkaClient client_;
  KafkaQueue queue_;
  KafkaTopic topic_;
};

}  // namespace proxy
