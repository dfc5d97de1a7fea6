#include "proxy/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace proxy {
namespace {

struct Row {
  const char* name;
  const char* help;
  std::uint64_t Totals::* total;
};

// One row a counter: the metric is mirrorpid_NAME_total, the key of the status NAME.
constexpr Row rows[] = {
    {"connections", "Client connections accepted.", &Totals::connections},
    {"connections_closed", "Client connections that have ended.", &Totals::connections_closed},
    {"dial_failures", "Client connections whose broker could not be reached.", &Totals::dial_failures},
    {"client_faults", "Connections closed for what a client sent.", &Totals::client_faults},
    {"broker_faults", "Connections closed for what a broker sent.", &Totals::broker_faults},
    {"requests", "Requests begun by clients.", &Totals::requests},
    {"responses", "Responses passed on or given.", &Totals::responses},
    {"request_bytes", "Bytes of requests.", &Totals::request_bytes},
    {"response_bytes", "Bytes of responses, as brokers sent them.", &Totals::response_bytes},
    {"batches_passed", "Record batches left as they were.", &Totals::batches_passed},
    {"batches_mapped", "Record batches whose producer id was mapped.", &Totals::batches_mapped},
    {"batches_unmarked", "Record batches whose producer id was the destination's own.", &Totals::batches_unmarked},
    {"batches_shared", "Chained producer ids that are also a source's own, seen by another route.",
     &Totals::batches_shared},
    {"possible_aliases", "Mapped producer ids past 31 bits.", &Totals::possible_aliases},
    {"ids_marked", "Producer ids of the destination's own that were marked for clients.", &Totals::ids_marked},
    {"ids_unmarked", "Marked producer ids in requests other than Produce.", &Totals::ids_unmarked},
    {"ids_marked_upstream", "Producer ids that came marked from the destination: another mirrorpid is right behind.",
     &Totals::ids_marked_upstream},
    {"markers_mapped", "Producer ids of sources in transaction markers.", &Totals::markers_mapped},
    {"connections_of_both_ids", "Client connections that got a marked producer id and produced with an unmarked one.",
     &Totals::connections_of_both_ids},
    {"null_records", "Null records fields made empty.", &Totals::null_records},
    {"rebootstraps", "Answers that the client meant another node.", &Totals::rebootstraps},
    {"nodes_left_out", "Addresses of nodes that have no listener.", &Totals::nodes_left_out},
};

// Of the state topic, as of the last second.
struct StateRow {
  const char* name;
  const char* help;
  double (*value)(const StateStore::Status& status);
};

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

constexpr StateRow state_gauges[] = {
    {"ready", "1 when the state topic is loaded and every source registered.",
     [](const auto& status) { return status.is_ready ? 1.0 : 0.0; }},
    {"salted_producers", "Producers that have a salt.",
     [](const auto& status) { return number(status.counts.records); }},
    {"claims", "Claims that stand.", [](const auto& status) { return number(status.counts.claims); }},
    {"producers_worked_on", "Producers whose salt is being written.",
     [](const auto& status) { return number(status.counts.works); }},
    {"writes_under_way", "Records that are not acknowledged yet.",
     [](const auto& status) { return number(status.writes_under_way); }},
    {"oldest_write_seconds", "How long the oldest of them has been under way.",
     [](const auto& status) { return std::chrono::duration<double>(status.oldest_write).count(); }},
};
constexpr StateRow state_counters[] = {
    {"records_read", "Records read.", [](const auto& status) { return number(status.records_read); }},
    {"records_of_unknown_types", "Records of types that this version does not know.",
     [](const auto& status) { return number(status.counts.unknown_types); }},
    {"writes", "Records that were acknowledged or failed.", [](const auto& status) { return number(status.writes); }},
    {"writes_failed", "Records that were not acknowledged in `state.write_timeout`.",
     [](const auto& status) { return number(status.writes_failed); }},
    {"claims_lost", "Claims that another proxy's came before.",
     [](const auto& status) { return number(status.counts.lost_claims); }},
    {"two_salts", "Producers in use that were given another salt: never, if all is well.",
     [](const auto& status) { return number(status.counts.two_salts); }},
    {"slot_conflicts", "Records for a slot that another's record holds: never, if all is well.",
     [](const auto& status) { return number(status.counts.slot_conflicts); }},
};

prometheus::ClientMetric counter(double value, std::vector<prometheus::ClientMetric::Label> labels) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  return metric;
}

