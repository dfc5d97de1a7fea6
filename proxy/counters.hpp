#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proxy/collisions.hpp"

namespace proxy {

// A number that one thread counts up and others read; relaxed, so counting costs what a plain increment costs.
class Counter {
 public:
  void add(std::uint64_t count = 1) { value_.store(get() + count, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// What one thread has counted for one source. Refusals are indexed by mapping::Refusal, deferrals by Deferral.
struct Counters {
  static constexpr std::size_t refusals = 7;

  Counter connections;
  Counter connections_closed;
  Counter dial_failures;
  Counter client_faults;  // connections closed for what a client sent
  Counter broker_faults;  // ... for what a broker sent
  Counter requests;
  Counter responses;
  Counter request_bytes;
  Counter response_bytes;
  Counter batches_passed;
  Counter batches_mapped;
  Counter batches_unmarked;
  std::array<Counter, refusals> batches_refused;
  std::array<Counter, deferrals> batches_deferred;  // answered with a retriable error until their salt is written
  Counter batches_shared;                           // of the passed: chained ids that are also a source's own
  Counter possible_aliases;                         // of the mapped: pid >= 2^31
  Counter ids_marked;                               // of the destination's own, told to clients
  Counter ids_unmarked;                             // ... named by clients, but for those in batches
  Counter ids_marked_upstream;                      // came with the mark on: another mirrorpid is right behind
  Counter markers_mapped;                           // ids of sources in transaction markers
  Counter connections_of_both_ids;                  // were handed a marked id and produced with an unmarked one
  Counter null_records;                             // made empty, so that a broker answers them
  Counter rebootstraps;                             // answers 129: the client meant another node
  Counter nodes_left_out;                           // addresses that could not be advertised
};

}  // namespace proxy
