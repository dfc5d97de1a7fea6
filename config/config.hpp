#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/host_port.hpp"

namespace config {

// Where something stands in a file. Lines and columns count from 1, columns in bytes; line 0 is the file as a whole.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  bool operator==(const Place&) const = default;
};

// TLS of the connections that are forwarded. An empty name: not given.
struct DestinationTls {
  std::string ca_file;    // empty: the system's certificate authorities
  std::string cert_file;  // a client certificate, for clusters that ask for one; comes with key_file
  std::string key_file;
  std::string server_name;  // empty: the host that is connected to
  Place place;              // of the key `tls`
  Place ca_file_place;
  Place cert_file_place;
  Place key_file_place;
};

struct Destination {
  std::vector<HostPort> bootstrap_servers;  // at least one
  std::optional<DestinationTls> tls;        // none: plain connections
  // librdkafka properties of the program's own connections, in the file's order. Secret: no value may be printed.
  std::vector<std::pair<std::string, std::string>> client;
  std::vector<Place> client_places;       // where client[i] stands
  std::vector<std::int16_t> hidden_apis;  // API keys that clients are not told of
};

struct State {
  std::string topic = "__mirror_state";
  std::int32_t partitions = 50;
  std::int16_t replication_factor = 3;
  std::chrono::milliseconds write_timeout = std::chrono::seconds(10);  // 100 ms to 5 min
  // After so long without use an assignment may be forgotten: as long as brokers remember a producer, or longer.
  std::chrono::milliseconds producer_id_expiration = std::chrono::hours(24);  // 4 h to 365 d
};

// A node of the cluster that has a listener of its own because `nodes.map` names it. The two ports differ where a load
// balancer stands between.
struct MappedNode {
  HostPort advertise;
  std::uint16_t listen_port = 0;
};

// Which nodes of the cluster have a listener, and under which address clients are told to find it: either those from
// first_node_id on, at the ports from first_port on, or those of the map. A node of neither is out of range.
struct Nodes {
  std::string advertise;  // a host alone
  std::uint16_t first_port = 0;
  std::int32_t first_node_id = 0;
  std::int32_t count = 100;
  std::map<std::int32_t, MappedNode> map;  // by node id; not empty: the four above mean nothing
};

// TLS of what clients connect to. An empty name: not given.
struct ListenerTls {
  std::string cert_file;
  std::string key_file;
  std::string client_ca_file;  // empty: clients need no certificate
  // Which names clients must ask for (SNI); a leading "*." stands for one label. Empty: they may ask for any, or none.
  std::vector<std::string> server_names;
  Place place;  // of the key `tls`
  Place cert_file_place;
  Place key_file_place;
  Place client_ca_file_place;
};

// One source cluster. What only others can judge (is the cluster id a UUID, can the host be bound) comes with its
// place, so that their complaint looks like the ones made here.
struct Source {
  std::string name;                     // unique; 1 to 64 of letters, digits, '.', '_' and '-'
  std::string cluster_id;               // as written, unique, not judged here
  std::optional<std::uint32_t> region;  // wins over the one that follows from cluster_id
  HostPort listen;
  Nodes nodes;
  std::optional<ListenerTls> tls;  // none: plain connections

  Place place;             // of the source's first key
  Place cluster_id_place;  // of the value, as the two below
  Place region_place;
  Place listen_place;
  Place nodes_place;  // of the key `nodes`
};

struct Admin {
  HostPort listen;
  Place listen_place;
};

enum class LogLevel { trace, debug, info, warn, error };
enum class LogFormat { text, json };

struct Log {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;
};

struct Limits {
  std::uint32_t frame_size_max = 100U << 20U;                                   // bytes; 1 KiB to 2 GiB - 1
  std::uint32_t in_flight_max = 256;                                            // requests a connection; 1 to 100000
  std::chrono::milliseconds drain_timeout = std::chrono::seconds(30);           // 0 s to 1 h
  std::chrono::milliseconds connect_timeout = std::chrono::milliseconds(5000);  // 100 ms to 5 s
  std::uint32_t threads = 0;                                                    // 0: one a core; up to 256
};

struct Config {
  int version = 1;
  Destination destination;
  std::optional<State> state = State();  // none: no state topic
  std::vector<Source> sources;
  std::optional<Admin> admin;  // none: no endpoint
  Log log;
  Limits limits;
};

// What one node of the cluster gets: a socket, and the address that stands in responses in place of the node's own.
struct NodeListener {
  std::int32_t node_id = 0;
  HostPort bind;
  HostPort advertise;
};

// All of a source's nodes, by ascending id, bound on the host of its `listen`.
std::vector<NodeListener> node_listeners(const Source& source);

}  // namespace config
