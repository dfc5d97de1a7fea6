#include "config/sources.hpp"

#include <fmt/core.h>

#include <limits>
#include <map>

namespace config {

namespace {

constexpr int port_max = 65535;
constexpr std::int64_t node_id_max = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t name_size_max = 64;

Parsed<std::string> parse_source_name(std::string_view text) {
  return parse_name(text, name_size_max);
}
Parsed<std::int64_t> parse_node_id(std::string_view text) {
  return parse_number(text, 0, node_id_max);
}
Parsed<std::int64_t> parse_node_count(std::string_view text) {
  return parse_number(text, 1, port_max);
}

// "ports 19100 to 19199"; where a variable would show through: "ports from ${PORT} on".
std::string range_label(std::string_view what, const Text& first, std::int64_t first_number, std::int64_t last_number,
                        bool secret) {
  if (secret) return fmt::format("{} from {} on", what, in_quotes(first.written));
  return fmt::format("{} {} to {}", what, first_number, last_number);
}

void read_consecutive_nodes(Reader& reader, const Section& section, Source& source, Ports& ports) {
  Nodes& nodes = source.nodes;
  const auto advertise = section.read_required("advertise", nodes.advertise, parse_advertised_host);
  const auto first_port = section.read_required("first_port", nodes.first_port, parse_port);
  const auto first_node_id = section.read("first_node_id", nodes.first_node_id, parse_node_id);
  const auto count = section.read("count", nodes.count, parse_node_count);
  if (section.find("count") && !count) return;  // no range to judge
  const bool secret_count = count && count->from_environment;

  if (first_node_id) {
    const std::int64_t last = std::int64_t{nodes.first_node_id} + nodes.count - 1;
    if (last > node_id_max) {
      const bool secret = secret_count || first_node_id->from_environment;
      const std::string label = range_label("node ids", *first_node_id, nodes.first_node_id, last, secret);
      reader.complain(first_node_id->place, fmt::format("{} go past {}", label, node_id_max));
    }
  }
  if (first_port) {
    const int last = nodes.first_port + nodes.count - 1;
    const bool secret = secret_count || first_port->from_environment;
    if (last > port_max) {
      const std::string label = range_label("ports", *first_port, nodes.first_port, last, secret);
      reader.complain(first_port->place, fmt::format("{} go past {}", label, port_max));
      return;
    }
    const std::string label = range_label("node ports", *first_port, nodes.first_port, last, secret);
    ports.add(
        {source.listen.host, nodes.first_port, last, nodes.advertise, nodes.first_port, label, first_port->place});
  }
}

// `host:port`, or {advertise: host:port, listen_port: N}.
std::optional<Read<MappedNode>> read_mapped_node(Reader& reader, const Entry& entry) {
  MappedNode node;
  if (entry.value->kind != YamlNode::Kind::mapping) {
    auto address = reader.read(*entry.value, parse_advertised_address);
    if (!address) return std::nullopt;
    node.listen_port = address->value.port;
    node.advertise = std::move(address->value);
    return Read<MappedNode>{std::move(node), std::move(address->text)};
  }
  const Section section(reader, *entry.value, entry.key->place, {"advertise", "listen_port"});
  const auto advertise = section.read_required("advertise", node.advertise, parse_advertised_address);
  auto listen_port = section.read_required("listen_port", node.listen_port, parse_port);
  if (!advertise || !listen_port) return std::nullopt;
  return Read<MappedNode>{std::move(node), std::move(*listen_port)};
}

void read_node_map(Reader& reader, const Entry& entry, Source& source, Ports& ports) {
  const Section section(reader, *entry.value);
  if (entry.value->kind == YamlNode::Kind::mapping && entry.value->entries.empty()) {
    reader.complain(entry.value->place, "expected at least one node, as in {7: \"kafka-7.example:9092\"}");
  }
  for (const Entry& each : section.entries()) {
    const auto node_id = parse_node_id(each.key->text);
    if (!node_id.value) reader.complain(each.key->place, "a key of 'map' " + node_id.problem);
    auto node = read_mapped_node(reader, each);
    if (!node_id.value || !node) continue;

    const int port = node->value.listen_port;
    ports.add({source.listen.host, port, port, node->value.advertise.host, node->value.advertise.port,
               fmt::format("node {}'s {}", *node_id.value, in_quotes(node->text.written)), node->text.place});
    const bool is_new =
        source.nodes.map.emplace(static_cast<std::int32_t>(*node_id.value), std::move(node->value)).second;
    if (!is_new) reader.complain(each.key->place, fmt::format("node {} is mapped twice", *node_id.value));
  }
}

void read_nodes(Reader& reader, const Entry& entry, Source& source, Ports& ports) {
  source.nodes_place = entry.key->place;
  const Section section(reader, *entry.value, entry.key->place,
                        {"advertise", "first_port", "first_node_id", "count", "map"});
  const Entry* map = section.find("map");
  if (!map) {
    if (entry.value->kind == YamlNode::Kind::mapping) read_consecutive_nodes(reader, section, source, ports);
    return;
  }
  for (const Entry& other : section.entries()) {
    if (&other == map) continue;
    reader.complain(other.key->place, fmt::format("'{}' cannot stand beside 'map'", other.key->text));
  }
  read_node_map(reader, *map, source, ports);
}

// A host name; "*." before it stands for any one label.
Parsed<std::string> parse_server_name(std::string_view text) {
  constexpr std::size_t host_name_size_max = 253;
  const auto host = text.starts_with("*.") ? text.substr(2) : text;
  if (auto name = parse_name(host, host_name_size_max); !name.problem.empty())
    return {{}, "is no host name: write one like mirrorpid.example or *.mirrorpid.example"};
  return {std::string(text), {}};
}

ListenerTls read_listener_tls(Reader& reader, const Entry& entry) {
  ListenerTls tls;
  tls.place = entry.key->place;
  const Section section(reader, *entry.value, tls.place, {"cert_file", "key_file", "client_ca_file", "server_names"});
  if (const auto text = section.read_required("cert_file", tls.cert_file, parse_readable_file)) {
    tls.cert_file_place = text->place;
  }
  if (const auto text = section.read_required("key_file", tls.key_file, parse_readable_file)) {
    tls.key_file_place = text->place;
  }
  if (const auto text = section.read("client_ca_file", tls.client_ca_file, parse_readable_file)) {
    tls.client_ca_file_place = text->place;
  }
  const Entry* names = section.find("server_names");
  if (names && reader.expect(*names->value, YamlNode::Kind::list)) {
    if (names->value->items.empty()) reader.complain(names->value->place, "expected at least one host name");
    for (const YamlNodePtr& item : names->value->items)
      if (auto name = reader.read(*item, parse_server_name)) tls.server_names.push_back(std::move(name->value));
  }
  return tls;
}

// What no two sources may share, by value.
class Unique {
 public:
  Unique(Reader& reader, std::string_view what) : reader_(reader), what_(what) {}

