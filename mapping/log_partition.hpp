#pragma once
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "mapping/assignments.hpp"
#include "mapping/names.hpp"
#include "mapping/nonces.hpp"
#include "mapping/outbox.hpp"
#include "mapping/read_mostly_lock.hpp"
#include "mapping/situation.hpp"

namespace mapping {

// What the log partitions of a State share.
struct StateContext {
  StateSettings settings;
  std::vector<Source> sources;
  Judge judge{settings};
  Names names{};    // changed under `lock`
  Outbox outbox{};  // the owner thread's alone
  Nonces nonces{settings.process_nonce};
  std::size_t works = 0;
  std::uint64_t lost_claims = 0;
  ReadMostlyLock lock{};
};

// One log partition: what it says, and the work that this process has under way in it.
//
// What sessions read (`log`, slots under way, chained regions) is changed by the owner thread alone and under the
// context's lock, so the owner reads it without; but chained regions, which sessions add.
class LogPartition {
 public:
  LogPartition(std::int32_t number, StateContext& context);

  std::size_t number() const { return static_cast<std::size_t>(number_); }

  // ---- Read by sessions, under the shared lock.
  const Assignments& log() const { return log_; }
  // By a record, a claim that holds, or one of ours under way.
  bool is_held(const Slot& slot) const;
  bool has_seen(const Place& place, Region region) const { return chained_.contains({place, region}); }
  // Why no new slot may be found for it, beyond what the log says.
  Hindrance hindrance_of(const IdentityKey& key, Situation::Kind kind, Time now) const;
  // Under the exclusive lock, on any thread. Those that are too many are not remembered: a salt may meet one, and the
  // chained value is what is refused then.
  void add_chained(const Place& place, Region region) { chained_.insert({place, region}); }
  bool can_add_chained() const { return chained_.size() < chained_max; }

  // ---- The owner thread.
  void start() { need_end(); }
  Assignments& log_under_lock() { return log_; }
  void freeze() { is_frozen_ = true; }  // under the exclusive lock
  std::uint64_t held() const { return log_.records() + log_.claims(); }
  void on_record(const IdentityKey& key, Time now);
  void on_claim(const IdentityKey& key, const Nonce& nonce, Time now);
  void on_registration(SourceNumber source);
  void at_end(Time now);
  void acknowledged(std::uint64_t write, const Purpose& purpose, Time now);
  void failed(std::uint64_t write, const Purpose& purpose, Time now);
  void work_on(const IdentityKey& key, Time now);
  void tick(Time now);
  Time next_tick() const;
  void commands_taken() { end_.is_taken = true; }
  bool is_loaded() const { return is_loaded_; }
  bool is_ready() const;

 private:
  struct Work {
    enum class Phase : std::uint8_t {
      claiming,   // a claim is being written
      waiting,    // a claim was lost: until `until`
      checking,   // the log is being read to its end
      recording,  // the record is being written
      recorded,   // it is acknowledged and not read yet
    };
    Phase phase = Phase::waiting;
    std::uint64_t write = 0;     // under way
    std::uint64_t end = 0;       // the reading to the end it waits for
    std::optional<Nonce> nonce;  // of its claim
    std::int64_t salt = 0;       // that it claims
    std::optional<Slot> slot;    // ... and keeps from chained values and other work
    int losses = 0;
    Time until{};
  };
  struct OwnSource {
    bool is_under_way = false;
    int failures = 0;
    Time until{};
  };

  void work_acknowledged(std::uint64_t write, const Purpose& purpose, Time now);
  void resume_waiting(Time now);
  void step(const IdentityKey& key, Work& work, Time now, bool has_read_to_end);
  void claim(const IdentityKey& key, Work& work, const Situation& situation, Time now);
  void record(const IdentityKey& key, Work& work, std::int64_t salt, Time now);
  void check(const IdentityKey& key, Work& work);
  void lose(const IdentityKey& key, Work& work, Time now);
  void finish(const IdentityKey& key, Hindrance hindrance, Time now);
  void note_exhausted(const IdentityKey& key, Time now);
  bool delete_if_lost(const IdentityKey& key, const Nonce& nonce, Time now);
  void delete_lost_claim(const IdentityKey& key, Work& work, Time now);
  void release(Work& work);
  bool take_slot(const IdentityKey& key, Work& work, const Situation& situation);
  std::optional<std::int64_t> draw(const IdentityKey& key) const;
  bool is_possible(const IdentityKey& key, std::int64_t salt) const;
  void register_sources(Time now);
  void sweep(Time now);
  std::vector<Bytes> what_is_over(std::size_t count_max, Time now) const;
  void erase(Bytes key);
  std::uint64_t need_end();
  Duration pause(int failures) const;

  struct KeyHash {
    std::size_t operator()(const IdentityKey& key) const {
      return mix(mix(std::uint64_t{key.place} << 32 | key.source) + static_cast<std::uint64_t>(key.pid.value));
    }
  };
  struct SlotHash {
    std::size_t operator()(const Slot& slot) const {
      return mix(mix(slot.place) + static_cast<std::uint64_t>(slot.mapped.value));
    }
  };
  struct ChainedRegion {
    Place place;
    Region region;
    bool operator==(const ChainedRegion&) const = default;
  };
  struct ChainedHash {
    std::size_t operator()(const ChainedRegion& chained) const {
      return mix(chained.place.hash() + chained.region.value);
    }
  };

  static constexpr std::size_t chained_max = 16'384;
  static constexpr std::size_t exhausted_max = 1024;

  std::int32_t number_;
  StateContext& context_;
  Assignments log_;
  boost::unordered_flat_set<Slot, SlotHash> slots_under_way_;
  boost::unordered_flat_set<ChainedRegion, ChainedHash> chained_;
  std::unordered_map<IdentityKey, Time, KeyHash> exhausted_;  // for whom no slot was found: not tried again until then
  bool is_frozen_ = false;                                    // no new claim is made here

  std::unordered_map<IdentityKey, Work, KeyHash> works_;
  std::vector<IdentityKey> checking_;
  std::multimap<Time, IdentityKey> waiting_;
  std::vector<OwnSource> own_sources_;

  // Readings to the end are counted. One that was commanded answers for all needs from before the command was taken.
  struct {
    std::uint64_t asked = 0;
    bool is_under_way = false;
    bool is_taken = false;
    bool is_needed_again = false;
  } end_;
  bool is_loaded_ = false;

  // Of what is over.
  Duration sweep_interval_;
  Time next_sweep_ = Time::max();
  std::uint64_t sweep_end_ = 0;  // the reading to the end that the sweep waits for, or 0
  std::size_t deletions_ = 0;    // under way
};

}  // namespace mapping
