#include "config/load.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <system_error>

#include "config/document.hpp"
#include "config/ports.hpp"
#include "config/reader.hpp"
#include "config/sources.hpp"

namespace config {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t file_size_max = 1U << 20U;  // bytes; more is no configuration, but a mistaken path

auto number_between(std::int64_t low, std::int64_t high) {
  return [low, high](std::string_view text) { return parse_number(text, low, high); };
}

auto duration_between(std::chrono::milliseconds low, std::chrono::milliseconds high) {
  return [low, high](std::string_view text) { return parse_duration(text, low, high); };
}

DestinationTls read_destination_tls(Reader& reader, const Entry& entry) {
  DestinationTls tls;
  tls.place = entry.key->place;
  const Section section(reader, *entry.value, tls.place, {"ca_file", "cert_file", "key_file", "server_name"});
  if (const auto text = section.read("ca_file", tls.ca_file, parse_readable_file)) tls.ca_file_place = text->place;
  if (const auto text = section.read("cert_file", tls.cert_file, parse_readable_file)) {
    tls.cert_file_place = text->place;
  }
  if (const auto text = section.read("key_file", tls.key_file, parse_readable_file)) tls.key_file_place = text->place;
  section.read("server_name", tls.server_name, parse_not_empty);

  if (section.find("cert_file") && !section.find("key_file")) section.require("key_file");
  if (section.find("key_file") && !section.find("cert_file")) section.require("cert_file");
  return tls;
}

void read_client(Reader& reader, const Entry& entry, Destination& destination) {
  const Section section(reader, *entry.value);
  for (const auto& [key, value] : section.entries()) {
    if (key->text == "bootstrap.servers" || key->text == "metadata.broker.list") {
      reader.complain(key->place, fmt::format("'{}' is set from 'destination.bootstrap_servers'", key->text));
      continue;
    }
    auto text = reader.text(*value);
    if (!text) continue;
    destination.client.emplace_back(key->text, std::move(text->value));
    destination.client_places.push_back(key->place);
  }
}

// Its own connections take their TLS from `client`, the forwarded ones from `tls`: one without the other is legal (a
// cluster has several listeners), and nearly always an oversight.
void warn_of_half_tls(Reader& reader, const Destination& destination) {
  for (std::size_t i = 0; i < destination.client.size(); ++i) {
    const auto& [name, value] = destination.client[i];
    if (name != "security.protocol") continue;
    const bool encrypted = value.ends_with("SSL") || value.ends_with("ssl");
    if (encrypted == destination.tls.has_value()) continue;
    reader.warn(destination.client_places[i],
                encrypted ? "this encrypts the program's own connections, but without 'destination.tls' the forwarded "
                            "ones are plain"
                          : "this leaves the program's own connections plain, but 'destination.tls' encrypts the "
                            "forwarded ones");
  }
}

Destination read_destination(Reader& reader, const Entry& entry) {
  Destination destination;
  const Section section(reader, *entry.value, entry.key->place, {"bootstrap_servers", "tls", "client", "hidden_apis"});
  const Entry* servers = section.require("bootstrap_servers");
  if (servers && reader.expect(*servers->value, YamlNode::Kind::list)) {
    if (servers->value->items.empty()) reader.complain(servers->value->place, "expected at least one host:port");
    for (const YamlNodePtr& item : servers->value->items) {
      if (auto server = reader.read(*item, parse_host_port)) {
        destination.bootstrap_servers.push_back(std::move(server->value));
      }
    }
  }
  const Entry* hidden = section.find("hidden_apis");
  if (hidden && reader.expect(*hidden->value, YamlNode::Kind::list)) {
    for (const YamlNodePtr& item : hidden->value->items) {
      if (auto key = reader.read(*item, number_between(0, std::numeric_limits<std::int16_t>::max()))) {
        destination.hidden_apis.push_back(static_cast<std::int16_t>(key->value));
      }
    }
  }
  if (const Entry* tls = section.find("tls")) destination.tls = read_destination_tls(reader, *tls);
  if (const Entry* client = section.find("client")) read_client(reader, *client, destination);
  warn_of_half_tls(reader, destination);
  return destination;
}

// `off`, or nothing: the defaults, or a mapping.
std::optional<State> read_state(Reader& reader, const Entry* entry) {
  constexpr std::size_t topic_size_max = 249;  // Kafka's
  static constexpr std::string_view topics_of_brokers[] = {
      ".", "..", "__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"};
  State state;
  if (!entry) return state;
  if (entry->value->kind == YamlNode::Kind::text) {
    const auto text = reader.text(*entry->value);
    if (text && (text->value == "off" || text->value == "false" || text->value == "no")) return std::nullopt;
    if (text) reader.complain(entry->value->place, in_quotes(text->written) + " is neither off nor a mapping");
    return state;
  }
  const Section section(reader, *entry->value, entry->key->place,
                        {"topic", "partitions", "replication_factor", "write_timeout", "producer_id_expiration"});
  section.read("topic", state.topic, [](std::string_view text) -> Parsed<std::string> {
    if (std::ranges::find(topics_of_brokers, text) != std::end(topics_of_brokers))
      return {{}, "is a name that brokers keep for themselves: choose another one"};
    return parse_name(text, topic_size_max);
  });
  section.read("partitions", state.partitions, number_between(1, 10'000));
  section.read("replication_factor", state.replication_factor,
               number_between(1, std::numeric_limits<std::int16_t>::max()));
  section.read("write_timeout", state.write_timeout, duration_between(100ms, 5min));
  section.read("producer_id_expiration", state.producer_id_expiration, duration_between(4h, 365 * 24h));
  return state;
}

Admin read_admin(Reader& reader, const Entry& entry, Ports& ports) {
  Admin admin;
  const Section section(reader, *entry.value, entry.key->place, {"listen"});
  if (const auto text = section.read_required("listen", admin.listen, parse_host_port)) {
    admin.listen_place = text->place;
    const int port = admin.listen.port;
    ports.add({admin.listen.host, port, port, {}, 0, "listen " + in_quotes(text->written), text->place});
  }
  return admin;
}

Log read_log(Reader& reader, const Entry& entry) {
  Log log;
  const Section section(reader, *entry.value, entry.key->place, {"level", "format"});
  section.read("level", log.level, [](std::string_view text) {
    return parse_choice<LogLevel>(text, {{"trace", LogLevel::trace},
                                         {"debug", LogLevel::debug},
                                         {"info", LogLevel::info},
                                         {"warn", LogLevel::warn},
                                         {"error", LogLevel::error}});
  });
  section.read("format", log.format, [](std::string_view text) {
    return parse_choice<LogFormat>(text, {{"text", LogFormat::text}, {"json", LogFormat::json}});
  });
  return log;
}

Limits read_limits(Reader& reader, const Entry& entry) {
  Limits limits;
  const Section section(reader, *entry.value, entry.key->place,
                        {"frame_size_max", "in_flight_max", "drain_timeout", "connect_timeout", "threads"});
  section.read("frame_size_max", limits.frame_size_max, [](std::string_view text) {
    return parse_size(text, 1024, std::numeric_limits<std::int32_t>::max());  // the size field of a frame is an int32
  });
  section.read("in_flight_max", limits.in_flight_max, number_between(1, 100'000));
  section.read("drain_timeout", limits.drain_timeout, duration_between(0ms, 1h));
  section.read("connect_timeout", limits.connect_timeout, duration_between(100ms, 5s));
  section.read("threads", limits.threads, number_between(0, 256));
  return limits;
}

Config read_config(Reader& reader, const YamlNode& root, const Place& start) {
  Config config;
  Ports ports;
  const Section section(reader, root, start, {"version", "destination", "state", "sources", "admin", "log", "limits"});
  section.read_required("version", config.version, [](std::string_view text) -> Parsed<int> {
    if (text == "1") return {1, {}};
    return {{}, "is no version that this program knows: write 1"};
  });
  if (const Entry* entry = section.require("destination")) config.destination = read_destination(reader, *entry);
  config.state = read_state(reader, section.find("state"));
  if (const Entry* entry = section.require("sources")) config.sources = read_sources(reader, *entry, ports);
  if (const Entry* entry = section.find("admin")) config.admin = read_admin(reader, *entry, ports);
  if (const Entry* entry = section.find("log")) config.log = read_log(reader, *entry);
  if (const Entry* entry = section.find("limits")) config.limits = read_limits(reader, *entry);
  ports.check(reader);
  return config;
}

struct FileText {
  std::string text;
  std::string problem;  // empty: none
};

FileText read_whole_file(const std::string& path) {
  const auto failure = [] { return "cannot be read: " + std::generic_category().message(errno); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return {{}, failure()};
  std::string text(file_size_max + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return {{}, failure()};
  if (text.size() > file_size_max) return {{}, "is larger than 1 MiB: not a configuration"};
  return {std::move(text), {}};
}

}  // namespace

std::string to_string(const Place& place) {
  return place.line == 0 ? place.file : fmt::format("{}:{}:{}", place.file, place.line, place.column);
}

std::string to_string(const Problem& problem) {
  return fmt::format("{}: {}", to_string(problem.place), problem.message);
}

std::optional<std::string> process_environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

Loaded load_text(std::string_view yaml, std::string file_name, const Environment& environment) {
  const Document document = parse_document(yaml, file_name);
  if (!document.problems.empty()) return {{}, document.problems, {}};

  const Place start = {std::move(file_name), 1, 1};
  YamlNode empty;
  empty.kind = YamlNode::Kind::mapping;
  empty.place = start;
  Reader reader(environment);
  Loaded loaded;
  const bool is_empty = !document.root || document.root->kind == YamlNode::Kind::nothing;
  loaded.config = read_config(reader, is_empty ? empty : *document.root, start);
  loaded.problems = reader.take_problems();
  loaded.warnings = reader.take_warnings();
  return loaded;
}

Loaded load_file(const std::string& path, const Environment& environment) {
  const FileText file = read_whole_file(path);
  if (!file.problem.empty()) return {{}, {{{path, 0, 0}, file.problem}}, {}};
  return load_text(file.text, path, environment);
}

}  // namespace config
