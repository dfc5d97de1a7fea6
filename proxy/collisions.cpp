#include "proxy/collisions.hpp"

#include <chrono>

#include "proxy/state_store.hpp"

namespace proxy {
namespace {

constexpr std::size_t questions_max = 1024;
constexpr std::size_t described_max = 4096;

mapping::Time now() {
  return std::chrono::floor<mapping::Duration>(std::chrono::system_clock::now());
}

// The id that keeps a broker from asking its transaction coordinator about the batch: a negative one.
mapping::Decision deferred(const mapping::Decision& decision) {
  return {mapping::Action::defer, decision.pid};
}

Deferral deferral_of(mapping::Hindrance hindrance) {
  return static_cast<Deferral>(static_cast<int>(Deferral::chained_slot_held) + static_cast<int>(hindrance));
}

std::string bytes_of(const BatchPlace& place) {
  if (!place.topic_id) return std::string(place.topic_name);
  const auto& bytes = place.topic_id->bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string_view describe(Deferral deferral) {
  switch (deferral) {
    case Deferral::none: return "none";
    case Deferral::no_topic_id: return "the topic's id is not known yet";
    case Deferral::no_record: return "its salt is not written yet";
    case Deferral::behind_another: return "an earlier batch of its producer comes first";
    case Deferral::chained_slot_held: return "a chained id whose slot another producer holds";
  }
  const int hindrance = static_cast<int>(deferral) - static_cast<int>(Deferral::chained_slot_held);
  return describe(static_cast<mapping::Hindrance>(hindrance));
}

Collisions::Outcome Collisions::refine(const mapping::Decision& decision, const Batch& batch, const BatchPlace& place) {
  if (place.topic_id ? shared_.state_topic.is(*place.topic_id) : shared_.state_topic.is(place.topic_name))
    return {{mapping::Action::refuse, decision.pid, mapping::Refusal::state_topic}};
  auto outcome = judge(decision, batch.pid, place);
  const auto action = outcome.decision.action;
  if (waiting_.is_empty() || action == mapping::Action::defer || action == mapping::Action::refuse) return outcome;
  const WaitingBatches::Producer producer{bytes_of(place), place.partition, batch.pid};
  if (!waiting_.is_behind_another(producer, {batch.epoch, batch.sequence}, WaitingBatches::Clock::now()))
    return outcome;
  return {deferred(decision), Deferral::behind_another};
}

bool Collisions::sent(const Outcome& outcome, const Batch& batch, const std::string& topic, std::int32_t partition) {
  const bool is_deferred = outcome.decision.action == mapping::Action::defer;
  if (!is_deferred && waiting_.is_empty()) return true;
  const WaitingBatches::Producer producer{topic, partition, batch.pid};
  const WaitingBatches::Batch entry{batch.epoch, batch.sequence};
  if (is_deferred) return waiting_.add(producer, entry, WaitingBatches::Clock::now());
  waiting_.remove(producer, entry);
  return true;
}

void Collisions::request_work(const mapping::Identity& identity) {
  shared_.store.request_work(identity);
}

Collisions::Outcome Collisions::judge(const mapping::Decision& decision, mapping::ProducerId pid,
                                      const BatchPlace& place) {
  const bool is_chained = decision.action == mapping::Action::pass && pid != mapping::no_producer_id;
  if (is_chained) return judge_chained(decision, pid, place);
  const bool cannot_be_natural = decision.refusal == mapping::Refusal::is_no_producer_id || decision.is_possible_alias;
  const bool is_mapped = decision.action == mapping::Action::map || cannot_be_natural;
  if (!is_mapped || (!cannot_be_natural && shared_.state.is_undisputed(source_))) return {decision};

  const auto topic_id = topic_id_of(place);
  if (!topic_id) return {deferred(decision), Deferral::no_topic_id};
  const mapping::Identity identity{source_, *topic_id, place.partition, pid};
  const auto verdict = shared_.state.decide(identity, now(), last_);
  using Kind = mapping::Verdict::Kind;
  if (verdict.needs_refresh) request_work(identity);
  if (verdict.kind == Kind::natural || verdict.kind == Kind::salted) return {{mapping::Action::map, verdict.mapped}};
  if (verdict.kind == Kind::needs_work) return {deferred(decision), Deferral::no_record, false, false, identity};
  if (!is_retriable(verdict.hindrance))
    return {{mapping::Action::refuse, decision.pid, mapping::Refusal::no_salt_left}};
  return {deferred(decision), deferral_of(verdict.hindrance)};
}

Collisions::Outcome Collisions::judge_chained(const mapping::Decision& decision, mapping::ProducerId pid,
                                              const BatchPlace& place) {
  const auto topic_id = topic_id_of(place);
  if (!topic_id && shared_.state.holds_nothing()) return {decision};  // it meets nobody, wherever it goes
  if (!topic_id) return {deferred(decision), Deferral::no_topic_id};
  const auto seen = shared_.state.see_chained(*topic_id, place.partition, pid);
  switch (seen.kind) {
    case mapping::Chained::passes: return {decision};
    case mapping::Chained::shared: return {decision, Deferral::none, true, seen.is_first};
    case mapping::Chained::refused: break;
  }
  return {deferred(decision), Deferral::chained_slot_held};
}

bool Collisions::needs_topic_id(mapping::ProducerId pid) const {
  if (pid == mapping::no_producer_id || mapping::mark::is_on(pid)) return false;
  if (pid.value < 0) return !shared_.state.holds_nothing();
  // The last one may be the one that would become -1.
  return pid.value >= mapping::layout::producer_max || !shared_.state.is_undisputed(source_);
}

bool Collisions::knows(const BatchPlace& place) {
  const auto id = topic_id_of(place);
  if (id && described_.contains(*id)) {
    if (!place.topic_id) topics_of_request_.insert_or_assign(std::string(place.topic_name), *id);
    return true;
  }
  has_asked_ = true;
  if (!place.topic_id)
    ask(place.topic_name);
  else if (questions_.ids.size() < questions_max)
    questions_.ids.insert(*place.topic_id);
  return false;
}

std::optional<mapping::TopicId> Collisions::topic_id_of(const BatchPlace& place) {
  if (place.topic_id) return place.topic_id;
  if (const auto known = topics_of_request_.find(place.topic_name); known != topics_of_request_.end())
    return known->second;
  const auto at = TopicIds::Clock::now();
  const auto changes = shared_.topic_ids.changes();
  const bool is_same = place.topic_name == last_topic_ && changes == last_changes_;
  if (!is_same || !last_topic_id_ || last_topic_id_->is_stale(at)) {
    last_topic_ = place.topic_name;
    last_changes_ = changes;
    last_topic_id_ = shared_.topic_ids.find(place.topic_name, at);
    if (!last_topic_id_ || last_topic_id_->is_stale(at)) ask(place.topic_name);
  }
  if (!last_topic_id_) return std::nullopt;
  return last_topic_id_->id;
}

void Collisions::ask(std::string_view topic_name) {
  if (questions_.names.size() < questions_max) questions_.names.emplace(topic_name);
  has_asked_ = true;
}

void Collisions::learn(std::string_view topic_name, const mapping::TopicId& id) {
  if (id == mapping::TopicId{}) return;
  if (shared_.state_topic.is(topic_name)) shared_.state_topic.learn(id);
  if (!has_asked_ && shared_.state.is_undisputed(source_)) return;
  shared_.topic_ids.learn(topic_name, id, TopicIds::Clock::now());
  if (!has_asked_) return;
  if (described_.size() >= described_max) described_.clear();
  described_.insert(id);
}

void Collisions::saw_name_alone(std::string_view topic_name) {
  if (shared_.state.is_undisputed(source_)) return;
  shared_.topic_ids.forget(topic_name);
  ask(topic_name);
}

}  // namespace proxy
