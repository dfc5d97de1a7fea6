#include "proxy/rdkafka_conf.hpp"

#include <algorithm>
#include <cassert>

#include "proxy/log.hpp"

namespace proxy {
namespace {

// Lines of librdkafka become lines of ours, on the level below: what matters is said again by who asked.
void log_line(const rd_kafka_t*, int level, const char* facility, const char* text) {
  log::write(level <= 4 ? log::Level::debug : log::Level::trace, "librdkafka",
             {{"facility", facility}, {"text", text}});
}

bool has(const config::Destination& destination, std::string_view property) {
  return std::ranges::any_of(destination.client, [&](const auto& pair) { return pair.first == property; });
}

// Empty: librdkafka takes it. It repeats the value in some of its own messages, and the value may be a secret.
std::string try_property(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), nullptr, 0) == RD_KAFKA_CONF_OK) return {};
  const bool is_unknown = rd_kafka_conf_set(conf, name.c_str(), "", nullptr, 0) == RD_KAFKA_CONF_UNKNOWN;
  return "destination.client: " + name +
         (is_unknown ? " is no property of librdkafka " : " has a value that librdkafka does not take; version ") +
         rd_kafka_version_str();
}

}  // namespace

std::vector<std::pair<std::size_t, std::string>> refused_properties(const config::Destination& destination) {
  const KafkaConf conf(rd_kafka_conf_new());
  std::vector<std::pair<std::size_t, std::string>> refused;
  for (std::size_t i = 0; i < destination.client.size(); ++i) {
    const auto& [name, value] = destination.client[i];
    if (auto why = try_property(conf.get(), name, value); !why.empty()) refused.emplace_back(i, std::move(why));
  }
  return refused;
}

KafkaConf make_conf(const config::Destination& destination, std::string& error) {
  KafkaConf conf(rd_kafka_conf_new());
  const auto set = [&](const std::string& name, const std::string& value) {
    if (error.empty()) error = try_property(conf.get(), name, value);
  };
  rd_kafka_conf_set_log_cb(conf.get(), log_line);
  std::string servers;
  for (const auto& server : destination.bootstrap_servers) servers += (servers.empty() ? "" : ",") + to_string(server);
  set("bootstrap.servers", servers);
  set("client.id", "mirrorpid");
  set("socket.connection.setup.timeout.ms", "5000");
  set("allow.auto.create.topics", "false");
  if (destination.tls) {
    if (!has(destination, "security.protocol")) set("security.protocol", "ssl");
    const auto& tls = *destination.tls;
    if (!tls.ca_file.empty() && !has(destination, "ssl.ca.location")) set("ssl.ca.location", tls.ca_file);
    if (!tls.cert_file.empty() && !has(destination, "ssl.certificate.location")) {
      set("ssl.certificate.location", tls.cert_file);
      set("ssl.key.location", tls.key_file);
    }
  }
  for (const auto& [name, value] : destination.client) set(name, value);
  if (!error.empty()) return nullptr;
  return conf;
}

void set(KafkaConf& conf, const char* name, const std::string& value) {
  [[maybe_unused]] const auto result = rd_kafka_conf_set(conf.get(), name, value.c_str(), nullptr, 0);
  assert(result == RD_KAFKA_CONF_OK);
}

KafkaClient make_client(rd_kafka_type_t type, KafkaConf conf, std::string& error) {
  char why[512] = "";
  KafkaClient client(rd_kafka_new(type, conf.get(), why, sizeof why));
  if (client)
    static_cast<void>(conf.release());  // the client's now
  else
    error = std::string("destination.client: ") + why;
  return client;
}

bool has_broken_scram(const config::Destination& destination) {
  constexpr int first_good = 0x020601ff;
  return rd_kafka_version() < first_good &&
         std::ranges::any_of(
             destination.client,
             [](const auto& property) {
               return (property.first == "sasl.mechanism" || property.first == "sasl.mechanisms") &&
                      property.second.starts_with("SCRAM");
             });
}

}  // namespace proxy
