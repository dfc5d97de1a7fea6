#include "proxy/cluster.hpp"

#include <algorithm>
#include <set>

#include "proxy/dial.hpp"
#include "proxy/log.hpp"
#include "proxy/rdkafka_conf.hpp"

namespace proxy {

std::vector<config::HostPort> ClusterMap::bootstrap_servers() const {
  const std::lock_guard lock(mutex_);
  return bootstrap_;
}

void ClusterMap::bootstrap_failed(const config::HostPort& server) {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(bootstrap_, server);
  if (at != bootstrap_.end()) std::rotate(at, at + 1, bootstrap_.end());
}

std::optional<config::HostPort> ClusterMap::find(std::int32_t node_id) const {
  const std::lock_guard lock(mutex_);
  const auto at = nodes_.find(node_id);
  if (at == nodes_.end()) return std::nullopt;
  return at->second;
}

ClusterMap::Nodes ClusterMap::update(const Nodes& nodes) {
  const std::lock_guard lock(mutex_);
  Nodes changed;
  if (nodes.empty()) return changed;
  for (const auto& [id, address] : nodes) {
    const auto at = nodes_.find(id);
    if (at == nodes_.end() || at->second != address) changed.emplace(id, address);
  }
  nodes_ = nodes;
  return changed;
}

ClusterMap::Nodes ClusterMap::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

void ClusterMap::request_refresh() {
  const std::lock_guard lock(mutex_);
  refresh_requested_ = true;
  wake_.notify_all();
}

bool ClusterMap::wait_for_refresh(std::chrono::milliseconds interval) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, ClusterWatcher::interval_min, [&] { return stopped_; });
  wake_.wait_for(lock, interval, [&] { return stopped_ || refresh_requested_; });
  refresh_requested_ = false;
  return !stopped_;
}

bool ClusterMap::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void ClusterMap::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wake_.notify_all();
}

namespace {

KafkaClient make_client(const config::Destination& destination, std::string& error) {
  auto conf = make_conf(destination, error);
  return conf ? make_client(RD_KAFKA_PRODUCER, std::move(conf), error) : nullptr;
}

std::string ask(rd_kafka_t* client, std::chrono::milliseconds timeout, ClusterMap::Nodes& nodes) {
  const rd_kafka_metadata_t* metadata = nullptr;
  // Not all topics, and no topic is known locally: the brokers alone.
  const auto error = rd_kafka_metadata(client, 0, nullptr, &metadata, static_cast<int>(timeout.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return rd_kafka_err2str(error);
  for (int i = 0; i < metadata->broker_cnt; ++i) {
    const auto& broker = metadata->brokers[i];
    nodes[broker.id] = {broker.host, static_cast<std::uint16_t>(broker.port)};
  }
  rd_kafka_metadata_destroy(metadata);
  return {};
}

bool is_advertised(const config::Source& source, std::int32_t node_id) {
  const auto& nodes = source.nodes;
  if (!nodes.map.empty()) return nodes.map.contains(node_id);
  return node_id >= nodes.first_node_id && std::int64_t{node_id} - nodes.first_node_id < nodes.count;
}

}  // namespace

ClusterWatcher::ClusterWatcher(const config::Destination& destination, ClusterMap& map,
                               std::vector<const config::Source*> sources)
    : destination_(destination), map_(map), sources_(std::move(sources)), thread_([this] { run(); }) {}

ClusterWatcher::~ClusterWatcher() {
  map_.stop();
  thread_.join();
}

std::string ClusterWatcher::check(const config::Destination& destination) {
  std::string error;
  make_client(destination, error);
  return error;
}

std::string ClusterWatcher::ask_once(const config::Destination& destination, std::chrono::milliseconds timeout,
                                     ClusterMap::Nodes& nodes) {
  std::string error;
  const auto client = make_client(destination, error);
  return client ? ask(client.get(), timeout, nodes) : error;
}

void ClusterWatcher::run() {
  // A call of librdkafka cannot be interrupted, so a long wait is made of short ones.
  constexpr std::chrono::seconds timeout{1};
  constexpr int attempts = 10;
  constexpr std::chrono::seconds connect_timeout{1};  // to a server, to tell why
  KafkaClient client;
  std::set<std::pair<std::string, std::int32_t>> reported;
  std::string last_error;
  do {
    std::string error;
    ClusterMap::Nodes nodes;
    if (!client) client = make_client(destination_, error);
    for (int i = 0; client && i < attempts && !map_.is_stopped(); ++i) {
      error = ask(client.get(), timeout, nodes);
      if (error.empty()) break;
    }
    if (map_.is_stopped()) return;
    if (!error.empty()) {
      // A new client begins at the bootstrap servers again; this one knows only nodes that may all be gone.
      client.reset();
      if (error != last_error)
        log::error("the destination does not tell its nodes; trying on",
                   {{"reason", error}, {"servers", explain_unreachable(destination_, connect_timeout)}});
      last_error = error;
      continue;
    }
    if (!last_error.empty()) log::info("the destination tells its nodes again");
    last_error.clear();
    for (const auto& [id, address] : map_.update(nodes)) {
      log::info("node", {{"id", std::to_string(id)}, {"address", to_string(address)}});
      for (const auto* source : sources_)
        if (!is_advertised(*source, id) && reported.emplace(source->name, id).second)
          log::error("a node of the destination has no listener: clients are not told about it; widen `nodes`",
                     {{"source", source->name}, {"node", std::to_string(id)}});
    }
  } while (map_.wait_for_refresh(interval));
}

}  // namespace proxy
