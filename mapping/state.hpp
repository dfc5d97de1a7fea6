#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mapping/producer_id.hpp"
#include "mapping/read_mostly_lock.hpp"
#include "mapping/salt.hpp"
#include "mapping/state_records.hpp"
#include "mapping/topic_id.hpp"

namespace mapping {

// A configured source: its place in the list given to the State.
struct SourceIndex {
  std::uint32_t value;
  auto operator<=>(const SourceIndex&) const = default;
};

struct Source {
  std::string cluster_id;  // in its canonical form (ClusterId::text) where it is a UUID
  Region region;
};

// A producer of a source in one partition of the destination. `pid` is >= 0 and not marked.
struct Identity {
  SourceIndex source;
  TopicId topic_id;
  std::int32_t partition;
  ProducerId pid;
  auto operator<=>(const Identity&) const = default;
};

// Why an identity is not served. All but `exhausted` pass by themselves, so the client is told to try again.
enum class Hindrance : std::uint8_t {
  none,
  not_loaded,      // the state topic has not been read to its end
  not_registered,  // no registration of the source has been read in that log partition yet
  settling,        // a source was registered whose natural slot is held: 3 W must pass until everybody knows
  contested,       // an older claim stands in the way; it is deleted when it has expired
  own_claim_old,   // a claim of this process that is too old to act on and too young to be claimed again
  slot_conflict,   // two records hold one slot, which this protocol never writes
  write_failed,    // the last write was not acknowledged
  busy,            // as many identities are being worked on as may be
  undecodable,     // its log partition holds a record that this version cannot read: nothing new is given out there
  exhausted,       // no attempt found a slot
};
inline constexpr std::size_t hindrances = static_cast<std::size_t>(Hindrance::exhausted) + 1;
std::string_view describe(Hindrance hindrance);
constexpr bool is_retriable(Hindrance hindrance) {
  return hindrance != Hindrance::exhausted;
}

struct Verdict {
  enum class Kind : std::uint8_t {
    natural,     // `mapped` is F(region, pid)
    salted,      // `mapped` is F(region + salt, pid), and a record in the log says so
    needs_work,  // State::work_on must find and write a salt first; until then the batch does not leave
    not_served,  // see `hindrance`
  };
  Kind kind;
  ProducerId mapped = no_producer_id;
  bool needs_refresh = false;  // salted: the batch leaves, and State::work_on is to be called
  Hindrance hindrance = Hindrance::none;
};

// What became of a chained value: one that came negative, mapped by a proxy upstream.
enum class Chained : std::uint8_t {
  passes,
  shared,   // passes, on a natural slot of a registered source: the same producer seen by another route
  refused,  // a record or a claim holds the slot; retriable
};

// What a session decided last; it is the caller's, one a session, so that a session that goes on with the same identity
// takes no lock at all. Only State looks inside.
struct LastHit {
  Identity identity{};
  Verdict verdict{};
  std::uint64_t generation = 0;  // of the state; 0: nothing remembered
  Time until{};
};

// Commands of the State to its store, carried out in the order they come.
//
// Each Write is answered once, by State::acknowledged (all in-sync replicas have it) or State::failed (given up; it may
// land all the same, up to W after its time). A write that failed is not tried again by the store: the key of a second
// try would be another.
struct Write {
  std::uint64_t id;
  std::int32_t log_partition;
  Bytes key;
  std::optional<Bytes> value;  // absent: a tombstone
};
// To be answered by State::at_end when the reader's position has met the end of that log partition at a moment not
// before this command: ask for the end offset; when all below it is applied and the reader has been told that it is at
// the partition's end at that offset or a later one (librdkafka: _PARTITION_EOF), that is the moment. "Everything up to
// the offset that was the end" alone is not enough: compaction may have moved what lies below it beyond.
// The store tries until it succeeds. At most one is under way for a log partition.
struct ReadToEnd {
  std::int32_t log_partition;
};
using Command = std::variant<Write, ReadToEnd>;

// What became of one record read.
struct Applied {
  enum class Kind : std::uint8_t {
    applied,
    skipped,      // of an unknown type
    undecodable,  // of a known type
    refused,      // it breaks the protocol; it is left out, and what it says is in `reason`
  };
  Kind kind = Kind::applied;
  std::string reason;
};

// Work that ended, for the sessions that wait for it; decide() again tells what to do.
struct Finished {
  Identity identity;
  Hindrance hindrance;  // none: it can be served
};

// The protocol's switches. Anything but the defaults is unsafe: they are here so that tests can show how each simpler
// relative breaks, and make slots scarce.
struct Protocol {
  bool claims = true;      // false: the record is written without a claim before it, and the first record wins
  bool reads_back = true;  // false: a claim that is acknowledged counts
  int record_life = 2;     // in E: tombstones from then on
  std::int64_t (*draw)(const CollisionKey& identity, int attempt) = draw_salt;
};

struct StateSettings {
  std::int32_t partitions = 50;                  // of the state topic
  Duration expiration = std::chrono::hours(24);  // E
  Duration slack = std::chrono::hours(1);  // W: a late write, a lagging reader, the difference of clocks; <= E / 4
  std::uint64_t process_nonce = 0;         // random: tells this process's claims from all others'
  std::size_t works_max = 100'000;         // identities being worked on at a time
  Protocol protocol{};
};

// Which identity has which slot: a function of the compacted state topic, and the work that changes it.
//
// One thread, the owner, feeds it what the store reads and hears, and carries out its commands. Any number of session
// threads decide at the same time: readers of different threads share no cache line that is written, see
// ReadMostlyLock. No I/O and no clock: time is passed in.
//
// Its invariant: what decide() says is a function of the log that was read and of the time alone. Nothing is served
// because this process remembers it.
class State {
 public:
  // What is a configuration error beforehand: an empty list of sources, two with the same cluster id, W > E / 4.
  State(StateSettings settings, std::vector<Source> sources);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // ---- Any thread.

