#include "proxy/collisions.hpp"

#include <chrono>

#include "proxy/state_store.hpp"

namespace proxy {
namespace {

constexpr std::size_t topics_to_ask_max = 1024;

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

}  // namespace

std::string_view describe(Deferral deferral) {
  switch (deferral) {
    case Deferral::none: return "none";
    case Deferral::no_topic_id: return "the topic's id is not known yet";
    case Deferral::no_record: return "its salt is not written yet";
    case Deferral::chained_slot_held: return "a chained id whose slot another producer holds";
  }
  const int hindrance = static_cast<int>(deferral) - static_cast<int>(Deferral::chained_slot_held);
  return describe(static_cast<mapping::Hindrance>(hindrance));
}

Collisions::Outcome Collisions::refine(const mapping::Decision& decision, mapping::ProducerId pid,
                                       const BatchPlace& place) {
  const bool is_chained = decision.action == mapping::Action::pass && pid != mapping::no_producer_id;
  if (is_chained) return refine_chained(decision, pid, place);
  const bool cannot_be_natural = decision.refusal == mapping::Refusal::is_no_producer_id || decision.is_possible_alias;
  const bool is_mapped = decision.action == mapping::Action::map || cannot_be_natural;
  if (!is_mapped || (!cannot_be_natural && shared_.state.is_undisputed(source_))) return {decision};

  const auto topic_id = topic_id_of(place);
  if (!topic_id) return {deferred(decision), Deferral::no_topic_id};
  const mapping::Identity identity{source_, *topic_id, place.partition, pid};
  const auto verdict = shared_.state.decide(identity, now(), last_);
  using Kind = mapping::Verdict::Kind;
  if (verdict.kind == Kind::needs_work || verdict.needs_refresh) shared_.store.request_work(identity);
  if (verdict.kind == Kind::natural || verdict.kind == Kind::salted) return {{mapping::Action::map, verdict.mapped}};
  if (verdict.kind == Kind::needs_work) return {deferred(decision), Deferral::no_record};
  if (!is_retriable(verdict.hindrance))
    return {{mapping::Action::refuse, decision.pid, mapping::Refusal::no_salt_left}};
  return {deferred(decision), deferral_of(verdict.hindrance)};
}

Collisions::Outcome Collisions::refine_chained(const mapping::Decision& decision, mapping::ProducerId pid,
                                               const BatchPlace& place) {
  const auto topic_id = topic_id_of(place);
  if (!topic_id) return {deferred(decision), Deferral::no_topic_id};
  const auto seen = shared_.state.see_chained(*topic_id, place.partition, pid);
  switch (seen.kind) {
    case mapping::Chained::passes: return {decision};
    case mapping::Chained::shared: return {decision, Deferral::none, true, seen.is_first};
    case mapping::Chained::refused: break;
  }
  return {deferred(decision), Deferral::chained_slot_held};
}

std::optional<mapping::TopicId> Collisions::topic_id_of(const BatchPlace& place) {
  if (place.topic_id) return place.topic_id;
  const auto found = shared_.topic_ids.find(place.topic_name, TopicIds::Clock::now());
  if ((!found || found->is_stale) && topics_to_ask_.size() < topics_to_ask_max)
    topics_to_ask_.emplace(place.topic_name);
  if (!found) return std::nullopt;
  return found->id;
}

void Collisions::learn(std::string_view topic_name, const mapping::TopicId& id) {
  if (id != mapping::TopicId{}) shared_.topic_ids.learn(topic_name, id, TopicIds::Clock::now());
}

void Collisions::saw_name_alone(std::string_view topic_name) {
  if (!shared_.state.is_undisputed(source_) && topics_to_ask_.size() < topics_to_ask_max)
    topics_to_ask_.emplace(topic_name);
}

}  // namespace proxy
