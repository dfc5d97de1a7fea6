#include <algorithm>

#include "codec/messages.hpp"
#include "codec/walker.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/encoder.hpp"
#include "tests/support/trace.hpp"

namespace fuzz {

using Kind = codec::Walker::Step::Kind;

// Cutting a message must not change what is seen of it.
// Input: which table, its version, the size of the pieces less one, then the message.
void walker(Input input) {
  static const auto messages = support::all_messages();
  const auto& message = *messages[take_byte(input) % messages.size()];
  const auto versions = message.versions.last - message.versions.first + 1;
  const auto version = static_cast<codec::Version>(message.versions.first + take_byte(input) % versions);
  const auto piece = std::size_t{1} + take_byte(input) % 63;

  const codec::Walker walker(message, version, input.size());
  const auto whole = support::trace(walker, input);
  require(whole == support::trace(walker, input, piece), "cutting changes nothing");
  require(whole.end == Kind::done || whole.end == Kind::malformed, "a message that is there whole has an end");
  require(whole.left <= input.size(), "what is left is part of the message");
  if (whole.end != Kind::done || whole.left > 0 || input.empty()) return;
  const auto cut = input.first(input.size() - 1);
  require(support::trace(codec::Walker(message, version, cut.size()), cut).end == Kind::malformed,
          "a message without its last byte is malformed");
}

}  // namespace fuzz