  void add(const Text& text) {
    const auto [first, is_new] = places_.emplace(text.value, text.place);
    if (is_new) return;
    reader_.complain(text.place, fmt::format("{} {} is already that of the source at {}", what_,
                                             in_quotes(text.written), to_string(first->second)));
  }

 private:
  Reader& reader_;
  std::string_view what_;
  std::map<std::string, Place> places_;
};

Source read_source(Reader& reader, const YamlNode& node, Unique& names, Unique& cluster_ids, Ports& ports) {
  Source source;
  source.place = node.place;
  const Section section(reader, node, node.place, {"name", "cluster_id", "region", "listen", "nodes", "tls"});

  if (const auto text = section.read_required("name", source.name, parse_source_name)) names.add(*text);
  if (const auto text = section.read_required("cluster_id", source.cluster_id, parse_not_empty)) {
    source.cluster_id_place = text->place;
    cluster_ids.add(*text);
  }
  std::uint32_t region = 0;
  if (const auto text = section.read("region", region, parse_region)) {
    source.region = region;
    source.region_place = text->place;
  }
  if (const auto text = section.read_required("listen", source.listen, parse_host_port)) {
    source.listen_place = text->place;
    const int port = source.listen.port;
    ports.add({source.listen.host, port, port, {}, 0, "listen " + in_quotes(text->written), text->place});
  }
  if (const Entry* nodes = section.require("nodes")) read_nodes(reader, *nodes, source, ports);
  if (const Entry* tls = section.find("tls")) source.tls = read_listener_tls(reader, *tls);
  return source;
}

}  // namespace

std::vector<Source> read_sources(Reader& reader, const Entry& entry, Ports& ports) {
  std::vector<Source> sources;
  if (!reader.expect(*entry.value, YamlNode::Kind::list)) return sources;
  if (entry.value->items.empty()) reader.complain(entry.value->place, "expected at least one source");
  Unique names(reader, "name");
  Unique cluster_ids(reader, "cluster_id");
  for (const YamlNodePtr& item : entry.value->items) {
    sources.push_back(read_source(reader, *item, names, cluster_ids, ports));
  }
  return sources;
}

}  // namespace config
