#include "mapping/situation.hpp"

#include <optional>

#include "mapping/nonces.hpp"

namespace mapping {
namespace {

using Kind = Situation::Kind;

Situation blocked(Hindrance hindrance) {
  return {Kind::blocked, no_producer_id, 0, {}, hindrance};
}

}  // namespace

bool Judge::is_own(const Nonce& nonce) const {
  return Nonces::is_of(nonce, settings_.process_nonce);
}

bool Judge::can_act_on(const Assignments::Claim& claim, Time now) const {
  return now - claim.time < (is_own(claim.nonce) ? ages_.own_claim_last_use : ages_.last_use);
}

Assignments::Disregard Judge::what_is_old(const IdentityKey& key, Time now) const {
  return {key, true, now - ages_.last_use};
}

Situation Judge::judge(const Assignments& log, const IdentityKey& key, Time now) const {
  const auto* registered = log.registration_of(key.source);
  if (!registered) return blocked(Hindrance::not_registered);
  if (const auto* record = log.record_of(key)) return judge_record(log, *record, now);
  if (const auto natural = log.natural_slot(key)) {
    if (!log.is_held(*natural)) return {Kind::natural, natural->mapped};
    if (now - registered->time < ages_.settling) return blocked(Hindrance::settling);
  }
  return judge_claims(log, key, now);
}

Situation Judge::judge_record(const Assignments& log, const Assignments::Record& record, Time now) const {
  if (record.is_conflicted)
    return settings_.protocol.claims ? blocked(Hindrance::slot_conflict) : Situation{Kind::claim};
  const auto age = now - record.time;
  const auto mapped = record.slot().mapped;
  if (age < ages_.refresh) return {Kind::salted, mapped, record.salt, record.time};
  if (age < ages_.last_use) return {Kind::refresh, mapped, record.salt, record.time};
  // Too old to be used, for others may be about to delete it: a new claim must keep the slot, whatever becomes of the
  // record. Only that slot is claimed while the record stands, so that no identity changes its id within E.
  if (const auto* owner = log.owner_of(record.region)) return judge_held_natural(*owner, record.salt, now);
  const auto old = what_is_old(record.key, now);
  const bool is_claimed = log.any_claim_of(record.key, [&](const Assignments::Claim& claim) {
    return claim.salt == record.salt && can_act_on(claim, now) && log.holds(claim, &old);
  });
  if (is_claimed) return {Kind::confirm, no_producer_id, record.salt};
  if (log.would_hold(record.key, record.salt, old)) return {Kind::claim_again, no_producer_id, record.salt};
  return blocked(Hindrance::contested);
}

Situation Judge::judge_claims(const Assignments& log, const IdentityKey& key, Time now) const {
  const auto old = what_is_old(key, now);
  const Assignments::Claim* usable = nullptr;
  log.any_claim_of(key, [&](const Assignments::Claim& claim) {
    if (!can_act_on(claim, now) || !log.holds(claim, &old)) return false;
    usable = &claim;
    return true;
  });
  if (usable) return {Kind::confirm, no_producer_id, usable->salt};
  const Assignments::Claim* standing = nullptr;
  log.any_claim_of(key, [&](const Assignments::Claim& claim) {
    if (can_act_on(claim, now) || !log.holds(claim)) return false;
    standing = &claim;
    return true;
  });
  if (!standing) return {Kind::claim};
  // Nobody acts on it any more, but until it is deleted it holds its slot for this identity.
  if (const auto* owner = log.owner_of(standing->region)) return judge_held_natural(*owner, standing->salt, now);
  if (now - standing->time < ages_.last_use) return blocked(Hindrance::own_claim_old);
  if (log.would_hold(key, standing->salt, old)) return {Kind::claim_again, no_producer_id, standing->salt};
  return blocked(Hindrance::contested);
}

// No new claim could hold it, since the source is registered; so it is never given up and needs none. Before the
// registration is known everywhere somebody may still be deleting it.
Situation Judge::judge_held_natural(const Assignments::Registered& owner, std::int64_t salt, Time now) const {
  if (now - owner.time < ages_.settling) return blocked(Hindrance::settling);
  return {Kind::renew, no_producer_id, salt};
}

SourceNumber Judge::colliding(const Assignments& log, const IdentityKey& key) const {
  const auto* registered = log.registration_of(key.source);
  if (key.pid.value > layout::producer_max || !registered) return key.source;
  const auto* owner = log.owner_of(registered->region);
  if (owner->source != key.source) return owner->source;
  // The owner itself: then somebody holds its slot, or it is the slot that means -1.
  const auto natural = log.natural_slot(key);
  return natural ? log.holder_of(*natural).value_or(key.source) : key.source;
}

bool Judge::is_over(const Assignments& log, const Assignments::Record& record, Time now) const {
  if (now - record.time < ages_.record_end || log.owner_of(record.region)) return false;
  const auto any = [](const Assignments::Claim&) { return true; };
  return !log.any_claim_of(record.key, any) && !log.any_claim_for(record.slot(), any);
}

bool Judge::is_over(const Assignments& log, const Assignments::Claim& claim, Time now) const {
  const auto age = now - claim.time;
  if (age < ages_.settled_claim_end) return false;
  const auto* record = log.record_of(claim.key);
  const bool is_confirmed = record && record->salt == claim.salt && record->time >= claim.time;
  if (is_confirmed || is_void(log, claim)) return true;
  return age >= ages_.open_claim_end && !log.owner_of(claim.region);
}

bool Judge::is_lost(const Assignments& log, const Assignments::Claim& claim, Time now) const {
  const auto* record = log.record_of(claim.key);
  if (record && record->salt != claim.salt) return true;
  const auto old = what_is_old(claim.key, now);
  return !log.holds(claim, &old);
}

bool Judge::is_void(const Assignments& log, const Assignments::Claim& claim) const {
  const auto* record = log.record_of(claim.key);
  if (record && record->salt != claim.salt) return true;
  const Assignments::Disregard own_record{claim.key, true, Time::min()};
  return !log.holds(claim, record ? &own_record : nullptr);
}

}  // namespace mapping
