#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mapping/state.hpp"

namespace mapping {

// A state topic in memory in which everything works at once, and what tests write into it by hand.
struct PlainLog {
  struct Entry {
    Bytes key;
    std::optional<Bytes> value;
  };
  explicit PlainLog(std::int32_t count) : partitions(static_cast<std::size_t>(count)) {}

  std::int32_t count() const { return static_cast<std::int32_t>(partitions.size()); }
  void append(std::int32_t partition, Bytes key, std::optional<Bytes> value) {
    partitions[static_cast<std::size_t>(partition)].push_back({std::move(key), std::move(value)});
  }
  template <class Key, class Value>
  void append(std::int32_t partition, const Key& key, const Value& value) {
    append(partition, encode(key), std::optional(encode(value)));
  }
  std::size_t size() const {
    std::size_t size = 0;
    for (const auto& partition : partitions) size += partition.size();
    return size;
  }
  // What is in it for good, read by nobody's state: the last value of each key.
  template <class Key, class Value>
  std::map<Key, Value> live() const {
    std::map<Key, Value> live;
    for (const auto& partition : partitions)
      for (const auto& [key, value] : partition) {
        const auto decoded = decode(key, value ? std::optional<ByteView>(*value) : std::nullopt);
        const auto* entry = std::get_if<mapping::Entry<Key, Value>>(&decoded);
        if (!entry) continue;
        live.erase(entry->key);
        if (entry->value) live.emplace(entry->key, *entry->value);
      }
    return live;
  }
  std::map<CollisionKey, CollisionValue> collisions() const { return live<CollisionKey, CollisionValue>(); }
  std::map<ClaimKey, ClaimValue> claims() const { return live<ClaimKey, ClaimValue>(); }

  std::vector<std::vector<Entry>> partitions;
};

// A proxy at a PlainLog. Its commands wait until settle(), or are taken one by one.
class PlainProxy {
 public:
  PlainProxy(PlainLog& log, std::vector<Source> sources, Time now, StateSettings settings = {})
      : log_(log), now_(now), positions_(log.partitions.size()) {
    settings.partitions = log.count();
    settings.process_nonce = ++processes;
    expiration_ = settings.expiration;
    state_ = std::make_unique<State>(settings, std::move(sources));
    state_->start();
  }

  State& state() { return *state_; }
  Time now() const { return now_; }
  void wait(Duration time) { now_ += time; }

  // Carries out all that is commanded, and what follows from it.
  void settle() {
    for (auto commands = state_->take_commands(); !commands.empty(); commands = state_->take_commands())
      for (const auto& command : commands) carry_out(command);
    read();
    for (auto commands = state_->take_commands(); !commands.empty(); commands = state_->take_commands())
      for (const auto& command : commands) carry_out(command);
  }
  void carry_out(const Command& command) {
    if (const auto* write = std::get_if<Write>(&command)) {
      land(*write);
      state_->acknowledged(write->id, now_);
    } else {
      const auto partition = std::get<ReadToEnd>(command).log_partition;
      read(partition);
      state_->at_end(partition, now_);
    }
  }
  void land(const Write& write) { log_.append(write.log_partition, write.key, write.value); }
  void read() {
    for (std::int32_t partition = 0; partition < log_.count(); ++partition) read(partition);
  }
  void read(std::int32_t partition) {
    const auto& entries = log_.partitions[static_cast<std::size_t>(partition)];
    auto& position = positions_[static_cast<std::size_t>(partition)];
    for (; position < entries.size(); ++position) {
      const auto entry = entries[position];
      applied.push_back(state_->apply(partition, static_cast<std::int64_t>(position), entry.key,
                                      entry.value ? std::optional<ByteView>(*entry.value) : std::nullopt, now_));
    }
  }
  // Time passes, with all that a proxy does by itself.
  void live(Duration time) {
    for (const auto end = now_ + time; now_ < end;) {
      wait(std::min<Duration>(expiration_ / 32, end - now_));
      state_->tick(now_);
      settle();
    }
  }

  Verdict decide(const Identity& identity) {
    LastHit last;
    return state_->decide(identity, now_, last);
  }
  // As a session does it: what needs work is worked on, and then decided again.
  Verdict serve(const Identity& identity) {
    auto verdict = decide(identity);
    if (verdict.kind != Verdict::Kind::needs_work && !verdict.needs_refresh) return verdict;
    state_->work_on(identity, now_);
    settle();
    for (int turn = 0; turn < 100 && decide(identity).kind == Verdict::Kind::needs_work; ++turn) {
      now_ = std::max(now_, std::min(state_->next_tick(), now_ + Duration(std::chrono::minutes(1))));
      state_->tick(now_);
      settle();
    }
    return decide(identity);
  }

  std::vector<Applied> applied;

 private:
  static inline std::uint64_t processes = 0;
  PlainLog& log_;
  Time now_;
  Duration expiration_{};
  std::unique_ptr<State> state_;
  std::vector<std::size_t> positions_;
};

}  // namespace mapping
