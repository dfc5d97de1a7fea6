#include "mapping/assignments.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "mapping/salt.hpp"

namespace mapping {

// One question about a claim asks about earlier ones, and these about yet earlier ones: what was answered once is kept,
// or the work would double with every claim.
struct Assignments::Question {
  const Disregard* disregard;
  struct Answer {
    const Claim* claim;
    bool holds;
  };
  std::vector<Answer> answers;

  bool disregards(const Claim& claim) const {
    return disregard && claim.key == disregard->key && claim.time <= disregard->claims_until;
  }
};

std::uint64_t Assignments::hash(const IdentityKey& key) {
  return mix(mix(std::uint64_t{key.place} << 32 | key.source) + static_cast<std::uint64_t>(key.pid.value));
}

std::uint64_t Assignments::hash(const Slot& slot) {
  return mix(mix(slot.place) + static_cast<std::uint64_t>(slot.mapped.value));
}

std::uint64_t Assignments::hash(const Nonce& nonce) {
  std::uint64_t halves[2];
  std::memcpy(halves, nonce.bytes.data(), sizeof halves);
  return mix(mix(halves[0]) + halves[1]);
}

// ---- The log

bool Assignments::add_registration(const Registered& registered) {
  if (const auto* first = registration_of(registered.source)) return first->region == registered.region;
  registered_.push_back(registered);
  const auto is_known = [&](const Natural& natural) { return natural.region == registered.region; };
  if (std::ranges::any_of(naturals_, is_known)) return true;
  Natural natural{registered.region, 0};
  each_record([&](const Record& record) { natural.held += record.region == natural.region; });
  each_claim([&](const Claim& claim) { natural.held += claim.region == natural.region; });
  naturals_.push_back(natural);
  return true;
}

void Assignments::count(Region region, int difference) {
  for (auto& natural : naturals_)
    if (natural.region == region) natural.held += static_cast<std::size_t>(difference);
}

Region Assignments::salted_region(const IdentityKey& key, std::int64_t salt) const {
  const auto* registered = registration_of(key.source);
  assert(registered);
  return salted(registered->region, salt);
}

Assignments::RecordChange Assignments::put_record(const IdentityKey& key, std::int64_t salt, SourceNumber colliding,
                                                  Time time) {
  RecordChange change{};
  if (const auto* before = record_of(key)) {
    change.before = *before;
    if (before->salt == salt) {  // a refresh, by far the most of them
      auto& record = const_cast<Record&>(*before);
      record.time = time;
      record.colliding = colliding & 0x7fffffffU;
      change.is_conflicted = record.is_conflicted;
      return change;
    }
    erase_record(key);
  }
  Record record{key, salt, time, salted_region(key, salt), colliding & 0x7fffffffU, 0};
  change.is_conflicted = has_record(record.slot());
  record.is_conflicted = change.is_conflicted;
  const auto number = record_table_.add(record);
  record_by_key_.insert(number, by_key(record_table_));
  record_by_slot_.insert(number, by_slot(record_table_));
  count(record.region, 1);
  return change;
}

void Assignments::erase_record(const IdentityKey& key) {
  record_by_key_.find(hash(key), [&](std::uint32_t number) {
    const auto record = record_table_[number];
    if (!(record.key == key)) return false;
    record_by_key_.erase(number, by_key(record_table_));
    record_by_slot_.erase(number, by_slot(record_table_));
    record_table_.erase(number);
    count(record.region, -1);
    if (!record.is_conflicted) promote(record.slot());
    return true;
  });
}

// Of several records for a slot, which this protocol never writes, another one counts now.
void Assignments::promote(const Slot& slot) {
  record_by_slot_.find(hash(slot), [&](std::uint32_t number) {
    auto& record = record_table_[number];
    if (!(record.slot() == slot)) return false;
    record.is_conflicted = 0;
    return true;
  });
}

void Assignments::put_claim(const IdentityKey& key, const Nonce& nonce, std::int64_t salt, Time time,
                            std::int64_t offset) {
  erase_claim(key.place, nonce);
  const auto region = salted_region(key, salt);
  const auto number = claim_table_.add({key, nonce, salt, time, offset, region});
  claim_by_nonce_.insert(number, by_nonce());
  claim_by_key_.insert(number, by_key(claim_table_));
  claim_by_slot_.insert(number, by_slot(claim_table_));
  count(region, 1);
}

void Assignments::erase_claim(PlaceNumber place, const Nonce& nonce) {
  claim_by_nonce_.find(hash(nonce), [&](std::uint32_t number) {
    const auto claim = claim_table_[number];
    if (claim.nonce != nonce || claim.key.place != place) return false;
    claim_by_nonce_.erase(number, by_nonce());
    claim_by_key_.erase(number, by_key(claim_table_));
    claim_by_slot_.erase(number, by_slot(claim_table_));
    claim_table_.erase(number);
    count(claim.region, -1);
    return true;
  });
}

// ---- What it says

const Assignments::Registered* Assignments::registration_of(SourceNumber source) const {
  const auto at = std::ranges::find(registered_, source, &Registered::source);
  return at == registered_.end() ? nullptr : &*at;
}

const Assignments::Registered* Assignments::owner_of(Region region) const {
  const auto at = std::ranges::find(registered_, region, &Registered::region);
  return at == registered_.end() ? nullptr : &*at;
}

const Assignments::Record* Assignments::record_of(const IdentityKey& key) const {
  const Record* found = nullptr;
  record_by_key_.find(hash(key), [&](std::uint32_t number) {
    const auto& record = record_table_[number];
    if (!(record.key == key)) return false;
    found = &record;
    return true;
  });
  return found;
}

const Assignments::Claim* Assignments::claim_of(PlaceNumber place, const Nonce& nonce) const {
  const Claim* found = nullptr;
  claim_by_nonce_.find(hash(nonce), [&](std::uint32_t number) {
    const auto& claim = claim_table_[number];
    if (claim.nonce != nonce || claim.key.place != place) return false;
    found = &claim;
    return true;
  });
  return found;
}

const Assignments::Record* Assignments::record_at(const Slot& slot, const Disregard* disregard) const {
  const Record* found = nullptr;
  record_by_slot_.find(hash(slot), [&](std::uint32_t number) {
    const auto& record = record_table_[number];
    if (!(record.slot() == slot)) return false;
    if (disregard && disregard->record && record.key == disregard->key) return false;
    found = &record;
    return true;
  });
  return found;
}

std::size_t Assignments::held_in(Region natural) const {
  const auto at = std::ranges::find(naturals_, natural, &Natural::region);
  return at == naturals_.end() ? 0 : at->held;
}

// ---- What follows

Slot Assignments::slot_of(const IdentityKey& key, std::int64_t salt) const {
  return {key.place, layout::pack(salted_region(key, salt), key.pid)};
}

std::optional<Slot> Assignments::natural_slot(const IdentityKey& key) const {
  if (key.pid.value > layout::producer_max) return std::nullopt;
  const auto* registered = registration_of(key.source);
  if (!registered || owner_of(registered->region) != registered) return std::nullopt;
  const auto mapped = layout::pack(registered->region, key.pid);
  if (mapped == no_producer_id) return std::nullopt;
  return Slot{key.place, mapped};
}

bool Assignments::holds(const Claim& claim, const Disregard* disregard) const {
  Question question{disregard, {}};
  return holds(claim, question);
}

bool Assignments::would_hold(const IdentityKey& key, std::int64_t salt, const Disregard& disregard) const {
  Question question{&disregard, {}};
  return holds({key, {}, salt, Time::max(), INT64_MAX, salted_region(key, salt)}, question);
}

bool Assignments::is_held(const Slot& slot) const {
  Question question{nullptr, {}};
  return !is_free(slot, INT64_MAX, question);
}

std::optional<SourceNumber> Assignments::holder_of(const Slot& slot) const {
  if (const auto* record = record_at(slot, nullptr)) return record->key.source;
  std::optional<SourceNumber> holder;
  any_claim_for(slot, [&](const Claim& claim) {
    if (!holds(claim)) return false;
    holder = claim.key.source;
    return true;
  });
  return holder;
}

bool Assignments::is_free(const Slot& slot, std::int64_t before_offset, Question& question) const {
  if (record_at(slot, question.disregard)) return false;
  return !any_claim_for(slot, [&](const Claim& claim) {
    return claim.offset < before_offset && !question.disregards(claim) && holds(claim, question);
  });
}

bool Assignments::holds(const Claim& claim, Question& question) const {
  for (const auto& answer : question.answers)
    if (answer.claim == &claim) return answer.holds;
  const auto decide = [&] {
    const auto* disregard = question.disregard;
    const bool ignores_record = disregard && disregard->record && disregard->key == claim.key;
    if (!ignores_record && record_of(claim.key)) return false;
    const auto* owner = owner_of(claim.region);
    if (owner && owner->offset < claim.offset) return false;
    if (!is_free(claim.slot(), claim.offset, question)) return false;
    if (const auto natural = natural_slot(claim.key); natural && is_free(*natural, claim.offset, question))
      return false;
    return !any_claim_of(claim.key, [&](const Claim& other) {
      return other.offset < claim.offset && !question.disregards(other) && holds(other, question);
    });
  };
  const bool holds = decide();
  question.answers.push_back({&claim, holds});
  return holds;
}

}  // namespace mapping
