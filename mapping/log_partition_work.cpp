#include <algorithm>
#include <mutex>

#include "mapping/log_partition.hpp"
#include "mapping/salt.hpp"

// The way of an identity to its slot: a claim is written, read back and on to the end; if it holds the record is
// written. After each event the log is judged anew, and the next step follows from that.
namespace mapping {
namespace {

constexpr Duration pause_min = std::chrono::milliseconds(20);
constexpr int pause_doublings_max = 8;  // about 5 s
constexpr Duration exhausted_pause = std::chrono::minutes(1);

}  // namespace

void LogPartition::work_on(const IdentityKey& key, Time now) {
  if (works_.contains(key)) return;
  if (context_.works >= context_.settings.works_max) {
    finish(key, Hindrance::busy, now);
    return;
  }
  ++context_.works;
  step(key, works_[key], now, false);
}

void LogPartition::step(const IdentityKey& key, Work& work, Time now, bool has_read_to_end) {
  const auto situation = context_.judge.judge(log_, key, now);
  switch (situation.kind) {
    case Situation::Kind::natural:
    case Situation::Kind::salted: return finish(key, Hindrance::none, now);
    case Situation::Kind::blocked: return finish(key, situation.hindrance, now);
    case Situation::Kind::refresh: return record(key, work, situation.salt, now);
    case Situation::Kind::confirm:
    case Situation::Kind::renew:
      if (!has_read_to_end) return check(key, work);
      return record(key, work, situation.salt, now);
    case Situation::Kind::claim:
    case Situation::Kind::claim_again:
      if (work.nonce) return lose(key, work, now);
      if (const auto hindrance = hindrance_of(key, situation.kind, now); hindrance != Hindrance::none)
        return finish(key, hindrance, now);
      return claim(key, work, situation, now);
  }
}

void LogPartition::check(const IdentityKey& key, Work& work) {
  work.phase = Work::Phase::checking;
  work.end = need_end();
  checking_.push_back(key);
}

void LogPartition::claim(const IdentityKey& key, Work& work, const Situation& situation, Time now) {
  if (!take_slot(key, work, situation)) {
    note_exhausted(key, now);
    return finish(key, Hindrance::exhausted, now);
  }
  if (!context_.settings.protocol.claims) return record(key, work, work.salt, now);
  work.phase = Work::Phase::claiming;
  work.nonce = context_.nonces.next();
  const auto identity = context_.names.collision_key(key);
  work.write = context_.outbox.write(
      {Purpose::Kind::claim, number_, 0, key}, encode(ClaimKey{identity.topic_id, identity.partition, *work.nonce}),
      encode(ClaimValue{identity.source_cluster_id, identity.original_pid, work.salt, now}));
}

// So that its client hears of an error, and not of a retry for ever, each of which would draw all salts again.
void LogPartition::note_exhausted(const IdentityKey& key, Time now) {
  const std::lock_guard guard(context_.lock);
  if (exhausted_.size() >= exhausted_max) exhausted_.clear();
  exhausted_[key] = now + exhausted_pause;
}

// Under one lock: a chained value is seen either before the slot is drawn, and avoided, or after, and refused.
bool LogPartition::take_slot(const IdentityKey& key, Work& work, const Situation& situation) {
  const std::lock_guard guard(context_.lock);
  const auto salt = situation.kind == Situation::Kind::claim ? draw(key) : situation.salt;
  if (!salt) return false;
  work.salt = *salt;
  work.slot = log_.slot_of(key, *salt);
  slots_under_way_.insert(*work.slot);
  return true;
}

std::optional<std::int64_t> LogPartition::draw(const IdentityKey& key) const {
  const auto identity = context_.names.collision_key(key);
  for (int attempt = 0; attempt < salt_attempts_max; ++attempt) {
    const auto salt = context_.settings.protocol.draw(identity, attempt);
    if (is_possible(key, salt)) return salt;
  }
  return std::nullopt;
}

bool LogPartition::is_possible(const IdentityKey& key, std::int64_t salt) const {
  if (salt == 0) return false;
  const auto slot = log_.slot_of(key, salt);
  if (slot.mapped == no_producer_id) return false;
  const auto region = layout::region_of(slot.mapped);
  if (log_.owner_of(region) || has_seen(context_.names.place(key.place), region)) return false;
  // Also a claim that does not hold: one in front of ours may come to hold.
  return !slots_under_way_.contains(slot) && !log_.has_record(slot) &&
         !log_.any_claim_for(slot, [](const Assignments::Claim&) { return true; });
}

void LogPartition::record(const IdentityKey& key, Work& work, std::int64_t salt, Time now) {
  delete_lost_claim(key, work, now);  // when it is another's that holds
  work.phase = Work::Phase::recording;
  const auto& colliding = context_.names.cluster_id(context_.judge.colliding(log_, key));
  work.write =
      context_.outbox.write({Purpose::Kind::record, number_, 0, key}, encode(context_.names.collision_key(key)),
                            encode(CollisionValue{salt, colliding, now}));
}

void LogPartition::work_acknowledged(std::uint64_t write, const Purpose& purpose, Time now) {
  const auto at = works_.find(purpose.key);
  if (at == works_.end() || at->second.write != write) return;
  auto& work = at->second;
  if (purpose.kind == Purpose::Kind::record)
    work.phase = Work::Phase::recorded;
  else if (context_.settings.protocol.reads_back)
    check(purpose.key, work);
  else
    record(purpose.key, work, work.salt, now);
}

void LogPartition::on_record(const IdentityKey& key, Time now) {
  const auto at = works_.find(key);
  if (at == works_.end()) return;
  const auto kind = context_.judge.judge(log_, key, now).kind;
  if (kind == Situation::Kind::salted || kind == Situation::Kind::natural)
    finish(key, Hindrance::none, now);
  else if (at->second.phase == Work::Phase::recorded)
    step(key, at->second, now, false);
}

void LogPartition::lose(const IdentityKey& key, Work& work, Time now) {
  ++context_.lost_claims;
  delete_lost_claim(key, work, now);
  release(work);
  work.nonce.reset();
  work.phase = Work::Phase::waiting;
  work.until = now + pause(++work.losses);
  waiting_.emplace(work.until, key);
}

void LogPartition::resume_waiting(Time now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const auto key = waiting_.extract(waiting_.begin()).mapped();
    const auto at = works_.find(key);
    if (at != works_.end() && at->second.phase == Work::Phase::waiting && at->second.until <= now)
      step(key, at->second, now, false);
  }
}