  // The normal case: the source owns its region in every log partition and nobody holds a slot of it. Its identities
  // with pid < 2^31 and F(region, pid) != -1 are natural, without a topic id, a lookup, or any memory. One atomic load.
  bool is_undisputed(SourceIndex source) const;

  Verdict decide(const Identity& identity, Time now, LastHit& last) const;

  // For each batch with pid < -1. `is_first`: of that region in that partition.
  struct ChainedVerdict {
    Chained kind;
    bool is_first;
  };
  ChainedVerdict see_chained(const TopicId& topic_id, std::int32_t partition, ProducerId value);

  // No record and no claim has been read, and nothing is being worked on: a chained value meets nobody. One atomic
  // load.
  bool holds_nothing() const;

  // The log is not what it was any more: from now on nothing is served. On any thread, for good.
  void close();

  // All log partitions are read to the end: listeners may accept. Before, nothing is served.
  bool is_loaded() const;
  // ... and every source is registered in each. A source that is not yet is served where it is.
  bool is_ready() const;

  // ---- The owner thread. Every function may leave commands; take them after each call.

  // Asks for all log partitions to be read to the end.
  void start();

  Applied apply(std::int32_t log_partition, std::int64_t offset, ByteView key, std::optional<ByteView> value, Time now);
  void at_end(std::int32_t log_partition, Time now);
  void acknowledged(std::uint64_t write_id, Time now);
  void failed(std::uint64_t write_id, Time now);

  // For a verdict that needs work or a refresh; calling it again while work is under way changes nothing.
  void work_on(const Identity& identity, Time now);

  // Registrations, waits that are over, expiry. To be called at least as often as next_tick() says.
  void tick(Time now);
  Time next_tick() const;

  std::vector<Command> take_commands();
  std::vector<Finished> take_finished();

  // What a start must stop at: a region that changed, another number of partitions. Sentences, empty when all is well.
  const std::vector<std::string>& problems() const;

  // ---- The owner thread, for people.
  struct Salted {
    CollisionKey key;
    CollisionValue value;
    Region region;  // region'
  };
  std::vector<Salted> list() const;
  struct RegisteredSource {
    std::int32_t log_partition;
    Region region;
    std::string cluster_id;
    bool is_owner;
    Time since;
  };
  std::vector<RegisteredSource> registrations() const;
  struct Counts {
    std::uint64_t records;         // salted identities
    std::uint64_t claims;          // standing
    std::uint64_t works;           // identities being worked on
    std::uint64_t lost_claims;     // total
    std::uint64_t unknown_types;   // total, records skipped
    std::uint64_t two_salts;       // total, a live key that was given another salt: an error
    std::uint64_t slot_conflicts;  // total, a record for a slot that another record holds: an error
  };
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mapping
