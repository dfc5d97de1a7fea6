#include "proxy/state_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <map>
#include <set>

#include "mapping/state.hpp"
#include "proxy/configuration.hpp"
#include "proxy/log.hpp"
#include "proxy/server.hpp"
#include "proxy/state_reader.hpp"
#include "proxy/state_refusal.hpp"
#include "proxy/state_topic.hpp"

namespace proxy {
namespace {

namespace json = boost::json;
using mapping::State;
using Seconds = std::chrono::seconds;

constexpr Seconds patience{60};  // without anything being read

void complain(const std::string& line) {
  std::fprintf(stderr, "mirrorpid: %s\n", line.c_str());
}

mapping::Time now() {
  return std::chrono::floor<mapping::Duration>(std::chrono::system_clock::now());
}

// The two largest units of how long ago something was.
std::string in_words(Seconds age) {
  const auto count = std::max<std::int64_t>(age.count(), 0);
  if (count < 60) return fmt::format("{}s", count);
  if (count < 3600) return fmt::format("{}m{}s", count / 60, count % 60);
  if (count < 86400) return fmt::format("{}h{}m", count / 3600, count / 60 % 60);
  return fmt::format("{}d{}h", count / 86400, count / 3600 % 24);
}

Seconds age_of(mapping::Time time, mapping::Time at) {
  return std::chrono::floor<Seconds>(at - time);
}

// What is in the topic, judged as a proxy judges it: by a State, which has no sources of its own and so nothing to
// write.
class Listing {
 public:
  // Empty: it is read; else why not.
  std::string read(const config::Destination& destination, const config::State& config);

  std::vector<State::Salted> salted() const { return state_->list(); }
  std::vector<State::RegisteredSource> registrations() const { return state_->registrations(); }
  std::int32_t partitions() const { return partitions_; }

 private:
  std::optional<State> state_;
  std::int32_t partitions_ = 0;
};

std::string Listing::read(const config::Destination& destination, const config::State& config) {
  const std::atomic<bool> never = false;
  StateTopic topic(destination, config, config.producer_id_expiration);
  if (const auto found = topic.prepare(StateTopic::Use::read, never); found.kind != StateTopic::Outcome::Kind::done)
    return fmt::format("the state topic cannot be read: {}", found.reason);
  partitions_ = topic.partitions();
  mapping::StateSettings settings;
  settings.partitions = partitions_;
  settings.expiration = config.producer_id_expiration;
  state_.emplace(settings, std::vector<mapping::Source>{});

  std::string failure;
  auto last_read = std::chrono::steady_clock::now();
  std::set<std::int32_t> left;
  StateReader::Events events;
  events.record = [&](auto partition, auto offset, auto key, auto value) {
    last_read = std::chrono::steady_clock::now();
    const auto applied = state_->apply(partition, offset, key, value, now());
    if (applied.kind == mapping::Applied::Kind::undecodable || applied.kind == mapping::Applied::Kind::refused)
      complain(
          fmt::format("the record at offset {} of partition {} is left out: {}", offset, partition, applied.reason));
  };
  events.end = [&](auto partition) { left.erase(partition); };
  events.error = [&](auto partition, auto, auto error, const auto& text) {
    if (auto sentence = partition < 0 ? std::string() : explain_refusal(StateOperation::read, error, config.topic);
        !sentence.empty())
      failure = std::move(sentence);
    log::debug("the reader of the state topic", {{"reason", text}});
  };
  events.gone = [&] { failure = "the state topic was deleted while it was read"; };
  events.lost = [&](auto) { failure = "the state topic was made anew while it was read"; };
  Wake wake;
  const auto reader = StateReader::make(destination, config.topic, partitions_, wake, std::move(events), failure);
  if (!reader) return failure;
  for (std::int32_t partition = 0; partition < partitions_; ++partition) {
    left.insert(partition);
    reader->read_to_end(partition);
  }
  while (!left.empty() && failure.empty()) {
    constexpr int records_at_a_time = 1000;
    if (!reader->poll(records_at_a_time)) wake.wait(Seconds(1));
    if (std::chrono::steady_clock::now() - last_read > patience)
      failure = fmt::format("{} partitions of the state topic do not answer", left.size());
  }
  return failure;
}

// Who is who: names where the configuration has them, cluster ids always.
class Names {
 public:
  explicit Names(const config::Config& config) {
    for (const auto& source : config.sources) names_[cluster_id_of(source)] = source.name;
  }
  std::string find(const std::string& cluster_id) const {
    const auto at = names_.find(cluster_id);
    return at == names_.end() ? "" : at->second;
  }
  std::string show(const std::string& cluster_id) const {
    const auto name = find(cluster_id);
    return name.empty() ? cluster_id : fmt::format("{} ({})", name, cluster_id);
  }
  bool is_meant(const std::string& cluster_id, const std::string& wanted) const {
    return wanted.empty() || wanted == cluster_id || wanted == find(cluster_id);
  }

