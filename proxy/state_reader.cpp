#include "proxy/state_reader.hpp"

#include <algorithm>
#include <utility>

namespace proxy {
namespace {

mapping::ByteView view(const void* bytes, std::size_t size) {
  return {static_cast<const std::byte*>(bytes), size};
}

}  // namespace

std::unique_ptr<StateReader> StateReader::make(const config::Destination& destination, const std::string& topic,
                                               std::int32_t partitions, Wake& wake, Events events, std::string& error) {
  auto conf = make_conf(destination, error);
  if (!conf) return nullptr;
  std::unique_ptr<StateReader> reader(new StateReader(wake, std::move(events)));
  set(conf, "enable.partition.eof", "true");
  set(conf, "check.crcs", "true");
  set(conf, "isolation.level", "read_uncommitted");
  set(conf, "auto.offset.reset", "earliest");
  set(conf, "enable.auto.commit", "false");
  set(conf, "enable.auto.offset.store", "false");
  set(conf, "fetch.error.backoff.ms", "100");
  rd_kafka_conf_set_opaque(conf.get(), reader.get());
  rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t*, int code, const char* text, void* self) {
    auto& that = *static_cast<StateReader*>(self);
    if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && that.ends_) that.ends_->doubt_topic();
    that.events_.error(-1, -1, static_cast<rd_kafka_resp_err_t>(code), text);
  });
  reader->client_ = make_client(RD_KAFKA_CONSUMER, std::move(conf), error);
  if (!reader->client_) return nullptr;
  auto* client = reader->client_.get();
  reader->partitions_.resize(static_cast<std::size_t>(partitions));
  reader->main_queue_.reset(rd_kafka_queue_get_main(client));
  reader->queue_.reset(rd_kafka_queue_new(client));
  wake.watch(reader->main_queue_.get());
  wake.watch(reader->queue_.get());
  reader->topic_.reset(rd_kafka_topic_new(client, topic.c_str(), nullptr));
  // Partition by partition, without a group: a group would need a permission, and a coordinator that answers.
  for (std::int32_t partition = 0; partition < partitions; ++partition) {
    if (rd_kafka_consume_start_queue(reader->topic_.get(), partition, RD_KAFKA_OFFSET_BEGINNING,
                                     reader->queue_.get()) == 0)
      continue;
    error = std::string("the state topic cannot be read: ") + rd_kafka_err2str(rd_kafka_last_error());
    return nullptr;
  }
  auto asker_conf = make_conf(destination, error);
  auto asker = asker_conf ? make_client(RD_KAFKA_CONSUMER, std::move(asker_conf), error) : nullptr;
  if (!asker) return nullptr;
  reader->ends_ = std::make_unique<EndOffsets>(std::move(asker), topic, wake);
  return reader;
}

StateReader::~StateReader() {
  ends_.reset();
  if (!topic_ || !queue_) return;
  for (std::int32_t partition = 0; partition < static_cast<std::int32_t>(partitions_.size()); ++partition)
    rd_kafka_consume_stop(topic_.get(), partition);
}

void StateReader::read_to_end(std::int32_t number) {
  partitions_[static_cast<std::size_t>(number)].end = unknown;
  ask(number);
}

bool StateReader::poll(int records_max) {
  rd_kafka_poll(client_.get(), 0);
  for (const auto& answer : ends_->take_answers()) on_answer(answer);
  if (ends_->is_topic_gone()) events_.gone();
  for (int i = 0; i < records_max; ++i) {
    const KafkaMessage message(rd_kafka_consume_queue(queue_.get(), 0));
    if (!message) return false;
    on_message(*message);
  }
  return true;
}

void StateReader::on_message(const rd_kafka_message_t& message) {
  if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    auto& partition = partitions_[static_cast<std::size_t>(message.partition)];
    move_to(message.partition, message.offset);
    partition.seen_end_at = message.offset;
    return go_on(message.partition);
  }
  if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR)
    return events_.error(message.partition, message.offset, message.err, rd_kafka_message_errstr(&message));
  const auto value = message.payload ? std::optional(view(message.payload, message.len)) : std::nullopt;
  events_.record(message.partition, message.offset, view(message.key, message.key_len), value);
  move_to(message.partition, message.offset + 1);
  go_on(message.partition);
}

void StateReader::move_to(std::int32_t number, std::int64_t position) {
  auto& partition = partitions_[static_cast<std::size_t>(number)];
  if (position < partition.position) events_.lost(number);
  partition.position = position;
}

void StateReader::ask(std::int32_t number) {
  auto& partition = partitions_[static_cast<std::size_t>(number)];
  partition.phase = Partition::Phase::asking;
  partition.asked_at = partition.position;
  ends_->ask(number);
}

void StateReader::on_answer(const EndOffsets::Answer& answer) {
  auto& partition = partitions_[static_cast<std::size_t>(answer.partition)];
  if (partition.end == unknown) partition.end = answer.end;
  partition.phase = Partition::Phase::reading;
  // There is nothing to read, and then the reader's own word of the end takes its time.
  const bool is_empty = answer.first == answer.end && partition.position <= answer.end;
  if (is_empty || partition.asked_at == answer.end) {
    partition.phase = Partition::Phase::following;
    return events_.end(answer.partition);
  }
  go_on(answer.partition);
}

// The position has met the end if the leader, on fetching at a position not below the end that was asked for, said that
// this is the end. That word comes late, half a second after the last record when no other follows. So as soon as the
// position has reached the answer it is asked for anew: if it says again what the position was when asking, they have
// met.
void StateReader::go_on(std::int32_t number) {
  auto& partition = partitions_[static_cast<std::size_t>(number)];
  if (partition.phase == Partition::Phase::following || partition.end == unknown) return;
  if (partition.seen_end_at >= partition.end) {
    // An answer that is still to come would be one to the next question.
    if (partition.phase == Partition::Phase::asking) return;
    partition.phase = Partition::Phase::following;
    return events_.end(number);
  }
  const bool has_moved = partition.position != partition.asked_at;
  if (partition.phase == Partition::Phase::reading && partition.position >= partition.end && has_moved) ask(number);
}

}  // namespace proxy
