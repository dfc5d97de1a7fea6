#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mapping/assignments.hpp"
#include "mapping/state.hpp"

namespace mapping {

// What a write under way is for: its answer goes there.
struct Purpose {
  enum class Kind : std::uint8_t { registration, claim, record, deletion };
  Kind kind;
  std::int32_t log_partition;
  SourceNumber source = 0;  // registration
  IdentityKey key{};        // claim, record
};

// The commands that wait to be taken, and the writes that wait for their answer.
class Outbox {
 public:
  std::uint64_t write(const Purpose& purpose, Bytes key, std::optional<Bytes> value) {
    purposes_.emplace(++writes_, purpose);
    commands_.emplace_back(Write{writes_, purpose.log_partition, std::move(key), std::move(value)});
    return writes_;
  }
  void read_to_end(std::int32_t log_partition) { commands_.emplace_back(ReadToEnd{log_partition}); }
  void finish(const Identity& identity, Hindrance hindrance) { finished_.push_back({identity, hindrance}); }

  // Once for each write.
  std::optional<Purpose> answered(std::uint64_t write) {
    const auto node = purposes_.extract(write);
    if (!node) return std::nullopt;
    return node.mapped();
  }

  std::vector<Command> take_commands() { return std::exchange(commands_, {}); }
  std::vector<Finished> take_finished() { return std::exchange(finished_, {}); }

 private:
  std::uint64_t writes_ = 0;
  std::unordered_map<std::uint64_t, Purpose> purposes_;
  std::vector<Command> commands_;
  std::vector<Finished> finished_;
};

}  // namespace mapping
