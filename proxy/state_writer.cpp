#include "proxy/state_writer.hpp"

#include <utility>

#include "proxy/log.hpp"

namespace proxy {

std::unique_ptr<StateWriter> StateWriter::make(const config::Destination& destination, const config::State& config,
                                               Wake& wake, OnAnswer on_answer, std::string& error) {
  std::unique_ptr<StateWriter> writer(new StateWriter(destination, config, wake, std::move(on_answer)));
  if (!writer->open(error)) return nullptr;
  return writer;
}

StateWriter::~StateWriter() {
  close();
}

bool StateWriter::open(std::string& error) {
  auto conf = make_conf(destination_, error);
  if (!conf) return false;
  set(conf, "enable.idempotence", "true");
  set(conf, "acks", "all");
  set(conf, "queue.buffering.max.ms", "0");
  set(conf, "message.timeout.ms", std::to_string(config_.write_timeout.count()));
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
    static_cast<StateWriter*>(self)->answer(reinterpret_cast<std::uintptr_t>(message->_private), message->err);
  });
  // What it says about connections the reader says, too, and what matters for writes comes with their answers.
  rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t*, int, const char* text, void*) {
    log::debug("the writer of the state topic", {{"reason", text}});
  });
  client_ = make_client(RD_KAFKA_PRODUCER, std::move(conf), error);
  if (!client_) return false;
  queue_.reset(rd_kafka_queue_get_main(client_.get()));
  wake_.watch(queue_.get());
  topic_.reset(rd_kafka_topic_new(client_.get(), config_.topic.c_str(), nullptr));
  return true;
}

void StateWriter::write(const mapping::Write& write) {
  under_way_.emplace(write.id, Clock::now());
  std::string why;
  auto error = RD_KAFKA_RESP_ERR__FAIL;
  if (client_ || open(why)) {
    // librdkafka takes a copy, and its C interface no const.
    auto* value = write.value ? const_cast<std::byte*>(write.value->data()) : nullptr;
    const auto size = write.value ? write.value->size() : 0;
    if (rd_kafka_produce(topic_.get(), write.log_partition, RD_KAFKA_MSG_F_COPY, value, size, write.key.data(),
                         write.key.size(), reinterpret_cast<void*>(std::uintptr_t{write.id})) == 0)
      return;
    error = cause_of(rd_kafka_last_error());
  } else {
    log::error("the writer of the state topic", {{"reason", why}});
  }
  refused_.emplace_back(write.id, error);
  wake_.notify();
}

rd_kafka_resp_err_t StateWriter::poll() {
  if (client_) rd_kafka_poll(client_.get(), 0);
  for (const auto& [id, error] : std::exchange(refused_, {})) answer(id, error);
  if (!client_) return RD_KAFKA_RESP_ERR_NO_ERROR;
  char why[256] = "";
  const auto error = rd_kafka_fatal_error(client_.get(), why, sizeof why);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return error;
  // A producer in this state writes nothing any more. The next write makes a new one, with a new producer id.
  log::warn("the writer of the state topic begins anew", {{"reason", why}});
  give_up(error);
  return error;
}

void StateWriter::give_up(rd_kafka_resp_err_t error) {
  close();
  for (const auto& [id, since] : std::map(under_way_)) answer(id, error);
  refused_.clear();
}

rd_kafka_resp_err_t StateWriter::cause_of(rd_kafka_resp_err_t error) const {
  return error == RD_KAFKA_RESP_ERR__FATAL && client_ ? rd_kafka_fatal_error(client_.get(), nullptr, 0) : error;
}

void StateWriter::close() {
  if (!client_) return;
  rd_kafka_purge(client_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
  topic_.reset();
  queue_.reset();
  client_.reset();
}

void StateWriter::answer(std::uint64_t id, rd_kafka_resp_err_t error) {
  if (under_way_.erase(id) != 0) on_answer_(id, cause_of(error));
}

StateWriter::Clock::duration StateWriter::oldest(Clock::time_point now) const {
  return under_way_.empty() ? Clock::duration::zero() : now - under_way_.begin()->second;
}

}  // namespace proxy
