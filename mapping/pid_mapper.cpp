#include "mapping/pid_mapper.hpp"

namespace mapping {

std::string_view describe(Refusal refusal) {
  switch (refusal) {
    case Refusal::none: return "none";
    case Refusal::negative_epoch: return "negative epoch";
    case Refusal::negative_sequence: return "negative sequence";
    case Refusal::control_batch: return "control batch";
    case Refusal::no_producer: return "transactional without a producer id";
    case Refusal::is_no_producer_id: return "would be mapped to -1";
    case Refusal::no_salt_left: return "no salt is left for it";
  }
  return "unknown";
}

namespace {

Refusal refusal_of(const BatchFacts& batch, Region home) {
  const bool has_producer = batch.pid != no_producer_id;
  if (!has_producer) return batch.is_transactional ? Refusal::no_producer : Refusal::none;
  if (batch.is_control && batch.pid.value >= 0) return Refusal::control_batch;
  if (batch.epoch < 0) return Refusal::negative_epoch;
  if (batch.base_sequence < 0) return Refusal::negative_sequence;
  const bool is_source = batch.pid.value >= 0 && !mark::is_on(batch.pid);
  if (is_source && layout::pack(home, batch.pid) == no_producer_id) return Refusal::is_no_producer_id;
  return Refusal::none;
}

}  // namespace

Decision PidMapper::decide(const BatchFacts& batch) const {
  const auto pid = batch.pid;
  if (const auto refusal = refusal_of(batch, home_); refusal != Refusal::none)
    // A positive id would make the broker ask its transaction coordinator before it looks at the offset.
    return {Action::refuse, pid.value >= 0 ? layout::pack(home_, pid) : pid, refusal};
  if (pid.value < 0) return {Action::pass, pid};
  if (mark::is_on(pid)) return {Action::unmark, mark::cleared(pid)};
  return {Action::map, layout::pack(home_, pid), Refusal::none, pid.value > layout::producer_max};
}

ProducerId PidMapper::decide_marker(ProducerId pid) const {
  if (pid.value < 0) return pid;
  return mark::is_on(pid) ? mark::cleared(pid) : layout::pack(home_, pid);
}

}  // namespace mapping
