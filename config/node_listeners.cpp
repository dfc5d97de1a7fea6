#include "config/config.hpp"

namespace config {

std::vector<NodeListener> node_listeners(const Source& source) {
  const Nodes& nodes = source.nodes;
  std::vector<NodeListener> listeners;
  listeners.reserve(nodes.map.empty() ? static_cast<std::size_t>(nodes.count) : nodes.map.size());
  for (const auto& [node_id, node] : nodes.map) {
    listeners.push_back({node_id, {source.listen.host, node.listen_port}, node.advertise});
  }
  if (!listeners.empty()) return listeners;

  for (std::int32_t i = 0; i < nodes.count; ++i) {
    const auto port = static_cast<std::uint16_t>(nodes.first_port + i);
    listeners.push_back({nodes.first_node_id + i, {source.listen.host, port}, {nodes.advertise, port}});
  }
  return listeners;
}

}  // namespace config
