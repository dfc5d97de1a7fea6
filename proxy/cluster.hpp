#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/config.hpp"

namespace proxy {

// Where the destination's nodes are: shared by all threads, asked once a connection. Nodes are kept when they go, until
// the cluster names others: an empty list of brokers says nothing about the cluster.
class ClusterMap {
 public:
  using Nodes = std::map<std::int32_t, config::HostPort>;

  explicit ClusterMap(std::vector<config::HostPort> bootstrap_servers) : bootstrap_(std::move(bootstrap_servers)) {}

  // The bootstrap servers, the one that answered last first.
  std::vector<config::HostPort> bootstrap_servers() const;
  void bootstrap_failed(const config::HostPort& server);

  std::optional<config::HostPort> find(std::int32_t node_id) const;
  // Returns the nodes whose address is new or another one now.
  Nodes update(const Nodes& nodes);
  Nodes nodes() const;

  // Asks for a new look at the cluster: after a failed dial, or when a client found another node than it meant.
  void request_refresh();
  // Waits for such a wish, or for `interval`. False: stop() was called.
  bool wait_for_refresh(std::chrono::milliseconds interval);
  void stop();
  bool is_stopped() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<config::HostPort> bootstrap_;
  Nodes nodes_;
  bool refresh_requested_ = false;
  bool stopped_ = false;
};

// Keeps a ClusterMap right: asks the cluster for its nodes every five seconds, and at once when asked to, over a
// connection of its own made by librdkafka with the properties of `destination.client`.
class ClusterWatcher {
 public:
  static constexpr std::chrono::seconds interval{5};
  static constexpr std::chrono::milliseconds interval_min{200};  // however often a refresh is asked for

  ClusterWatcher(const config::Destination& destination, ClusterMap& map, std::vector<const config::Source*> sources);
  ~ClusterWatcher();

  // What librdkafka says about `destination.client`, before anything is connected; empty: nothing.
  static std::string check(const config::Destination& destination);
  // Asks the cluster once. An error in librdkafka's words, or the nodes.
  static std::string ask_once(const config::Destination& destination, std::chrono::milliseconds timeout,
                              ClusterMap::Nodes& nodes);

 private:
  void run();

  const config::Destination& destination_;
  ClusterMap& map_;
  std::vector<const config::Source*> sources_;
  std::thread thread_;
};

}  // namespace proxy
