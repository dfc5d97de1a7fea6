#include "mapping/state.hpp"

#include <algorithm>
#include <mutex>
#include <shared_mutex>

#include "mapping/state_impl.hpp"

namespace mapping {
namespace {

// A place that nothing was written about: whatever is looked up there is not found.
constexpr PlaceNumber no_place = UINT32_MAX;

}  // namespace

std::string_view describe(Hindrance hindrance) {
  switch (hindrance) {
    case Hindrance::none: return "none";
    case Hindrance::not_loaded: return "the state topic has not been read yet";
    case Hindrance::not_registered: return "the source is not registered yet";
    case Hindrance::settling: return "a source was registered whose natural slot is held";
    case Hindrance::contested: return "an older claim stands in the way";
    case Hindrance::own_claim_old: return "an own claim is too old";
    case Hindrance::slot_conflict: return "two records hold one slot";
    case Hindrance::write_failed: return "the state topic could not be written";
    case Hindrance::busy: return "too many identities are being worked on";
    case Hindrance::undecodable: return "a record of the state topic cannot be decoded";
    case Hindrance::exhausted: return "no slot was found";
  }
  return "unknown";
}

// Both stay as they are once they are true: registrations are never deleted.
void State::Impl::note_progress() {
  if (!is_loaded_.load(std::memory_order_relaxed))
    is_loaded_.store(std::ranges::all_of(partitions_, &LogPartition::is_loaded), std::memory_order_release);
  if (!is_ready_.load(std::memory_order_relaxed))
    is_ready_.store(std::ranges::all_of(partitions_, &LogPartition::is_ready), std::memory_order_release);
}

// ---- Sessions

Verdict State::Impl::decide(const Identity& identity, Time now, LastHit& last) {
  if (last.generation == generation_.load(std::memory_order_acquire) && now < last.until && last.identity == identity)
    return last.verdict;
  if (!is_loaded_.load(std::memory_order_acquire) || is_closed_.load(std::memory_order_acquire))
    return {Verdict::Kind::not_served, no_producer_id, false, Hindrance::not_loaded};
  const Place place{identity.topic_id, identity.partition};
  const auto& partition = partition_of(place);

  const std::shared_lock guard(context_.lock);
  const auto number = context_.names.find(place);
  const IdentityKey key{number.value_or(no_place), identity.source.value, identity.pid};
  const auto situation = context_.judge.judge(partition.log(), key, now);
  last.generation = 0;
  const auto remember = [&](const Verdict& verdict, Time until) {
    last = {identity, verdict, generation_.load(std::memory_order_relaxed), until};
    return verdict;
  };
  switch (situation.kind) {
    case Situation::Kind::natural: return remember({Verdict::Kind::natural, situation.mapped}, Time::max());
    case Situation::Kind::salted:
      return remember({Verdict::Kind::salted, situation.mapped}, situation.time + context_.settings.expiration / 2);
    case Situation::Kind::refresh: return {Verdict::Kind::salted, situation.mapped, true};
    case Situation::Kind::blocked: return {Verdict::Kind::not_served, no_producer_id, false, situation.hindrance};
    default: break;
  }
  const auto hindrance = partition.hindrance_of(key, situation.kind, now);
  if (hindrance != Hindrance::none) return {Verdict::Kind::not_served, no_producer_id, false, hindrance};
  return {Verdict::Kind::needs_work};
}

State::ChainedVerdict State::Impl::see_chained(const Place& place, ProducerId value) {
  if (is_closed_.load(std::memory_order_acquire)) return {Chained::refused, false};
  auto& partition = partition_of(place);
  const auto region = layout::region_of(value);
  const auto judge = [&] {
    const auto number = context_.names.find(place);
    if (number && partition.is_held({*number, value})) return Chained::refused;
    return partition.log().owner_of(region) ? Chained::shared : Chained::passes;
  };
  {
    const std::shared_lock guard(context_.lock);
    const auto kind = judge();
    if (kind == Chained::refused || partition.has_seen(place, region) || !partition.can_add_chained())
      return {kind, false};
  }
  const std::lock_guard guard(context_.lock);
  const auto kind = judge();
  if (kind == Chained::refused || partition.has_seen(place, region)) return {kind, false};
  partition.add_chained(place, region);
  return {kind, true};
}

void State::Impl::work_on(const Identity& identity, Time now) {
  const Place place{identity.topic_id, identity.partition};
  auto number = context_.names.find(place);
  if (!number) {
    const std::lock_guard guard(context_.lock);
    number = context_.names.place(place);
  }
  holds_nothing_.store(false, std::memory_order_release);
  partition_of(place).work_on({*number, identity.source.value, identity.pid}, now);
}

// ---- State

State::State(StateSettings settings, std::vector<Source> sources)
    : impl_(std::make_unique<Impl>(settings, std::move(sources))) {}
State::~State() = default;

bool State::is_undisputed(SourceIndex source) const {
  return is_loaded() && !impl_->is_closed_.load(std::memory_order_acquire) &&
         impl_->disputes_[source.value].is_settled.load(std::memory_order_acquire);
}

Verdict State::decide(const Identity& identity, Time now, LastHit& last) const {
  return impl_->decide(identity, now, last);
}

State::ChainedVerdict State::see_chained(const TopicId& topic_id, std::int32_t partition, ProducerId value) {
  return impl_->see_chained({topic_id, partition}, value);
}

bool State::holds_nothing() const {
  return impl_->holds_nothing_.load(std::memory_order_acquire);
}

void State::close() {
  impl_->is_closed_.store(true, std::memory_order_release);
  ++impl_->generation_;  // nor what sessions remember
}

bool State::is_loaded() const {
  return impl_->is_loaded_.load(std::memory_order_acquire);
}
bool State::is_ready() const {
  return impl_->is_ready_.load(std::memory_order_acquire);
}

void State::start() {
  for (auto& partition : impl_->partitions_) partition.start();
}

Applied State::apply(std::int32_t log_partition, std::int64_t offset, ByteView key, std::optional<ByteView> value,
                     Time now) {
  return impl_->apply(log_partition, offset, decode(key, value), now);
}

void State::at_end(std::int32_t log_partition, Time now) {
  impl_->partition(log_partition).at_end(now);
  impl_->note_progress();
}

void State::acknowledged(std::uint64_t write_id, Time now) {
  if (const auto purpose = impl_->context_.outbox.answered(write_id))
    impl_->partition(purpose->log_partition).acknowledged(write_id, *purpose, now);
}

void State::failed(std::uint64_t write_id, Time now) {
  if (const auto purpose = impl_->context_.outbox.answered(write_id))
    impl_->partition(purpose->log_partition).failed(write_id, *purpose, now);
}

void State::work_on(const Identity& identity, Time now) {
  impl_->work_on(identity, now);
}

void State::tick(Time now) {
  for (auto& partition : impl_->partitions_) partition.tick(now);
}

Time State::next_tick() const {
  auto next = Time::max();
  for (const auto& partition : impl_->partitions_) next = std::min(next, partition.next_tick());
  return next;
}

std::vector<Command> State::take_commands() {
  for (auto& partition : impl_->partitions_) partition.commands_taken();
  return impl_->context_.outbox.take_commands();
}

std::vector<Finished> State::take_finished() {
  return impl_->context_.outbox.take_finished();
}

const std::vector<std::string>& State::problems() const {
  return impl_->problems_;
}

// ---- For people

std::vector<State::Salted> State::list() const {
  std::vector<Salted> all;
  const auto& names = impl_->context_.names;
  for (const auto& partition : impl_->partitions_)
    partition.log().each_record([&](const Assignments::Record& record) {
      all.push_back({names.collision_key(record.key),
                     {record.salt, names.cluster_id(record.colliding), record.time},
                     record.region});
    });
  std::ranges::sort(all, {}, &Salted::key);
  return all;
}

std::vector<State::RegisteredSource> State::registrations() const {
  std::vector<RegisteredSource> all;
  std::int32_t number = 0;
  for (const auto& partition : impl_->partitions_) {
    const auto& log = partition.log();
    for (const auto& registered : log.registered())
      all.push_back({number, registered.region, impl_->context_.names.cluster_id(registered.source),
                     log.owner_of(registered.region)->source == registered.source, registered.time});
    ++number;
  }
  return all;
}

State::Counts State::counts() const {
  Counts counts{0,
                0,
                impl_->context_.works,
                impl_->context_.lost_claims,
                impl_->unknown_types_,
                impl_->two_salts_,
                impl_->slot_conflicts_};
  for (const auto& partition : impl_->partitions_) {
    counts.records += partition.log().records();
    counts.claims += partition.log().claims();
  }
  return counts;
}

}  // namespace mapping
