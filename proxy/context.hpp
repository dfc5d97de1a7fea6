#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "codec/endpoints.hpp"
#include "config/config.hpp"
#include "mapping/pid_mapper.hpp"
#include "proxy/cluster.hpp"
#include "proxy/tls.hpp"

namespace proxy {

// What all sessions of a source share. Made at start and never changed.
struct SourceContext {
  std::size_t index;  // of its counters
  std::string name;
  mapping::PidMapper mapper;
  std::map<std::int32_t, codec::Endpoint> endpoints;  // where clients reach a node
  codec::Advertise advertise;                         // the same, as the codec asks for it
  TlsContext tls;                                     // empty: plain
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
  ClusterMap& cluster;
};

}  // namespace proxy