 private:
  std::map<std::string, std::string> names_;  // by cluster id
};

// A region as all log partitions together have it. Each of them has an owner of its own: who was first there.
struct RegionOfMany {
  std::map<std::string, std::int32_t> owned;  // log partitions, by cluster id
  std::set<std::string> others;               // who take salts in some log partition
};

std::map<std::uint32_t, RegionOfMany> regions_of(const Listing& listing) {
  std::map<std::uint32_t, RegionOfMany> regions;
  for (const auto& registered : listing.registrations()) {
    auto& region = regions[registered.region.value];
    if (registered.is_owner)
      ++region.owned[registered.cluster_id];
    else
      region.others.insert(registered.cluster_id);
  }
  return regions;
}

std::string hexadecimal(mapping::ProducerId pid) {
  return fmt::format("0x{:016x}", static_cast<std::uint64_t>(pid.value));
}

void print_text(const std::vector<State::Salted>& salted, const Listing& listing, const Names& names) {
  for (const auto& [key, value, region] : salted) {
    const auto pid = mapping::layout::pack(region, key.original_pid);
    std::printf("%s\n",
                fmt::format("source {}, topic {}, partition {}, producer {}: salt {}, region {} (0x{:08x}), id {} {}, "
                            "beside {}, {} old",
                            names.show(key.source_cluster_id), key.topic_id.text(), key.partition,
                            key.original_pid.value, value.salt, region.value, region.value, pid.value, hexadecimal(pid),
                            names.show(value.colliding_cluster_id), in_words(age_of(value.timestamp, now())))
                    .c_str());
  }
  for (const auto& [number, region] : regions_of(listing)) {
    auto line = fmt::format("region {} (0x{:08x}):", number, number);
    for (const auto& [cluster_id, count] : region.owned)
      line += fmt::format(" owner {} in {} of {} partitions;", names.show(cluster_id), count, listing.partitions());
    for (const auto& cluster_id : region.others) line += fmt::format(" salted: {};", names.show(cluster_id));
    line.pop_back();
    std::printf("%s\n", line.c_str());
  }
  std::fprintf(stderr, "%zu salted producers\n", salted.size());
}

void print_json(const std::vector<State::Salted>& salted, const Listing& listing, const Names& names,
                const std::string& topic) {
  json::array all;
  for (const auto& [key, value, region] : salted) {
    const auto pid = mapping::layout::pack(region, key.original_pid);
    all.push_back({{"source", names.find(key.source_cluster_id)},
                   {"cluster_id", key.source_cluster_id},
                   {"topic_id", key.topic_id.text()},
                   {"partition", key.partition},
                   {"pid", std::to_string(key.original_pid.value)},
                   {"salt", std::to_string(value.salt)},
                   {"region", region.value},
                   {"mapped", std::to_string(pid.value)},
                   {"mapped_hex", hexadecimal(pid)},
                   {"colliding_cluster_id", value.colliding_cluster_id},
                   {"timestamp_ms", value.timestamp.time_since_epoch().count()},
                   {"age_seconds", age_of(value.timestamp, now()).count()}});
  }
  json::array regions;
  for (const auto& [number, region] : regions_of(listing)) {
    json::array owners;
    for (const auto& [cluster_id, count] : region.owned)
      owners.push_back({{"source", names.find(cluster_id)}, {"cluster_id", cluster_id}, {"log_partitions", count}});
    json::array others;
    for (const auto& cluster_id : region.others)
      others.push_back({{"source", names.find(cluster_id)}, {"cluster_id", cluster_id}});
    regions.push_back({{"region", number}, {"owners", owners}, {"salted", others}});
  }
  const json::object document{
      {"state_topic", topic}, {"partitions", listing.partitions()}, {"assignments", all}, {"regions", regions}};
  std::printf("%s\n", json::serialize(document).c_str());
}

}  // namespace

int state_list(const StateListOptions& options) {
  const auto config = load_configuration(options.config_path);
  if (!config) return exit_usage;
  if (!config->state) {
    complain("this configuration has no state topic (`state: off`)");
    return exit_usage;
  }
  const auto topic_id = mapping::TopicId::parse(options.topic_id);
  if (!options.topic_id.empty() && !topic_id) {
    complain(fmt::format("'{}' is no topic id: write its 22 characters, as kafka-topics.sh --describe prints them",
                         options.topic_id));
    return exit_usage;
  }
  log::configure("warn", false);
  Listing listing;
  if (const auto failure = listing.read(config->destination, *config->state); !failure.empty()) {
    complain(failure);
    return exit_failed;
  }
  const Names names(*config);
  auto salted = listing.salted();
  std::erase_if(salted, [&](const State::Salted& entry) {
    return (topic_id && entry.key.topic_id != *topic_id) ||
           !names.is_meant(entry.key.source_cluster_id, options.source);
  });
  if (options.format == Format::json)
    print_json(salted, listing, names, config->state->topic);
  else
    print_text(salted, listing, names);
  return exit_done;
}

}  // namespace proxy
