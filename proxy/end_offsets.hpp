#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proxy/rdkafka_conf.hpp"
#include "proxy/wake.hpp"

namespace proxy {

// Asks the leaders of a topic's partitions where they end, on a thread of its own, for librdkafka's call blocks, and
// over connections of its own: on those of a consumer each answer waits for that to a fetch, half a second long. Who
// has not been asked yet comes before who did not answer, so that a partition without a leader does not hold up the
// others.
class EndOffsets {
 public:
  // `wake` is notified when there are answers, and must outlive this.
  EndOffsets(KafkaClient client, std::string topic, Wake& wake);
  ~EndOffsets();

  // There will be one answer, after as many attempts as it takes; of a moment after this call.
  void ask(std::int32_t partition);

  struct Answer {
    std::int32_t partition;
    std::int64_t first;  // offset
    std::int64_t end;    // the last one plus 1
  };
  std::vector<Answer> take_answers();

  // Somebody has heard that the topic does not exist. A broker that has just started may say so wrongly, so brokers are
  // asked some times more before it is believed.
  void doubt_topic();
  bool is_topic_gone();

 private:
  bool is_unknown_now();
  void look_for_topic(std::unique_lock<std::mutex>& lock);
  rd_kafka_resp_err_t ask_now(Answer& answer);
  void run();

  KafkaClient client_;
  std::string topic_;
  Wake& wake_;

  std::mutex mutex_;  // of all below
  std::condition_variable asked_;
  std::deque<std::int32_t> fresh_;
  std::deque<std::int32_t> again_;
  std::vector<Answer> answers_;
  bool is_stopping_ = false;
  int doubts_ = 0;  // how often the topic was not there, one after the other

  std::thread thread_;
};

}  // namespace proxy
