#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "codec/endpoints.hpp"
#include "config/config.hpp"
#include "mapping/pid_mapper.hpp"
#include "proxy/cluster.hpp"
#include "proxy/collisions.hpp"
#include "proxy/tls.hpp"

namespace proxy {

// What has been logged already and is logged once. It keeps as many as a log should have of them.
class LoggedOnce {
 public:
  static constexpr std::size_t size_max = 1024;

  bool is_new(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    return numbers_.size() < size_max && numbers_.insert(number).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::int64_t> numbers_;
};

// What all sessions of a source share. Made at start and never changed.
struct SourceContext {
  std::size_t index;  // of its counters
  std::string name;
  mapping::PidMapper mapper;
  std::map<std::int32_t, codec::Endpoint> endpoints;                     // where clients reach a node
  codec::Advertise advertise;                                            // the same, as the codec asks for it
  TlsContext tls;                                                        // empty: plain
  std::unique_ptr<LoggedOnce> aliases = std::make_unique<LoggedOnce>();  // producer ids past 31 bits
  std::unique_ptr<LoggedOnce> left_out_nodes = std::make_unique<LoggedOnce>();
  std::unique_ptr<LoggedOnce> proxies_behind = std::make_unique<LoggedOnce>();  // 0: another mirrorpid is there
};

// What a listener stands for: a node of the destination, or for a source's own listener any bootstrap server.
struct ListenerContext {
  const SourceContext& source;
  std::optional<std::int32_t> node_id;
  config::HostPort bound;
};

// What all sessions share.
struct ServerContext {
  config::Limits limits;
  TlsContext destination_tls;  // empty: plain
  std::string destination_server_name;
  std::span<const std::int16_t> hidden_apis;  // of the configuration
  ClusterMap& cluster;
  CollisionContext* collisions = nullptr;    // nothing with `state: off`
  std::chrono::milliseconds hold_timeout{};  // how long a batch without an answer waits for its salt
};

}  // namespace proxy
