#include "proxy/end_offsets.hpp"

#include <utility>

namespace proxy {
namespace {

constexpr int timeout_ms = 1000;
constexpr std::chrono::milliseconds pause{100};  // before asking again
constexpr std::chrono::seconds doubt_pause{1};
constexpr int doubts_max = 4;

}  // namespace

EndOffsets::EndOffsets(KafkaClient client, std::string topic, Wake& wake)
    : client_(std::move(client)), topic_(std::move(topic)), wake_(wake), thread_([this] { run(); }) {}

EndOffsets::~EndOffsets() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  asked_.notify_all();
  thread_.join();
}

void EndOffsets::ask(std::int32_t partition) {
  {
    const std::lock_guard lock(mutex_);
    fresh_.push_back(partition);
  }
  asked_.notify_all();
}

std::vector<EndOffsets::Answer> EndOffsets::take_answers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void EndOffsets::doubt_topic() {
  {
    const std::lock_guard lock(mutex_);
    if (doubts_ == 0) doubts_ = 1;
  }
  asked_.notify_all();
}

bool EndOffsets::is_topic_gone() {
  const std::lock_guard lock(mutex_);
  return doubts_ >= doubts_max;
}

bool EndOffsets::is_unknown_now() {
  const KafkaTopic topic(rd_kafka_topic_new(client_.get(), topic_.c_str(), nullptr));
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client_.get(), 0, topic.get(), &metadata, timeout_ms) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return false;
  const auto error = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR_NO_ERROR;
  rd_kafka_metadata_destroy(metadata);
  return error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

void EndOffsets::look_for_topic(std::unique_lock<std::mutex>& lock) {
  if (asked_.wait_for(lock, doubt_pause, [&] { return is_stopping_; })) return;
  lock.unlock();
  const bool is_unknown = is_unknown_now();
  lock.lock();
  doubts_ = is_unknown ? doubts_ + 1 : 0;
  if (doubts_ >= doubts_max) wake_.notify();
}

// Not rd_kafka_query_watermark_offsets: it waits for a dead leader, whatever timeout it is given, until that comes
// back.
rd_kafka_resp_err_t EndOffsets::ask_now(Answer& answer) {
  const auto query = [&](std::int64_t which, std::int64_t& offset) {
    const KafkaOwned<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy> list(
        rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), answer.partition)->offset = which;
    const auto error = rd_kafka_offsets_for_times(client_.get(), list.get(), timeout_ms);
    offset = list->elems[0].offset;
    return error == RD_KAFKA_RESP_ERR_NO_ERROR ? list->elems[0].err : error;
  };
  auto error = query(RD_KAFKA_OFFSET_BEGINNING, answer.first);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) error = query(RD_KAFKA_OFFSET_END, answer.end);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return error;
  // Perhaps another leads it now; nothing else would make this client ask.
  const KafkaTopic topic(rd_kafka_topic_new(client_.get(), topic_.c_str(), nullptr));
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client_.get(), 0, topic.get(), &metadata, timeout_ms) == RD_KAFKA_RESP_ERR_NO_ERROR)
    rd_kafka_metadata_destroy(metadata);
  return error;
}

void EndOffsets::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (doubts_ > 0 && doubts_ < doubts_max) {
      look_for_topic(lock);
      continue;
    }
    if (fresh_.empty() && again_.empty()) {
      asked_.wait(lock, [&] { return is_stopping_ || !fresh_.empty() || (doubts_ > 0 && doubts_ < doubts_max); });
      continue;
    }
    if (fresh_.empty() && asked_.wait_for(lock, pause, [&] { return is_stopping_ || !fresh_.empty(); })) continue;
    auto& queue = fresh_.empty() ? again_ : fresh_;
    const auto partition = queue.front();
    queue.pop_front();
    Answer answer{partition, 0, 0};
    lock.unlock();
    const auto error = ask_now(answer);
    lock.lock();
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR || answer.end < 0) {
      again_.push_back(partition);
      continue;
    }
    answers_.push_back(answer);
    if (answers_.size() == 1) wake_.notify();
  }
}

}  // namespace proxy
