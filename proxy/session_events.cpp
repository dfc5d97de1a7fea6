#include <utility>

#include "proxy/log.hpp"
#include "proxy/session.hpp"

// What a session hears from its filters: counted, and told where a person should know.
namespace proxy {

void Session::on_request() {
  counters_.requests.add();
}

void Session::on_response() {
  counters_.responses.add();
  awaits_first_answer_ = false;
  first_answer_deadline_ = Clock::time_point::max();
}

void Session::on_null_records() {
  counters_.null_records.add();
}

void Session::on_batch(const BatchEvent& event) {
  if (holds_marked_id_ && event.pid.value >= 0 && !mapping::mark::is_on(event.pid)) warn_of_unmarked_id(event);
  switch (event.decision.action) {
    case mapping::Action::pass: counters_.batches_passed.add(); break;
    case mapping::Action::map: counters_.batches_mapped.add(); break;
    case mapping::Action::unmark: counters_.batches_unmarked.add(); break;
    case mapping::Action::refuse:
      counters_.batches_refused[static_cast<std::size_t>(event.decision.refusal)].add();
      worker_.refusals.write(log::Level::warn, "a batch was made refusable: brokers answer it with INVALID_RECORD (87)",
                             {{"reason", std::string(describe(event.decision.refusal))},
                              {"source", listener_.source.name},
                              {"peer", peer_},
                              {"topic", event.place.topic()},
                              {"partition", std::to_string(event.place.partition)},
                              {"producer_id", std::to_string(event.pid.value)}});
      break;
    case mapping::Action::defer:
      counters_.batches_deferred[static_cast<std::size_t>(event.deferral)].add();
      worker_.deferrals.write(event.is_answered ? log::Level::debug : log::Level::warn,
                              event.is_answered ? "a batch waits for its salt: its client is told to try again"
                                                : "a batch with acks=0 is lost: its salt did not come in time",
                              {{"reason", std::string(describe(event.deferral))},
                               {"source", listener_.source.name},
                               {"peer", peer_},
                               {"topic", event.place.topic()},
                               {"partition", std::to_string(event.place.partition)},
                               {"producer_id", std::to_string(event.pid.value)}});
      break;
  }
  if (!event.decision.is_possible_alias) return;
  counters_.possible_aliases.add();
  if (!listener_.source.aliases->is_new(event.pid.value)) return;
  log::warn("a producer id past 31 bits was mapped to what another producer of this source may have",
            {{"source", listener_.source.name},
             {"producer_id", std::to_string(event.pid.value)},
             {"mapped", std::to_string(event.decision.pid.value)}});
}

// Whatever holds a marked id and produces with another is hardly a source's mirror.
void Session::warn_of_unmarked_id(const BatchEvent& event) {
  if (std::exchange(has_warned_of_unmarked_id_, true)) return;
  counters_.connections_of_both_ids.add();
  worker_.unmarked_ids.write(log::Level::warn,
                             "a client got a marked id on this connection and now produces with an unmarked one, which "
                             "is taken for a source's: "
                             "is it a producer that has an id from before, or from a broker directly?",
                             {{"source", listener_.source.name},
                              {"peer", peer_},
                              {"topic", event.place.topic()},
                              {"partition", std::to_string(event.place.partition)},
                              {"producer_id", std::to_string(event.pid.value)}});
}

void Session::on_id(IdEvent event, mapping::ProducerId pid) {
  switch (event) {
    case IdEvent::handed_out: holds_marked_id_ = true; [[fallthrough]];
    case IdEvent::marked: counters_.ids_marked.add(); break;
    case IdEvent::unmarked: counters_.ids_unmarked.add(); break;
    case IdEvent::marker_mapped: counters_.markers_mapped.add(); break;
    case IdEvent::marked_upstream:
      counters_.ids_marked_upstream.add();
      if (!listener_.source.proxies_behind->is_new(0)) return;
      log::error(
          "an id came from the destination with a proxy's mark on it: another mirrorpid is right behind this one, and "
          "ids "
          "of the destination's own would end up mapped there; point this one at the cluster itself (two in a row need "
          "a "
          "cluster between)",
          {{"source", listener_.source.name},
           {"broker", to_string(broker_address_)},
           {"producer_id", std::to_string(pid.value)}});
      break;
  }
}

void Session::on_shared_chained(const BatchEvent& event, bool is_first) {
  counters_.batches_shared.add();
  if (!is_first) return;
  log::info("a chained id is a source's own, seen by another route: they share it",
            {{"source", listener_.source.name},
             {"topic", event.place.topic()},
             {"partition", std::to_string(event.place.partition)},
             {"producer_id", std::to_string(event.pid.value)}});
}

void Session::on_deferred_appended() {
  log::error("a broker has appended a batch that was made refusable: its producer id is not kept apart",
             {{"source", listener_.source.name}, {"broker", to_string(broker_address_)}});
}

void Session::on_rebootstrap_required() {
  counters_.rebootstraps.add();
  worker_.server.cluster.request_refresh();
}

void Session::on_node_left_out(std::int32_t node_id) {
  counters_.nodes_left_out.add();
  if (!listener_.source.left_out_nodes->is_new(node_id)) return;
  log::error("a node of the destination has no listener: clients are not told about it; widen `nodes`",
             {{"source", listener_.source.name}, {"node", std::to_string(node_id)}});
}

}  // namespace proxy
