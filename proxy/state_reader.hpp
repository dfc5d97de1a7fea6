#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "mapping/state_records.hpp"
#include "proxy/end_offsets.hpp"
#include "proxy/rdkafka_conf.hpp"
#include "proxy/wake.hpp"

namespace proxy {

// Reads all partitions of the state topic, from the beginning and then as they grow, and knows when it has met the end
// of one. It belongs to no consumer group and commits nothing.
class StateReader {
 public:
  // Called by poll().
  struct Events {
    std::function<void(std::int32_t partition, std::int64_t offset, mapping::ByteView key,
                       std::optional<mapping::ByteView> value)>
        record;
    std::function<void(std::int32_t partition)> end;  // read_to_end is through
    // librdkafka's errors, `partition` and `offset` being -1 where they are about connections. They pass by themselves,
    // or not: it goes on trying.
    std::function<void(std::int32_t partition, std::int64_t offset, rd_kafka_resp_err_t error, std::string text)> error;
    // The partition is read from its beginning once more: it is shorter than what was read.
    std::function<void(std::int32_t partition)> lost;
    std::function<void()> gone;  // the topic does not exist any more
  };

  // Nothing: librdkafka does not want to, and `error` says why. `wake` is notified when there is something to poll.
  static std::unique_ptr<StateReader> make(const config::Destination& destination, const std::string& topic,
                                           std::int32_t partitions, Wake& wake, Events events, std::string& error);
  ~StateReader();
  StateReader(const StateReader&) = delete;
  StateReader& operator=(const StateReader&) = delete;

  // Ends in Events::end, when the reader's position has met the partition's end at a moment after this call. One at a
  // time for a partition.
  void read_to_end(std::int32_t partition);

  // Handles what has arrived, at most so many records. True: there may be more.
  bool poll(int records_max);

 private:
  static constexpr std::int64_t unknown = -1;

  struct Partition {
    std::int64_t position = unknown;     // of the next record
    std::int64_t seen_end_at = unknown;  // the last position of which the leader said that it is the end
    enum class Phase : std::uint8_t { following, asking, reading } phase = Phase::following;
    std::int64_t asked_at = unknown;  // asking: the position before the question
    std::int64_t end = unknown;       // the first answer to it
  };

  StateReader(Wake& wake, Events events) : wake_(wake), events_(std::move(events)) {}
  void on_message(const rd_kafka_message_t& message);
  void move_to(std::int32_t number, std::int64_t position);
  void ask(std::int32_t number);
  void on_answer(const EndOffsets::Answer& answer);
  void go_on(std::int32_t number);

  Wake& wake_;
  Events events_;
  std::vector<Partition> partitions_;
  KafkaClient client_;
  KafkaQueue main_queue_;
  KafkaQueue queue_;
  KafkaTopic topic_;
  std::unique_ptr<EndOffsets> ends_;
};

}  // namespace proxy