void LogPartition::finish(const IdentityKey& key, Hindrance hindrance, Time now) {
  const auto& place = context_.names.place(key.place);
  context_.outbox.finish({{key.source}, place.topic_id, place.partition, key.pid}, hindrance);
  const auto at = works_.find(key);
  if (at == works_.end()) return;
  delete_lost_claim(key, at->second, now);
  release(at->second);
  works_.erase(at);
  --context_.works;
}

void LogPartition::delete_lost_claim(const IdentityKey& key, Work& work, Time now) {
  if (work.nonce && delete_if_lost(key, *work.nonce, now)) work.nonce.reset();
}

bool LogPartition::delete_if_lost(const IdentityKey& key, const Nonce& nonce, Time now) {
  const auto* claim = log_.claim_of(key.place, nonce);
  if (!claim || !context_.judge.is_lost(log_, *claim, now)) return false;
  const auto& place = context_.names.place(key.place);
  erase(encode(ClaimKey{place.topic_id, place.partition, nonce}));
  return true;
}

// One of ours that is read when its work has ended without it.
void LogPartition::on_claim(const IdentityKey& key, const Nonce& nonce, Time now) {
  if (!context_.judge.is_own(nonce)) return;
  const auto at = works_.find(key);
  if (at == works_.end() || at->second.nonce != nonce) delete_if_lost(key, nonce, now);
}

void LogPartition::release(Work& work) {
  if (!work.slot) return;
  const std::lock_guard guard(context_.lock);
  slots_under_way_.erase(*work.slot);
  work.slot.reset();
}

// Doubling, and not the same on two proxies.
Duration LogPartition::pause(int failures) const {
  const auto longest = pause_min * (1 << std::min(failures, pause_doublings_max));
  const auto part =
      mix(context_.settings.process_nonce + context_.lost_claims + static_cast<unsigned>(failures)) % 1024;
  return longest / 2 + longest * static_cast<std::int64_t>(part) / 2048;
}

}  // namespace mapping