using Families = std::vector<prometheus::MetricFamily>;

prometheus::MetricFamily& add_family(Families& families, const std::string& name, const char* help,
                                     prometheus::MetricType type) {
  auto& family = families.emplace_back();
  family.name = "mirrorpid_" + name;
  family.help = help;
  family.type = type;
  return family;
}

void add_state(Families& families, const StateStore::Status& status) {
  for (const auto& row : state_gauges) {
    prometheus::ClientMetric metric;
    metric.gauge.value = row.value(status);
    add_family(families, std::string("state_") + row.name, row.help, prometheus::MetricType::Gauge)
        .metric.push_back(std::move(metric));
  }
  for (const auto& row : state_counters)
    add_family(families, std::string("state_") + row.name + "_total", row.help, prometheus::MetricType::Counter)
        .metric.push_back(counter(row.value(status), {}));
}

boost::json::object state_object(const StateStore& store) {
  const auto status = store.status();
  boost::json::object object;
  for (const auto& row : state_gauges) object[row.name] = row.value(status);
  for (const auto& row : state_counters) object[row.name] = row.value(status);
  return object;
}

boost::json::object object_of(const std::map<std::string, std::uint64_t>& counts) {
  boost::json::object object;
  for (const auto& [name, count] : counts) object[name] = count;
  return object;
}

}  // namespace

std::string metrics_text(const Server& server) {
  const auto totals = server.totals();
  Families families;
  const auto add = [&](const std::string& name, const char* help) -> prometheus::MetricFamily& {
    return add_family(families, name + "_total", help, prometheus::MetricType::Counter);
  };
  for (const auto& row : rows) {
    auto& family = add(row.name, row.help);
    for (const auto& total : totals)
      family.metric.push_back(counter(number(total.*row.total), {{"source", total.source}}));
  }
  const auto add_by_reason = [&](const char* name, const char* help, auto by_reason) {
    auto& family = add(name, help);
    for (const auto& total : totals)
      for (const auto& [reason, count] : total.*by_reason)
        family.metric.push_back(counter(number(count), {{"source", total.source}, {"reason", reason}}));
  };
  add_by_reason("batches_refused", "Record batches made refusable, so that brokers answer INVALID_RECORD.",
                &Totals::batches_refused);
  add_by_reason("batches_deferred", "Record batches whose client was told to try again.", &Totals::batches_deferred);
  if (server.store() != nullptr) add_state(families, server.store()->status());
  return prometheus::TextSerializer().Serialize(families);
}

std::string status_json(const Server& server) {
  boost::json::array sources;
  for (const auto& total : server.totals()) {
    boost::json::object counters;
    for (const auto& row : rows) counters[row.name] = total.*row.total;
    counters["batches_refused"] = object_of(total.batches_refused);
    if (server.store() != nullptr) counters["batches_deferred"] = object_of(total.batches_deferred);
    sources.push_back({{"name", total.source}, {"region", total.region}, {"counters", std::move(counters)}});
  }
  boost::json::array nodes;
  for (const auto& [id, address] : server.cluster().nodes())
    nodes.push_back({{"id", id}, {"address", to_string(address)}});
  boost::json::object status{{"version", MIRRORPID_VERSION},
                             {"ready", server.is_ready()},
                             {"sources", std::move(sources)},
                             {"destination_nodes", std::move(nodes)}};
  if (server.store() != nullptr) status["state"] = state_object(*server.store());
  return boost::json::serialize(status);
}

}  // namespace proxy
