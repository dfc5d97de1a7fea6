#include "tests/support/verbatim_mirror.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "codec/frame.hpp"
#include "codec/record_batch.hpp"
#include "tests/support/topic_client.hpp"

namespace support {
namespace {

using Clock = std::chrono::steady_clock;
using codec::RecordBatchHeader;

constexpr std::chrono::milliseconds retry_pause{100};
constexpr std::int32_t fetch_size_max = 1 << 30;
constexpr std::int16_t corrupt_message = 2;
constexpr std::int16_t unsupported_for_message_format = 43;
constexpr std::size_t empty_fetches_max = 100;

struct Batch {
  std::int32_t partition;
  std::int64_t offset;  // at the source
  bool is_transactional;
  std::vector<std::byte> bytes;
  std::int16_t refusal = MirrorResult::not_sent;  // why it waits to be sent again
};

// The way of batches into the destination, in order within each partition.
class Delivery {
 public:
  Delivery(TopicClient& destination, const MirrorOptions& options, MirrorResult& result)
      : destination_(destination), options_(options), result_(result) {}

  Result<void> send(Batch batch) {
    for (;;) {
      const auto leader = destination_.leader(batch.partition);
      // Nothing was sent: the same as a broker that leads no more.
      if (!leader) {
        refused_.push_back(std::move(batch));
        return flush();
      }
      auto& pipeline = pipelines_[*leader];
      if (pipeline.size() < options_.in_flight) return transmit(**leader, pipeline, std::move(batch));
      if (auto answered = await_oldest(**leader, pipeline); !answered) {
        refused_.push_back(std::move(batch));
        return answered;
      }
      if (refused_.empty()) continue;
      if (auto flushed = flush(); !flushed) {
        refused_.push_back(std::move(batch));
        return flushed;
      }
    }
  }

  // Until all that was sent has its answer, and what was refused for its leader's sake has been sent again.
  Result<void> flush() {
    if (auto drained = drain(); !drained) return drained;
    const auto deadline = Clock::now() + options_.patience;
    while (!refused_.empty()) {
      std::ranges::sort(refused_, {}, [](const Batch& batch) { return std::pair(batch.partition, batch.offset); });
      if (Clock::now() >= deadline) {
        for (const auto& batch : std::exchange(refused_, {})) add_error(batch, batch.refusal);
        return {};
      }
      std::this_thread::sleep_for(retry_pause);
      if (auto asked = destination_.refresh(options_.patience); !asked) return asked;
      if (auto sent = send_refused(); !sent) return sent;
    }
    return {};
  }

  // Of what has no answer it is not known whether it was written.
  void give_up() {
    for (const auto& [leader, pipeline] : pipelines_)
      for (const auto& pending : pipeline) add_error(pending.batch, MirrorResult::no_answer);
    for (const auto& batch : refused_) add_error(batch, batch.refusal);
  }

 private:
  struct Pending {
    Batch batch;
    Sent sent;
  };
  using Pipeline = std::deque<Pending>;

  Result<void> transmit(KafkaConnection& leader, Pipeline& pipeline, Batch batch) {
    const auto& transactional_id = batch.is_transactional ? options_.transactional_id : std::string();
    const auto sent = destination_.send_produce(leader, batch.partition, batch.bytes, transactional_id);
    if (!sent) {
      add_error(batch, MirrorResult::no_answer);
      return sent.error();
    }
    pipeline.push_back({std::move(batch), *sent});
    return {};
  }

  Result<void> await_oldest(KafkaConnection& leader, Pipeline& pipeline) {
    const auto answer = TopicClient::receive_produce(leader, pipeline.front().sent);
    if (!answer) return answer.error();
    auto batch = std::move(pipeline.front().batch);
    pipeline.pop_front();
    if (answer->error_code == error_none) {
      ++result_.acknowledged;
      result_.bytes += batch.bytes.size();
      auto& last = acknowledged_.try_emplace(batch.partition, -1).first->second;
      last = std::max(last, batch.offset);
    } else if (is_about_leaders(answer->error_code) && !is_overtaken(batch)) {
      batch.refusal = answer->error_code;
      refused_.push_back(std::move(batch));
    } else {
      add_error(batch, answer->error_code);
    }
    return {};
  }

