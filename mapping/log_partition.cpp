#include "mapping/log_partition.hpp"

#include <algorithm>

#include "mapping/salt.hpp"

namespace mapping {
namespace {

constexpr std::size_t deletions_max = 1000;  // of one sweep
constexpr int sweeps_in_expiration = 16;

}  // namespace

LogPartition::LogPartition(std::int32_t number, StateContext& context)
    : number_(number),
      context_(context),
      own_sources_(context.sources.size()),
      sweep_interval_(context.settings.expiration / sweeps_in_expiration) {}

// ---- For sessions

bool LogPartition::is_held(const Slot& slot) const {
  return slots_under_way_.contains(slot) || log_.is_held(slot);
}

Hindrance LogPartition::hindrance_of(const IdentityKey& key, Situation::Kind kind, Time now) const {
  const bool is_new = kind == Situation::Kind::claim || kind == Situation::Kind::claim_again;
  if (is_frozen_ && is_new) return Hindrance::undecodable;
  const auto exhausted = exhausted_.find(key);
  return exhausted != exhausted_.end() && now < exhausted->second ? Hindrance::exhausted : Hindrance::none;
}

// ---- What the store says

void LogPartition::on_registration(SourceNumber source) {
  if (source < own_sources_.size()) own_sources_[source].is_under_way = false;
}

void LogPartition::at_end(Time now) {
  const auto reached = end_.asked;
  end_.is_under_way = false;
  if (std::exchange(end_.is_needed_again, false)) need_end();
  if (!is_loaded_) {
    is_loaded_ = true;
    // Not all proxies, nor all log partitions, at the same time.
    const auto spread = mix(context_.settings.process_nonce + static_cast<std::uint32_t>(number_));
    next_sweep_ = now + sweep_interval_ * static_cast<std::int64_t>(spread % 16) / 16;
    register_sources(now);
  }
  for (const auto& key : std::exchange(checking_, {})) {
    const auto at = works_.find(key);
    if (at == works_.end() || at->second.phase != Work::Phase::checking) continue;
    if (at->second.end <= reached)
      step(key, at->second, now, true);
    else
      checking_.push_back(key);
  }
  if (sweep_end_ != 0 && sweep_end_ <= reached) sweep(now);
}

void LogPartition::acknowledged(std::uint64_t write, const Purpose& purpose, Time now) {
  if (purpose.kind == Purpose::Kind::deletion) --deletions_;
  if (purpose.kind == Purpose::Kind::claim || purpose.kind == Purpose::Kind::record)
    work_acknowledged(write, purpose, now);
}

void LogPartition::failed(std::uint64_t write, const Purpose& purpose, Time now) {
  switch (purpose.kind) {
    case Purpose::Kind::deletion:
      --deletions_;  // a later sweep will see to it
      break;
    case Purpose::Kind::registration: {
      auto& own = own_sources_[purpose.source];
      own.is_under_way = false;
      own.until = now + pause(++own.failures);
      break;
    }
    case Purpose::Kind::claim:
    case Purpose::Kind::record: {
      const auto at = works_.find(purpose.key);
      if (at != works_.end() && at->second.write == write) finish(purpose.key, Hindrance::write_failed, now);
    }
  }
}

// One reading to the end that was commanded, and not taken by the store yet, serves all who need one.
std::uint64_t LogPartition::need_end() {
  if (end_.is_under_way && end_.is_taken) {
    end_.is_needed_again = true;
    return end_.asked + 1;
  }
  if (!end_.is_under_way) {
    end_.is_under_way = true;
    end_.is_taken = false;
    ++end_.asked;
    context_.outbox.read_to_end(number_);
  }
  return end_.asked;
}

// ---- Registrations

bool LogPartition::is_ready() const {
  if (!is_loaded_) return false;
  for (SourceNumber source = 0; source < own_sources_.size(); ++source)
    if (!log_.registration_of(source)) return false;
  return true;
}

void LogPartition::register_sources(Time now) {
  for (SourceNumber source = 0; source < own_sources_.size(); ++source) {
    auto& own = own_sources_[source];
    if (own.is_under_way || now < own.until || log_.registration_of(source)) continue;
    own.is_under_way = true;
    const auto& [cluster_id, region] = context_.sources[source];
    // A new nonce each time: the first one may be in the log all the same, and must keep its place there.
    context_.outbox.write({Purpose::Kind::registration, number_, source, {}},
                          encode(RegistrationKey{region, cluster_id, context_.nonces.next()}),
                          encode(RegistrationValue{context_.settings.partitions, now}));
  }
}

// ---- What is over

std::vector<Bytes> LogPartition::what_is_over(std::size_t count_max, Time now) const {
  std::vector<Bytes> keys;
  log_.each_claim([&](const Assignments::Claim& claim) {
    if (keys.size() >= count_max || works_.contains(claim.key) || !context_.judge.is_over(log_, claim, now)) return;
    const auto& place = context_.names.place(claim.key.place);
    keys.push_back(encode(ClaimKey{place.topic_id, place.partition, claim.nonce}));
  });
  log_.each_record([&](const Assignments::Record& record) {
    if (keys.size() >= count_max || works_.contains(record.key) || !context_.judge.is_over(log_, record, now)) return;
    keys.push_back(encode(context_.names.collision_key(record.key)));
  });
  return keys;
}

void LogPartition::sweep(Time now) {
  sweep_end_ = 0;
  auto keys = what_is_over(deletions_max, now);
  next_sweep_ = keys.size() < deletions_max ? now + sweep_interval_ : now;
  for (auto& key : keys) erase(std::move(key));
}

void LogPartition::erase(Bytes key) {
  ++deletions_;
  context_.outbox.write({Purpose::Kind::deletion, number_, 0, {}}, std::move(key), std::nullopt);
}

// ---- Time

void LogPartition::tick(Time now) {
  if (!is_loaded_) return;
  register_sources(now);
  resume_waiting(now);
  // While deletions are under way what they delete is still seen.
  if (now < next_sweep_ || sweep_end_ != 0 || deletions_ > 0) return;
  if (what_is_over(1, now).empty())
    next_sweep_ = now + sweep_interval_;
  else
    sweep_end_ = need_end();
}

Time LogPartition::next_tick() const {
  if (!is_loaded_) return Time::max();
  auto next = sweep_end_ != 0 || deletions_ > 0 ? Time::max() : next_sweep_;
  if (!waiting_.empty()) next = std::min(next, waiting_.begin()->first);
  for (SourceNumber source = 0; source < own_sources_.size(); ++source)
    if (!own_sources_[source].is_under_way && !log_.registration_of(source))
      next = std::min(next, own_sources_[source].until);
  return next;
}

}  // namespace mapping
