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
    {"batches_deferred", "Record batches answered with a retriable error until their salt is written.",
     &Totals::batches_deferred},
    {"possible_aliases", "Mapped producer ids past 31 bits.", &Totals::possible_aliases},
    {"null_records", "Null records fields made empty.", &Totals::null_records},
    {"rebootstraps", "Answers that the client meant another node.", &Totals::rebootstraps},
    {"nodes_left_out", "Addresses of nodes that have no listener.", &Totals::nodes_left_out},
};

prometheus::ClientMetric counter(double value, std::vector<prometheus::ClientMetric::Label> labels) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  return metric;
}

}  // namespace

std::string metrics_text(const Server& server) {
  const auto totals = server.totals();
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](const std::string& name, const char* help) -> prometheus::MetricFamily& {
    auto& family = families.emplace_back();
    family.name = "mirrorpid_" + name + "_total";
    family.help = help;
    family.type = prometheus::MetricType::Counter;
    return family;
  };
  for (const auto& row : rows) {
    auto& family = add(row.name, row.help);
    for (const auto& total : totals)
      family.metric.push_back(counter(static_cast<double>(total.*row.total), {{"source", total.source}}));
  }
  auto& refused = add("batches_refused", "Record batches made refusable, so that brokers answer INVALID_RECORD.");
  for (const auto& total : totals)
    for (const auto& [reason, count] : total.batches_refused)
      refused.metric.push_back(counter(static_cast<double>(count), {{"source", total.source}, {"reason", reason}}));
  return prometheus::TextSerializer().Serialize(families);
}

std::string status_json(const Server& server) {
  boost::json::array sources;
  for (const auto& total : server.totals()) {
    boost::json::object counters;
    for (const auto& row : rows) counters[row.name] = total.*row.total;
    boost::json::object refused;
    for (const auto& [reason, count] : total.batches_refused) refused[reason] = count;
    counters["batches_refused"] = std::move(refused);
    sources.push_back({{"name", total.source}, {"region", total.region}, {"counters", std::move(counters)}});
  }
  boost::json::array nodes;
  for (const auto& [id, address] : server.cluster().nodes())
    nodes.push_back({{"id", id}, {"address", to_string(address)}});
  return boost::json::serialize(boost::json::object{{"version", MIRRORPID_VERSION},
                                                    {"ready", server.is_ready()},
                                                    {"sources", std::move(sources)},
                                                    {"destination_nodes", std::move(nodes)}});
}

}  // namespace proxy
