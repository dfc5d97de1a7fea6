#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "mapping/state.hpp"
#include "proxy/log.hpp"
#include "proxy/state_reader.hpp"
#include "proxy/state_store.hpp"
#include "proxy/state_writer.hpp"

namespace proxy {

// What a StateStore's thread does once there is a topic: it brings what is read to the State, and what the State
// commands to the topic.
class StateOwner {
 public:
  struct Calls {
    std::function<std::set<mapping::Identity>()> take_requests;
    std::function<void(const StateStore::Status&)> report;
    std::function<void()> started;
  };

  // `cluster_ids` of the sources, by SourceIndex.
  StateOwner(const config::Destination& destination, const config::State& config, mapping::State& state,
             const std::vector<std::string>& cluster_ids, Wake& wake, Calls calls)
      : destination_(destination),
        config_(config),
        state_(state),
        cluster_ids_(cluster_ids),
        wake_(wake),
        calls_(std::move(calls)) {}

  // Until `is_stopping` (then empty), or until it has to give up: the sentence why.
  std::string run(const std::atomic<bool>& is_stopping);

 private:
  using Clock = std::chrono::steady_clock;

  std::string open();
  void on_record(std::int32_t partition, std::int64_t offset, mapping::ByteView key,
                 std::optional<mapping::ByteView> value);
  void on_read_error(std::int32_t partition, std::int64_t offset, rd_kafka_resp_err_t error, const std::string& text);
  void on_lost(std::int32_t partition);
  void on_written(std::uint64_t id, rd_kafka_resp_err_t error);
  void look_at_writer(rd_kafka_resp_err_t error);
  void carry_out();
  void take_finished();
  void look_at_start();
  void look_at_problems();
  void report();
  void fail(std::string failure);

  const config::Destination& destination_;
  const config::State& config_;
  mapping::State& state_;
  const std::vector<std::string>& cluster_ids_;
  Wake& wake_;
  Calls calls_;
  std::unique_ptr<StateReader> reader_;
  std::unique_ptr<StateWriter> writer_;

  StateStore::Status status_;
  std::string failure_;  // the first one: it ends
  std::string last_read_error_;
  std::size_t problems_said_ = 0;
  bool is_started_ = false;
  bool is_failing_ = false;  // the last write failed
  bool is_slow_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_report_ = begin_;
  Clock::time_point next_patience_ = begin_;
  log::Limit refused_records_, read_errors_, write_errors_, unserved_;
};

}  // namespace proxy