  Result<void> drain() {
    for (auto& [leader, pipeline] : pipelines_)
      while (!pipeline.empty())
        if (auto answered = await_oldest(*leader, pipeline); !answered) return answered;
    pipelines_.clear();
    return {};
  }

  // One at a time. What follows a batch that is refused again waits with it.
  Result<void> send_refused() {
    std::deque<Batch> again(std::move_iterator(refused_.begin()), std::move_iterator(refused_.end()));
    refused_.clear();
    Result<void> sent;
    for (; !again.empty(); again.pop_front()) {
      auto& batch = again.front();
      const auto waits = [&](const Batch& other) { return other.partition == batch.partition; };
      if (is_overtaken(batch)) {
        add_error(batch, batch.refusal);
        continue;
      }
      const auto leader = destination_.leader(batch.partition);
      if (!sent || !leader || std::ranges::any_of(refused_, waits)) {
        refused_.push_back(std::move(batch));
        continue;
      }
      sent = transmit(**leader, pipelines_[*leader], std::move(batch));
      if (sent) sent = drain();
    }
    return sent;
  }

  bool is_overtaken(const Batch& batch) const {
    const auto last = acknowledged_.find(batch.partition);
    return last != acknowledged_.end() && last->second > batch.offset;
  }

  void add_error(const Batch& batch, std::int16_t code) {
    result_.errors.push_back({batch.partition, batch.offset, code});
  }

  TopicClient& destination_;
  const MirrorOptions& options_;
  MirrorResult& result_;
  std::map<KafkaConnection*, Pipeline> pipelines_;
  std::vector<Batch> refused_;                         // by a broker that does not lead, or no longer
  std::map<std::int32_t, std::int64_t> acknowledged_;  // the last source offset of each partition
};

// The way through one partition of the source.
class PartitionReader {
 public:
  PartitionReader(TopicClient& source, std::int32_t partition, const MirrorOptions& options, MirrorResult& result)
      : source_(source), partition_(partition), options_(options), result_(result), fetch_size_(options.fetch_size) {}

  // Asks where the partition begins and ends now.
  Result<void> begin() {
    const auto deadline = Clock::now() + options_.patience;
    for (;;) {
      const auto first = source_.list_offset(partition_, TopicClient::Offset::earliest);
      if (!first) return first.error();
      const auto end = source_.list_offset(partition_, TopicClient::Offset::latest);
      if (!end) return end.error();
      next_ = first->offset;
      end_ = end->offset;
      const auto error = first->error_code != error_none ? first->error_code : end->error_code;
      if (error == error_none) return {};
      if (!is_about_leaders(error) || Clock::now() >= deadline) {
        stop(error);
        return {};
      }
      std::this_thread::sleep_for(retry_pause);
      if (auto asked = source_.refresh(options_.patience); !asked) return asked;
    }
  }

  bool is_done() const { return next_ >= end_; }

  // One Fetch; its batches go to `delivery`.
  Result<void> step(Delivery& delivery) {
    const auto fetched = source_.fetch(partition_, next_, fetch_size_);
    if (!fetched) return fetched.error();
    if (is_about_leaders(fetched->error_code) && refusals_++ * retry_pause < options_.patience) {
      std::this_thread::sleep_for(retry_pause);
      return source_.refresh(options_.patience);
    }
    if (fetched->error_code != error_none) {
      stop(fetched->error_code);
      return {};
    }
    const auto before = next_;
    if (auto sent = send_entries(fetched->records, delivery); !sent) return sent;
    if (next_ != before) {
      refusals_ = empty_fetches_ = 0;
    } else if (!fetched->records.empty() && fetch_size_ < fetch_size_max) {
      fetch_size_ *= 2;  // not even the first batch came whole
    } else if (++empty_fetches_ == empty_fetches_max) {
      stop(MirrorResult::no_answer);
    }
    return {};
  }

