#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "mapping/state.hpp"

namespace mapping {

// Simpler protocols that look right. Each must be caught.
enum class Relative {
  none,
  acknowledged_claim,  // a claim counts as soon as it is acknowledged
  first_come,          // a natural slot is his who came first, as this process remembers it
  first_record_wins,   // no claims: of two records for a slot the first in the log counts
  tombstones_at_e,     // a record is deleted at E instead of 2 E
};

struct SimulationOptions {
  std::uint64_t seed;
  int proxies = 2;
  Relative relative = Relative::none;
  bool is_traced = false;  // tell every event on standard output
};

// Proxies over one simulated state topic, and what they let through to the destination. All is drawn from the seed: the
// order of events, crashes, writes that land late, or unacknowledged, or not at all, compaction, each proxy's clock.
// A late write, a reader's lag and the difference of clocks stay within W together, a third of it each.
//
// Slots are scarce: salts lead to six regions, one of which is the natural region of a source that comes later.
class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation();

  // Chaos, then a time in which everything works and all must be served, then silence in which writing must end.
  // What was broken, or nothing.
  std::optional<std::string> run();

  struct Counts {
    std::uint64_t batches = 0;  // that left
    std::uint64_t salted = 0;   // ... of which with a salt
    std::uint64_t writes = 0;
    std::uint64_t crashes = 0;
    std::uint64_t lost_claims = 0;
    std::uint64_t tombstones = 0;  // of records
    Duration longest_wait{};       // of an identity, while everything worked
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Entry {
    std::int64_t offset;
    Bytes key;
    std::optional<Bytes> value;
    Time appended;
  };
  struct LogPartition {
    std::vector<Entry> entries;
    std::int64_t end = 0;
  };
  struct Answer {
    std::size_t proxy;
    std::uint64_t incarnation;
    std::uint64_t write;
    bool is_acknowledged;
  };
  struct Event {
    std::optional<Write> landing;
    std::optional<Answer> answer;
  };
  struct Producer {  // an identity, with the source by its place in `sources_`
    std::size_t source;
    TopicId topic_id;
    std::int32_t partition;
    ProducerId pid;
    Time active_until{};
    Time idle_until{};
    Time waiting_since{};  // while everything works
    bool is_served = false;
  };

  using SlotName = std::tuple<TopicId, std::int32_t, ProducerId>;
  struct Proxy {
    std::size_t number = 0;
    std::uint64_t incarnation = 0;
    Duration skew{};
    std::unique_ptr<State> state;                     // null: it is down
    std::vector<std::optional<SourceIndex>> sources;  // of each of the simulation's: its index here
    bool has_seen_chained = false;
    std::vector<std::int64_t> positions;
    std::vector<bool> is_end_wanted;
    std::map<CollisionKey, LastHit> last_hits;
    std::map<SlotName, CollisionKey> first_come;
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  bool chance(int percent) { return draw(100) < static_cast<std::uint64_t>(percent); }
  Duration draw_duration(Duration below) {
    return Duration(static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(below.count()))));
  }

  void start(std::size_t proxy, bool with_all_sources);
  void stop(std::size_t proxy);
  void advance(Duration by);
  void catch_up();
  bool read_one(Proxy& proxy, std::int32_t log_partition);
  void read_to_end(Proxy& proxy);
  void carry_out(std::size_t proxy);
  void schedule(std::size_t proxy, const Write& write);
  void land(const Write& write);
  void compact(LogPartition& log);
  void send_something(std::size_t proxy);
  void send(Producer& producer, std::size_t proxy);
  Verdict decide(Proxy& proxy, const Producer& producer, const Identity& identity);
  void leave(Producer& producer, const Verdict& verdict);
  void see_chained(Proxy& proxy);
  void chaos();
  void everything_works();
  void silence();
  void fair_round(Duration step);
  void check_slots(std::int32_t log_partition);
  void fail(const std::string& what);
  void trace(const std::string& what) const;
  std::string name(const Producer& producer) const;
  CollisionKey key(const Producer& producer) const;

  SimulationOptions options_;
  std::mt19937_64 random_;
  // How bad it is, for the whole run.
  struct {
    Duration pace{};  // the longest time between two events, but the long waits
    int late_percent = 0;
    int failed_percent = 0;
    int crash_percent = 0;
  } mood_;
  StateSettings settings_;
  std::vector<Source> sources_;
  std::vector<Producer> producers_;
  Time now_;
  bool is_faulty_ = true;
  std::vector<LogPartition> logs_;
  std::multimap<Time, Event> events_;
  std::deque<std::unique_ptr<Proxy>> proxies_;
  std::uint64_t incarnations_ = 0;

  std::map<SlotName, std::map<CollisionKey, Time>> uses_;
  std::map<CollisionKey, std::map<ProducerId, Time>> ids_;
  std::map<CollisionKey, std::set<std::int64_t>> salts_written_;
  std::optional<std::string> failure_;
  Counts counts_;
};

}  // namespace mapping
