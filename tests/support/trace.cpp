#include "tests/support/trace.hpp"

#include <algorithm>

namespace support {

using Kind = codec::Walker::Step::Kind;

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << "kind " << static_cast<int>(seen.kind) << " role " << static_cast<int>(seen.role) << " size "
             << seen.size << (seen.is_null ? " null " : " ") << to_hex(seen.encoded) << " " << to_hex(seen.content);
}

std::ostream& operator<<(std::ostream& out, const Trace& trace) {
  for (const auto& seen : trace.steps) out << seen << "\n";
  return out << "end " << static_cast<int>(trace.end) << " error " << static_cast<int>(trace.error) << " left "
             << trace.left;
}

Trace trace(codec::Walker walker, std::span<const std::byte> bytes, std::size_t piece) {
  Trace trace{{}, Kind::need_more, {}, 0};
  const auto copy = [](std::span<const std::byte> part) { return Bytes(part.begin(), part.end()); };
  std::size_t consumed = 0;
  std::size_t arrived = 0;
  while (arrived < bytes.size() || arrived == 0) {
    // What a caller takes out of a message may be longer than a piece.
    arrived = std::min(bytes.size(), std::max(arrived, consumed) + std::min(piece, bytes.size()));
    auto window = copy(bytes.subspan(consumed, arrived - consumed));
    codec::Cursor in(window);
    for (;;) {
      const auto step = walker.next(in);
      if (step.kind == Kind::need_more) {
        consumed += in.position();
        break;
      }
      if (step.kind == Kind::done || step.kind == Kind::malformed) {
        trace.end = step.kind;
        if (step.kind == Kind::done) trace.left = walker.left();
        if (step.kind == Kind::malformed) trace.error = walker.error();
        return trace;
      }
      Seen seen{step.kind, step.role, copy(step.value), copy(step.encoded), step.size, step.is_null, {}};
      const bool is_taken = step.kind == Kind::records || step.kind == Kind::tagged;
      const auto end = consumed + in.position() + (is_taken ? step.size : 0);
      if (end > bytes.size()) return trace;
      if (is_taken) seen.content = copy(bytes.subspan(consumed + in.position(), step.size));
      trace.steps.push_back(std::move(seen));
      if (end > arrived) {
        consumed = end;
        break;
      }
      if (is_taken) in.take(step.size);
    }
    if (bytes.empty()) break;
  }
  return trace;
}

}  // namespace support
