#include <algorithm>
#include <mutex>

#include "mapping/state_impl.hpp"

// How what is read from the log changes the state.
namespace mapping {

Applied State::Impl::apply(std::int32_t log_partition, std::int64_t offset, const Decoded& decoded, Time now) {
  auto& at = partition(log_partition);
  if (const auto* unknown = std::get_if<UnknownType>(&decoded)) {
    ++unknown_types_;
    return {Applied::Kind::skipped, "type " + std::to_string(unknown->type)};
  }
  if (const auto* undecodable = std::get_if<Undecodable>(&decoded)) {
    // Whose slot it is about nobody knows, so none is given out here any more.
    const std::lock_guard guard(context_.lock);
    at.freeze();
    return {Applied::Kind::undecodable, undecodable->reason};
  }
  if (const auto* registration = std::get_if<Registration>(&decoded)) return apply(at, offset, *registration);
  const auto held = at.held();
  auto applied = std::holds_alternative<Claim>(decoded) ? apply(at, offset, std::get<Claim>(decoded), now)
                                                        : apply(at, std::get<Collision>(decoded), now);
  note_held(at, held);
  return applied;
}

void State::Impl::note_held(const LogPartition& partition, std::uint64_t before) {
  held_ += partition.held() - before;
  holds_nothing_.store(held_ == 0 && context_.works == 0, std::memory_order_release);
}

// Once, and not for each log partition.
void State::Impl::note_problem(std::string problem) {
  if (std::ranges::find(problems_, problem) == problems_.end()) problems_.push_back(std::move(problem));
}

Applied State::Impl::apply(LogPartition& partition, std::int64_t offset, const Registration& registration) {
  const auto& [key, value] = registration;
  if (!value) return refuse("a registration was deleted");
  if (value->partitions != context_.settings.partitions) {
    note_problem("the state topic had " + std::to_string(value->partitions) + " partitions when " +
                 key.source_cluster_id + " was registered, and has " + std::to_string(context_.settings.partitions) +
                 " now: their number must never change");
    return refuse(problems_.back());
  }
  SourceNumber source = 0;
  Region first{};
  {
    const std::lock_guard guard(context_.lock);
    source = context_.names.source(key.source_cluster_id);
    partition.log_under_lock().add_registration({source, key.region, offset, value->timestamp});
    first = partition.log().registration_of(source)->region;
    ++generation_;
  }
  partition.on_registration(source);
  note_progress();
  settle_disputes(partition);
  if (source < context_.sources.size() && context_.sources[source].region != first)
    note_problem("the source " + key.source_cluster_id + " is registered with region " + std::to_string(first.value) +
                 " and configured with " + std::to_string(context_.sources[source].region.value) +
                 ": a source's region never changes");
  if (first != key.region) return refuse(key.source_cluster_id + " is registered with another region before");
  return {};
}

// Registrations come before whatever is said about a source, and stay.
std::optional<SourceNumber> State::Impl::registered(const LogPartition& partition, std::string_view cluster_id) const {
  const auto source = context_.names.find_source(cluster_id);
  return source && partition.log().registration_of(*source) ? source : std::nullopt;
}

Applied State::Impl::apply(LogPartition& partition, const Collision& collision, Time now) {
  const auto& [key, value] = collision;
  const Place place{key.topic_id, key.partition};
  if (&partition_of(place) != &partition) return refuse("a record that belongs into another log partition");
  const auto source = registered(partition, key.source_cluster_id);
  if (!source) return refuse("a record of a source that is not registered before it: " + key.source_cluster_id);
  if (key.original_pid.value < 0) return refuse("a record of a negative producer id");
  if (value && value->salt == 0) return refuse("a record with salt 0, which is none");

  Assignments::RecordChange change{};
  IdentityKey identity{};
  {
    const std::lock_guard guard(context_.lock);
    auto& log = partition.log_under_lock();
    identity = {context_.names.place(place), *source, key.original_pid};
    if (value)
      change =
          log.put_record(identity, value->salt, context_.names.source(value->colliding_cluster_id), value->timestamp);
    else
      log.erase_record(identity);
    ++generation_;
  }
  if (value) {
    const auto& before = change.before;
    slot_conflicts_ += change.is_conflicted;
    two_salts_ +=
        before && before->salt != value->salt && value->timestamp - before->time < context_.settings.expiration;
  }
  partition.on_record(identity, now);
  settle_disputes(partition);
  return {};
}

Applied State::Impl::apply(LogPartition& partition, std::int64_t offset, const Claim& claim, Time now) {
  const auto& [key, value] = claim;
  const Place place{key.topic_id, key.partition};
  if (&partition_of(place) != &partition) return refuse("a claim that belongs into another log partition");
  if (value) {
    const auto source = registered(partition, value->source_cluster_id);
    if (!source) return refuse("a claim of a source that is not registered before it: " + value->source_cluster_id);
    if (value->original_pid.value < 0) return refuse("a claim of a negative producer id");
    if (value->salt == 0) return refuse("a claim with salt 0, which is none");
    IdentityKey identity{};
    {
      const std::lock_guard guard(context_.lock);
      identity = {context_.names.place(place), *source, value->original_pid};
      partition.log_under_lock().put_claim(identity, key.nonce, value->salt, value->timestamp, offset);
      ++generation_;
    }
    partition.on_claim(identity, key.nonce, now);
  } else {
    const std::lock_guard guard(context_.lock);
    if (const auto number = context_.names.find(place)) partition.log_under_lock().erase_claim(*number, key.nonce);
    ++generation_;
  }
  settle_disputes(partition);
  return {};
}

void State::Impl::settle_disputes(LogPartition& partition) {
  for (SourceNumber source = 0; source < disputes_.size(); ++source) {
    auto& dispute = disputes_[source];
    const auto region = context_.sources[source].region;
    const auto* owner = partition.log().owner_of(region);
    const bool is_undisputed = owner && owner->source == source && partition.log().held_in(region) == 0;
    if (dispute.is_undisputed_in[partition.number()] == is_undisputed) continue;
    dispute.is_undisputed_in[partition.number()] = is_undisputed;
    dispute.left += is_undisputed ? -1 : 1;
    dispute.is_settled.store(dispute.left == 0, std::memory_order_release);
  }
}

}  // namespace mapping