 private:
  Result<void> send_entries(std::span<const std::byte> records, Delivery& delivery) {
    while (!is_done() && records.size() >= sizeof(codec::RecordsEntryHead)) {
      const auto head = codec::load<codec::RecordsEntryHead>(records);
      if (!head.is_well_formed() || head.magic != 2) {
        stop(head.is_well_formed() ? unsupported_for_message_format : corrupt_message);
        break;
      }
      const auto size = static_cast<std::size_t>(head.size());
      if (size > records.size()) break;
      const auto entry = records.first(size);
      records = records.subspan(size);
      const auto batch = codec::load<RecordBatchHeader>(entry);
      // Written since the beginning; only batches of this one are known to be all there.
      if (batch.base_offset >= end_) {
        next_ = end_;
        break;
      }
      next_ = batch.base_offset + batch.last_offset_delta + 1;
      if (batch.is_control()) {
        ++result_.control_batches_left_out;
      } else if (auto sent = send_batch(batch, entry, delivery); !sent) {
        return sent;
      }
    }
    return {};
  }

  Result<void> send_batch(RecordBatchHeader header, std::span<const std::byte> entry, Delivery& delivery) {
    ++result_.batches;
    Batch batch{partition_, header.base_offset, header.is_transactional(), {entry.begin(), entry.end()}};
    header.base_offset = 0;
    codec::store(std::span(batch.bytes), header);
    return delivery.send(std::move(batch));
  }

  // The rest of the partition is not mirrored, which the error says.
  void stop(std::int16_t code) {
    result_.errors.push_back({partition_, next_, code});
    end_ = next_;
  }

  TopicClient& source_;
  std::int32_t partition_;
  const MirrorOptions& options_;
  MirrorResult& result_;
  std::int32_t fetch_size_;
  std::int64_t next_ = 0;
  std::int64_t end_ = 0;
  std::size_t refusals_ = 0;
  std::size_t empty_fetches_ = 0;
};

Result<void> mirror_all(TopicClient& source, TopicClient& destination, Delivery& delivery, const MirrorOptions& options,
                        MirrorResult& result) {
  if (auto asked = source.refresh(options.patience); !asked) return asked;
  if (auto asked = destination.refresh(options.patience); !asked) return asked;
  if (source.partitions() > destination.partitions())
    return Failure{"the topic has " + std::to_string(source.partitions()) + " partitions at the source and " +
                   std::to_string(destination.partitions()) + " at the destination"};

  std::vector<PartitionReader> readers;
  for (std::int32_t i = 0; i < source.partitions(); ++i)
    if (auto begun = readers.emplace_back(source, i, options, result).begin(); !begun) return begun;
  const auto is_done = [](const PartitionReader& reader) { return reader.is_done(); };
  while (!std::ranges::all_of(readers, is_done))
    for (auto& reader : readers) {
      if (reader.is_done()) continue;
      if (auto stepped = reader.step(delivery); !stepped) return stepped;
    }
  return delivery.flush();
}

}  // namespace

MirrorResult mirror_verbatim(const MirrorOptions& options) {
  MirrorResult result;
  TopicClient source(options.from, options.topic, options.timeout);
  TopicClient destination(options.to, options.to_topic.empty() ? options.topic : options.to_topic, options.timeout);
  Delivery delivery(destination, options, result);
  if (const auto mirrored = mirror_all(source, destination, delivery, options, result); !mirrored) {
    result.failure = mirrored.error().reason;
    delivery.give_up();
  }
  return result;
}

}  // namespace support
