#pragma once
#include <cstdint>
#include <string_view>

#include "mapping/producer_id.hpp"

namespace mapping {

// What of a record batch decides about its producer id.
struct BatchFacts {
  ProducerId pid;
  std::int16_t epoch;
  std::int32_t base_sequence;
  bool is_transactional;
  bool is_control;
};

enum class Action : std::uint8_t {
  pass,    // stays byte for byte: no producer, or mapped by a proxy upstream
  map,     // a source's id becomes F(region, pid)
  unmark,  // the destination's own id on its way back to it
  refuse,  // must not reach a log; the batch is made refusable, so that every broker answers INVALID_RECORD (87)
  defer,   // may not leave yet: made refusable, too, and that answer becomes a retriable one
};

enum class Refusal : std::uint8_t {
  none,
  negative_epoch,     // epoch < 0: accepted by brokers, and stops the log cleaner for good
  negative_sequence,  // base sequence < 0 with a producer: the same
  control_batch,      // a marker: brokers take none from clients, and a positive id makes them ask a coordinator first
  no_producer,        // pid -1 with the transactional bit: accepted by brokers, and stops the log cleaner
  is_no_producer_id,  // F(region, pid) is -1, which would make the producer anonymous
  no_salt_left,       // no salt gives it a slot of its own
};
std::string_view describe(Refusal refusal);

struct Decision {
  Action action;
  ProducerId pid;  // to be written: of `pass` the one that came
  Refusal refusal = Refusal::none;
  bool is_possible_alias = false;  // pid >= 2^31: F cannot tell it from the one that is 2^31 lower
};

// The mapping of one source cluster's producer ids without memory: the same id always becomes the same id, mapping
// twice is mapping once, and a chain A -> B -> C keeps what A -> B made.
class PidMapper {
 public:
  explicit PidMapper(Region home) : home_(home) {}

  Region home() const { return home_; }
  Decision decide(const BatchFacts& batch) const;

  // What the id in a transaction marker that a client asks a broker to write becomes: never a source's own id, which
  // would end a transaction of a stranger. A marker of a mapped id has no effect at the destination, so no id that it
  // is mapped to can do harm; every broker refuses to write one of -1.
  ProducerId decide_marker(ProducerId pid) const;

 private:
  Region home_;
};

}  // namespace mapping
