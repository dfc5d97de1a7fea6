#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "mapping/index_table.hpp"
#include "mapping/producer_id.hpp"
#include "mapping/state_records.hpp"

namespace mapping {

// Partitions of destination topics and cluster ids as small numbers, given by the State.
using PlaceNumber = std::uint32_t;
using SourceNumber = std::uint32_t;

struct IdentityKey {
  PlaceNumber place;
  SourceNumber source;
  ProducerId pid;
  bool operator==(const IdentityKey&) const = default;
};

// One mapped value in one destination partition.
struct Slot {
  PlaceNumber place;
  ProducerId mapped;
  bool operator==(const Slot&) const = default;
};

// What one log partition says, and what follows from it: whose a region is, which identity has which slot. A function
// of the compacted log alone; nothing here knows the time.
//
// A million salted identities, a claim standing for each, must fit in 150 MB: so entries are plain, and are found by
// tables of numbers.
class Assignments {
 public:
  // The first registration of a source here. A source's region never changes.
  struct Registered {
    SourceNumber source;
    Region region;
    std::int64_t offset;
    Time time;
  };
  struct Record {
    IdentityKey key;
    std::int64_t salt;
    Time time;
    Region region;  // salted: region'
    SourceNumber colliding : 31;
    std::uint32_t is_conflicted : 1;  // another record held the slot before: it does not count

    Slot slot() const { return {key.place, layout::pack(region, key.pid)}; }
  };
  struct Claim {
    IdentityKey key;
    Nonce nonce;
    std::int64_t salt;
    Time time;
    std::int64_t offset;
    Region region;  // salted: region'

    Slot slot() const { return {key.place, layout::pack(region, key.pid)}; }
  };

  // ---- The log, in its order.

  // Nothing when the source is registered here with another region.
  bool add_registration(const Registered& registered);
  struct RecordChange {
    std::optional<Record> before;
    bool is_conflicted;
  };
  RecordChange put_record(const IdentityKey& key, std::int64_t salt, SourceNumber colliding, Time time);
  void erase_record(const IdentityKey& key);
  void put_claim(const IdentityKey& key, const Nonce& nonce, std::int64_t salt, Time time, std::int64_t offset);
  void erase_claim(PlaceNumber place, const Nonce& nonce);

  // ---- What it says.

  const std::vector<Registered>& registered() const { return registered_; }  // in the log's order
  const Registered* registration_of(SourceNumber source) const;
  // The first registration of a region: its owner's. Null: it is nobody's natural region.
  const Registered* owner_of(Region region) const;

  const Record* record_of(const IdentityKey& key) const;
  const Claim* claim_of(PlaceNumber place, const Nonce& nonce) const;
  std::size_t records() const { return record_by_key_.size(); }
  std::size_t claims() const { return claim_by_key_.size(); }

  template <class Visit>  // visit(const Record&)
  void each_record(const Visit& visit) const;
  template <class Visit>  // visit(const Claim&)
  void each_claim(const Visit& visit) const;
  template <class Visit>  // visit(const Claim&), until it says true
  bool any_claim_of(const IdentityKey& key, const Visit& visit) const;
  template <class Visit>
  bool any_claim_for(const Slot& slot, const Visit& visit) const;

  // ---- What follows.

  Slot slot_of(const IdentityKey& key, std::int64_t salt) const;
  // The slot that belongs to an identity by rule and needs no record: an owner's, pid < 2^31, and not -1.
  std::optional<Slot> natural_slot(const IdentityKey& key) const;

  // What is left out of account when it is asked whether a claim of an identity holds: what is too old to be used.
  struct Disregard {
    IdentityKey key;
    bool record;        // that identity's record
    Time claims_until;  // ... and its claims up to this time
  };
  // Whether the claim assigns its slot to its identity: by records, then by claims in the log's order.
  bool holds(const Claim& claim, const Disregard* disregard = nullptr) const;
  // ... a claim that is written now.
  bool would_hold(const IdentityKey& key, std::int64_t salt, const Disregard& disregard) const;
  // By a record, or by a claim that holds.
  bool is_held(const Slot& slot) const;
  bool has_record(const Slot& slot) const { return record_at(slot, nullptr) != nullptr; }
  std::optional<SourceNumber> holder_of(const Slot& slot) const;
  // How many records and claims there are with a salted region that is this natural region of a registered source.
  std::size_t held_in(Region natural) const;

 private:
  struct Question;
  bool holds(const Claim& claim, Question& question) const;
  bool is_free(const Slot& slot, std::int64_t before_offset, Question& question) const;
  const Record* record_at(const Slot& slot, const Disregard* disregard) const;
  void promote(const Slot& slot);
  void count(Region region, int difference);
  Region salted_region(const IdentityKey& key, std::int64_t salt) const;

  static std::uint64_t hash(const IdentityKey& key);
  static std::uint64_t hash(const Slot& slot);
  static std::uint64_t hash(const Nonce& nonce);

  auto by_key(const auto& table) const {
    return [&](std::uint32_t number) { return hash(table[number].key); };
  }
  auto by_slot(const auto& table) const {
    return [&](std::uint32_t number) { return hash(table[number].slot()); };
  }
  auto by_nonce() const {
    return [this](std::uint32_t number) { return hash(claim_table_[number].nonce); };
  }

  struct Natural {
    Region region;
    std::size_t held;
  };
  std::vector<Registered> registered_;
  std::vector<Natural> naturals_;  // one a registered region

  NumberedTable<Record> record_table_;
  IndexTable record_by_key_;
  IndexTable record_by_slot_;
  NumberedTable<Claim> claim_table_;
  IndexTable claim_by_nonce_;
  IndexTable claim_by_key_;
  IndexTable claim_by_slot_;
};

template <class Visit>
void Assignments::each_record(const Visit& visit) const {
  record_by_key_.each([&](std::uint32_t number) { visit(record_table_[number]); });
}

template <class Visit>
void Assignments::each_claim(const Visit& visit) const {
  claim_by_key_.each([&](std::uint32_t number) { visit(claim_table_[number]); });
}

template <class Visit>
bool Assignments::any_claim_of(const IdentityKey& key, const Visit& visit) const {
  return claim_by_key_.find(hash(key), [&](std::uint32_t number) {
    const auto& claim = claim_table_[number];
    return claim.key == key && visit(claim);
  });
}

template <class Visit>
bool Assignments::any_claim_for(const Slot& slot, const Visit& visit) const {
  return claim_by_slot_.find(hash(slot), [&](std::uint32_t number) {
    const auto& claim = claim_table_[number];
    return claim.slot() == slot && visit(claim);
  });
}

}  // namespace mapping
