#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "codec/messages.hpp"
#include "tests/support/trace.hpp"

namespace support {

// Every table of codec/messages.hpp once.
std::vector<const codec::Message*> all_messages();

struct Encoded {
  Bytes bytes;
  std::vector<Seen> steps;  // what a walk has to see
};

// What a test decides of a message that is otherwise drawn. The draws do not depend on the decisions, so the message
// before an edit and the one expected after it come from the same seed.
struct Decisions {
  // May change the value of a field that has a role, which is of a fixed size, a string or records; a changed one is
  // not null.
  std::function<void(const codec::Field& field, Bytes& value)> value;
  // False: the element of an array of this role that has just been written is left out.
  std::function<bool(codec::Role role)> keeps_element;
};

// A valid message by its table, drawn from `seed`: nulls, empty arrays and strings of one and two length bytes, tagged
// fields that the table knows and, at every level, some that it does not.
Encoded encode_random(const codec::Message& message, codec::Version version, std::uint64_t seed,
                      const Decisions& decisions = {});

}  // namespace support
