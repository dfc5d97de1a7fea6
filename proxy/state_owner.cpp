#include "proxy/state_owner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "proxy/state_refusal.hpp"

namespace proxy {
namespace {

constexpr int records_at_a_time = 1000;
constexpr std::chrono::seconds report_interval{1};
constexpr std::chrono::seconds patience_interval{10};  // between two lines about a start that takes long
constexpr std::chrono::seconds slow{1};                // a write that takes longer is worth a line

mapping::Time now() {
  return std::chrono::floor<mapping::Duration>(std::chrono::system_clock::now());
}

template <typename Duration>
std::string in_milliseconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

std::string StateOwner::open() {
  StateReader::Events events;
  events.record = [this](auto partition, auto offset, auto key, auto value) {
    on_record(partition, offset, key, value);
  };
  events.end = [this](auto partition) { state_.at_end(partition, now()); };
  events.error = [this](auto partition, auto offset, auto error, const auto& text) {
    on_read_error(partition, offset, error, text);
  };
  events.lost = [this](auto partition) { on_lost(partition); };
  events.gone = [this] {
    fail(fmt::format(
        "the state topic '{}' does not exist any more: what is known from it no longer holds; start again, and "
        "producers that had salts get new ones, unless it is restored before",
        config_.topic));
  };
  std::string error;
  reader_ = StateReader::make(destination_, config_.topic, config_.partitions, wake_, std::move(events), error);
  if (!reader_) return error;
  writer_ =
      StateWriter::make(destination_, config_, wake_, [this](auto id, auto result) { on_written(id, result); }, error);
  return error;
}

std::string StateOwner::run(const std::atomic<bool>& is_stopping) {
  begin_ = Clock::now();
  next_patience_ = begin_ + patience_interval;
  if (auto error = open(); !error.empty()) return error;
  state_.start();
  while (!is_stopping && failure_.empty()) {
    carry_out();
    const bool has_more = reader_->poll(records_at_a_time);
    look_at_writer(writer_->poll());
    for (const auto& identity : calls_.take_requests()) state_.work_on(identity, now());
    if (now() >= state_.next_tick()) state_.tick(now());
    carry_out();
    take_finished();
    look_at_problems();
    if (!is_started_) look_at_start();
    if (Clock::now() >= next_report_) report();
    if (has_more) continue;
    const auto until_tick = std::max(state_.next_tick() - now(), mapping::Duration::zero());
    wake_.wait(std::min<mapping::Duration>(until_tick, report_interval));
  }
  writer_->give_up(RD_KAFKA_RESP_ERR__DESTROY);
  return failure_;
}

// What was served until now was right; from here on nothing is known.
void StateOwner::fail(std::string failure) {
  state_.close();
  if (failure_.empty()) failure_ = std::move(failure);
}

// ---- What is read

void StateOwner::on_record(std::int32_t partition, std::int64_t offset, mapping::ByteView key,
                           std::optional<mapping::ByteView> value) {
  ++status_.records_read;
  const auto applied = state_.apply(partition, offset, key, value, now());
  if (applied.kind == mapping::Applied::Kind::applied || applied.kind == mapping::Applied::Kind::skipped) return;
  const bool is_undecodable = applied.kind == mapping::Applied::Kind::undecodable;
  if (is_undecodable && !is_started_)
    return fail(fmt::format(
        "the record at offset {} of partition {} of the state topic '{}' cannot be decoded ({}): a newer mirrorpid "
        "wrote it, then run that version everywhere; or something else did, then keep it from this topic (ACLs) and "
        "give mirrorpid one of its own with `state.topic`",
        offset, partition, config_.topic, applied.reason));
  refused_records_.write(is_undecodable ? log::Level::error : log::Level::warn,
                         is_undecodable ? "a record of the state topic cannot be decoded: no new salt is given out in "
                                          "its partition; run the newest mirrorpid everywhere"
                                        : "a record of the state topic is left out",
                         {{"topic", config_.topic},
                          {"partition", std::to_string(partition)},
                          {"offset", std::to_string(offset)},
                          {"reason", applied.reason}});
}

void StateOwner::on_read_error(std::int32_t partition, std::int64_t offset, rd_kafka_resp_err_t error,
                               const std::string& text) {
  if (partition < 0) {  // a connection; one that is lost is made again
    const bool matters =
        error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || !explain_login_failure(error, text, destination_).empty();
    if (!matters) return log::debug("the reader of the state topic", {{"reason", text}});
  } else if (!is_started_) {
    if (auto sentence = explain_refusal(StateOperation::read, error, config_.topic); !sentence.empty())
      return fail(std::move(sentence));
    if (error == RD_KAFKA_RESP_ERR__BAD_MSG)
      return fail(
          fmt::format("partition {} of the state topic '{}' cannot be read at offset {} ({}): what stands there is "
                      "damaged; let the leader restore it from another replica",
                      partition, config_.topic, offset, text));
  }
  last_read_error_ = text;
  read_errors_.write(log::Level::warn, "the state topic cannot be read; trying on",
                     {{"topic", config_.topic}, {"partition", std::to_string(partition)}, {"reason", text}});
}

void StateOwner::on_lost(std::int32_t partition) {
  fail(fmt::format(
      "partition {} of the state topic '{}' is shorter than what was read of it: the topic was made anew, or a "
      "leader elected that lacked records. What is known from it no longer holds: start every mirrorpid again",
      partition, config_.topic));
}

// ---- What is written

void StateOwner::on_written(std::uint64_t id, rd_kafka_resp_err_t error) {
  ++status_.writes;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (std::exchange(is_failing_, false)) log::info("the state topic is written again", {{"topic", config_.topic}});
    return state_.acknowledged(id, now());
  }
  ++status_.writes_failed;
  state_.failed(id, now());
  if (error == RD_KAFKA_RESP_ERR__DESTROY) return;
  is_failing_ = true;
  const auto sentence = explain_refusal(StateOperation::write, error, config_.topic);
  write_errors_.write(log::Level::error, "the state topic cannot be written; what needs a salt is refused until it can",
                      {{"topic", config_.topic}, {"reason", sentence.empty() ? rd_kafka_err2str(error) : sentence}});
  look_at_writer(error);
}

// Also before anything is to be written: that it may not be is better said at the start.
void StateOwner::look_at_writer(rd_kafka_resp_err_t error) {
  if (is_started_ || error == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  if (auto sentence = explain_refusal(StateOperation::write, error, config_.topic); !sentence.empty())
    fail(std::move(sentence));
}

void StateOwner::carry_out() {
  for (const auto& command : state_.take_commands()) {
    if (const auto* write = std::get_if<mapping::Write>(&command))
      writer_->write(*write);
    else
      reader_->read_to_end(std::get<mapping::ReadToEnd>(command).log_partition);
  }
}

void StateOwner::take_finished() {
  for (const auto& [identity, hindrance] : state_.take_finished()) {
    ++status_.works_by_hindrance[static_cast<std::size_t>(hindrance)];
    if (hindrance == mapping::Hindrance::none) continue;
    unserved_.write(log::Level::warn, "a producer has no salt",
                    {{"reason", std::string(describe(hindrance))},
                     {"source", cluster_ids_[identity.source.value]},
                     {"topic_id", identity.topic_id.text()},
                     {"partition", std::to_string(identity.partition)},
                     {"producer_id", std::to_string(identity.pid.value)}});
  }
}

// ---- How it is going

void StateOwner::look_at_problems() {
  const auto& problems = state_.problems();
  if (problems_said_ == problems.size()) return;
  if (!is_started_) return fail(problems.front());
  // The same in most partitions.
  log::error("the state topic and the configuration do not agree", {{"reason", problems[problems_said_]}});
  problems_said_ = problems.size();
}

void StateOwner::look_at_start() {
  const auto at = Clock::now();
  if (state_.is_ready()) {
    is_started_ = true;
    log::info("the state topic is loaded", {{"topic", config_.topic},
                                            {"records", std::to_string(status_.records_read)},
                                            {"salted", std::to_string(state_.counts().records)},
                                            {"milliseconds", in_milliseconds(at - begin_)}});
    report();
    calls_.started();
  } else if (at >= next_patience_) {
    next_patience_ = at + patience_interval;
    log::warn("the state topic is not loaded yet; nothing is served until it is",
              {{"topic", config_.topic},
               {"records", std::to_string(status_.records_read)},
               {"seconds", std::to_string(std::chrono::floor<std::chrono::seconds>(at - begin_).count())},
               {"writes_under_way", std::to_string(writer_->under_way())},
               {"last_error", last_read_error_}});
  }
}

void StateOwner::report() {
  const auto at = Clock::now();
  next_report_ = at + report_interval;
  const auto oldest = writer_->oldest(at);
  if (oldest > slow && !std::exchange(is_slow_, true))
    log::warn("the state topic is slow: what needs a salt is refused meanwhile",
              {{"topic", config_.topic},
               {"writes", std::to_string(writer_->under_way())},
               {"milliseconds", in_milliseconds(oldest)}});
  if (oldest <= slow) is_slow_ = false;
  const auto before = status_.counts;
  status_.counts = state_.counts();
  status_.is_ready = is_started_;
  status_.writes_under_way = writer_->under_way();
  status_.oldest_write = std::chrono::duration_cast<std::chrono::milliseconds>(oldest);
  if (status_.counts.lost_claims != before.lost_claims)
    log::info("claims were lost to others, and other salts are tried",
              {{"claims", std::to_string(status_.counts.lost_claims - before.lost_claims)}});
  if (status_.counts.two_salts != before.two_salts)
    log::error("a producer in use was given another salt",
               {{"producers", std::to_string(status_.counts.two_salts - before.two_salts)}});
  if (status_.counts.slot_conflicts != before.slot_conflicts)
    log::error("two producers were given one id; the one that is written last is not served",
               {{"producers", std::to_string(status_.counts.slot_conflicts - before.slot_conflicts)}});
  calls_.report(status_);
}

}  // namespace proxy
