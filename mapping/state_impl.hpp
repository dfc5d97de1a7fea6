#pragma once
#include <atomic>
#include <cassert>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mapping/log_partition.hpp"
#include "mapping/state.hpp"

namespace mapping {

// What a State is made of: its log partitions, and what is known of all of them together.
class State::Impl {
 public:
  Impl(StateSettings settings, std::vector<Source> sources) : context_{settings, std::move(sources)} {
    assert(settings.partitions > 0 && settings.slack * 4 <= settings.expiration);
    // A source's number is its place in the configuration.
    for (const auto& source : context_.sources) context_.names.source(source.cluster_id);
    for (std::int32_t number = 0; number < settings.partitions; ++number) partitions_.emplace_back(number, context_);
    for (std::size_t source = 0; source < context_.sources.size(); ++source)
      disputes_.emplace_back(settings.partitions);
  }

  LogPartition& partition(std::int32_t number) { return partitions_[static_cast<std::size_t>(number)]; }
  LogPartition& partition_of(const Place& place) {
    return partition(log_partition_of(place.topic_id, place.partition, context_.settings.partitions));
  }

  Verdict decide(const Identity& identity, Time now, LastHit& last);
  ChainedVerdict see_chained(const Place& place, ProducerId value);
  Applied apply(std::int32_t log_partition, std::int64_t offset, const Decoded& decoded, Time now);
  void work_on(const Identity& identity, Time now);
  void note_progress();

  StateContext context_;
  std::deque<LogPartition> partitions_;
  std::atomic<std::uint64_t> generation_ = 1;  // changes with whatever may change a verdict
  // Of each source: the log partitions in which it does not own its region undisputed.
  struct Dispute {
    explicit Dispute(std::int32_t partitions)
        : left(partitions), is_undisputed_in(static_cast<std::size_t>(partitions)) {}
    std::int32_t left;
    std::vector<bool> is_undisputed_in;
    std::atomic<bool> is_settled = false;
  };
  std::deque<Dispute> disputes_;
  std::atomic<bool> is_loaded_ = false;
  std::atomic<bool> is_closed_ = false;
  std::atomic<bool> holds_nothing_ = true;
  std::uint64_t held_ = 0;  // records and claims
  std::atomic<bool> is_ready_ = false;
  std::vector<std::string> problems_;
  std::uint64_t unknown_types_ = 0;
  std::uint64_t two_salts_ = 0;
  std::uint64_t slot_conflicts_ = 0;

 private:
  Applied apply(LogPartition& partition, std::int64_t offset, const Registration& registration);
  Applied apply(LogPartition& partition, const Collision& collision, Time now);
  Applied apply(LogPartition& partition, std::int64_t offset, const Claim& claim, Time now);
  Applied refuse(std::string reason) { return {Applied::Kind::refused, std::move(reason)}; }
  std::optional<SourceNumber> registered(const LogPartition& partition, std::string_view cluster_id) const;
  void settle_disputes(LogPartition& partition);
  void note_held(const LogPartition& partition, std::uint64_t before);
  void note_problem(std::string problem);
};

}  // namespace mapping
