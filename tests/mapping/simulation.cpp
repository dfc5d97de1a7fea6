#include "tests/mapping/simulation.hpp"

#include <algorithm>
#include <array>
#include <iostream>

namespace mapping {
namespace {

constexpr Region shared_region{1000};
constexpr std::int32_t log_partitions = 2;

// Six regions behind the shared one: the first is that of the third source.
std::int64_t draw_scarce_salt(const CollisionKey& identity, int attempt) {
  const auto first = static_cast<std::uint64_t>(draw_salt(identity, 0));
  return static_cast<std::int64_t>(1 + (first % 2 + static_cast<std::uint64_t>(attempt)) % 6);
}

std::string milliseconds(Time time) {
  return std::to_string(time.time_since_epoch().count() % 100'000'000);
}

}  // namespace

Simulation::Simulation(const SimulationOptions& options)
    : options_(options), random_(options.seed), now_(std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}) {
  settings_.partitions = log_partitions;
  settings_.expiration = std::chrono::hours(24);
  settings_.slack = chance(70) ? settings_.expiration / 4 : settings_.expiration / 8;
  mood_.pace = settings_.slack / std::array{200, 20, 5}[draw(3)];
  mood_.late_percent = std::array{5, 20, 60}[draw(3)];
  mood_.failed_percent = std::array{3, 15, 40}[draw(3)];
  mood_.crash_percent = std::array{0, 1, 4}[draw(3)];
  settings_.protocol.draw = draw_scarce_salt;
  settings_.protocol.claims = options.relative != Relative::first_record_wins;
  settings_.protocol.reads_back = options.relative != Relative::acknowledged_claim;
  if (options.relative == Relative::tombstones_at_e) settings_.protocol.record_life = 1;

  sources_ = {{"cluster-a", shared_region}, {"cluster-b", shared_region}, {"cluster-c", {shared_region.value + 1}}};
  logs_.resize(log_partitions);
  TopicId topic;
  for (const std::int64_t pid : {std::int64_t{5}, std::int64_t{5} + (std::int64_t{1} << 31)})
    for (std::size_t source = 0; source < sources_.size(); ++source)
      for (const std::int32_t partition : {0, 1})
        producers_.push_back({source, topic, partition, {pid}, {}, {}, {}, false});
  for (int i = 0; i < options.proxies; ++i) {
    auto proxy = std::make_unique<Proxy>();
    proxy->number = static_cast<std::size_t>(i);
    proxies_.push_back(std::move(proxy));
  }
}

Simulation::~Simulation() = default;

void Simulation::trace(const std::string& what) const {
  if (options_.is_traced) std::cout << milliseconds(now_) << " " << what << "\n";
}

void Simulation::fail(const std::string& what) {
  trace("BROKEN: " + what);
  if (!failure_) failure_ = what + " (seed " + std::to_string(options_.seed) + ")";
}

CollisionKey Simulation::key(const Producer& producer) const {
  return {producer.topic_id, producer.partition, sources_[producer.source].cluster_id, producer.pid};
}

std::string Simulation::name(const Producer& producer) const {
  return sources_[producer.source].cluster_id + "/" + std::to_string(producer.pid.value) + "@" +
         std::to_string(producer.partition);
}

// ---- Proxies

void Simulation::start(std::size_t number, bool with_all_sources) {
  auto& proxy = *proxies_[number];
  proxy.incarnation = ++incarnations_;
  const auto third = settings_.slack / 3;
  proxy.skew = draw_duration(third) - third / 2;
  proxy.sources.assign(sources_.size(), std::nullopt);
  std::vector<Source> configured;
  while (configured.empty())
    for (std::size_t source = 0; source < sources_.size(); ++source) {
      // The third comes late.
      if (!with_all_sources && (source == 2 ? counts_.batches < 40 || chance(70) : chance(30))) continue;
      proxy.sources[source] = SourceIndex{static_cast<std::uint32_t>(configured.size())};
      configured.push_back(sources_[source]);
    }
  auto settings = settings_;
  settings.process_nonce = random_();
  proxy.state = std::make_unique<State>(settings, configured);
  proxy.positions.assign(log_partitions, 0);
  proxy.is_end_wanted.assign(log_partitions, false);
  proxy.has_seen_chained = false;
  proxy.last_hits.clear();
  proxy.first_come.clear();
  trace("proxy " + std::to_string(number) + " starts with " + std::to_string(configured.size()) + " sources");
  proxy.state->start();
  carry_out(number);
}

void Simulation::stop(std::size_t number) {
  trace("proxy " + std::to_string(number) + " crashes");
  proxies_[number]->state.reset();
  ++counts_.crashes;
}

void Simulation::carry_out(std::size_t number) {
  auto& proxy = *proxies_[number];
  for (const auto& command : proxy.state->take_commands()) {
    if (const auto* write = std::get_if<Write>(&command))
      schedule(number, *write);
    else
      proxy.is_end_wanted[static_cast<std::size_t>(std::get<ReadToEnd>(command).log_partition)] = true;
  }
  for (const auto& finished : proxy.state->take_finished())
    if (finished.hindrance == Hindrance::exhausted) trace("exhausted");
  counts_.lost_claims = std::max(counts_.lost_claims, proxy.state->counts().lost_claims);
}

void Simulation::schedule(std::size_t number, const Write& write) {
  ++counts_.writes;
  const auto late = settings_.slack / 3;
  const auto soon = late / 50;
  const auto land_at = now_ + draw_duration(is_faulty_ && chance(mood_.late_percent) ? late : soon);
  const bool is_failed = is_faulty_ && chance(mood_.failed_percent);
  const bool lands = !is_failed || chance(50);
  const auto answer_at = is_failed ? now_ + draw_duration(late) : land_at + draw_duration(soon);
  if (lands) events_.emplace(land_at, Event{write, std::nullopt});
  events_.emplace(answer_at, Event{std::nullopt, Answer{number, proxies_[number]->incarnation, write.id, !is_failed}});
}

bool Simulation::read_one(Proxy& proxy, std::int32_t log_partition) {
  const auto at = static_cast<std::size_t>(log_partition);
  const auto& entries = logs_[at].entries;
  const auto next = std::ranges::lower_bound(entries, proxy.positions[at], {}, &Entry::offset);
  if (next == entries.end()) {
    proxy.positions[at] = logs_[at].end;
    return false;
  }
  proxy.positions[at] = next->offset + 1;
  const auto value = next->value ? std::optional<ByteView>(*next->value) : std::nullopt;
  const auto applied = proxy.state->apply(log_partition, next->offset, next->key, value, now_ + proxy.skew);
  if (applied.kind != Applied::Kind::applied) fail("a record was not applied: " + applied.reason);
  carry_out(proxy.number);
  return true;
}

void Simulation::read_to_end(Proxy& proxy) {
  for (std::int32_t at = 0; at < log_partitions; ++at) {
    if (!proxy.is_end_wanted[static_cast<std::size_t>(at)]) continue;
    while (read_one(proxy, at)) {
    }
    proxy.is_end_wanted[static_cast<std::size_t>(at)] = false;
    proxy.state->at_end(at, now_ + proxy.skew);
    carry_out(proxy.number);
  }
}

// ---- The log

void Simulation::advance(Duration by) {
  const auto until = now_ + by;
  while (!events_.empty() && events_.begin()->first <= until) {
    const auto node = events_.extract(events_.begin());
    now_ = node.key();
    catch_up();
    if (const auto& write = node.mapped().landing) land(*write);
    if (const auto& answer = node.mapped().answer) {
      auto& proxy = *proxies_[answer->proxy];
      if (!proxy.state || proxy.incarnation != answer->incarnation) continue;
      if (answer->is_acknowledged)
        proxy.state->acknowledged(answer->write, now_ + proxy.skew);
      else
        proxy.state->failed(answer->write, now_ + proxy.skew);
      carry_out(answer->proxy);
    }
  }
  now_ = until;
  catch_up();
}

// No reader lags more than it may.
void Simulation::catch_up() {
  const auto unread_since = now_ - settings_.slack / 3;
  for (auto& proxy : proxies_) {
    if (!proxy->state) continue;
    for (std::int32_t at = 0; at < log_partitions; ++at) {
      const auto& entries = logs_[static_cast<std::size_t>(at)].entries;
      const auto is_late = [&] {
        const auto next =
            std::ranges::lower_bound(entries, proxy->positions[static_cast<std::size_t>(at)], {}, &Entry::offset);
        return next != entries.end() && next->appended <= unread_since;
      };
      while (is_late()) read_one(*proxy, at);
    }
  }
}

void Simulation::land(const Write& write) {
  auto& log = logs_[static_cast<std::size_t>(write.log_partition)];
  log.entries.push_back({log.end++, write.key, write.value, now_});
  const auto value = write.value ? std::optional<ByteView>(*write.value) : std::nullopt;
  const auto decoded = decode(write.key, value);
  if (const auto* collision = std::get_if<Collision>(&decoded)) {
    trace("lands " + std::to_string(log.end - 1) + ": record " + collision->key.source_cluster_id + "/" +
          std::to_string(collision->key.original_pid.value) + "@" + std::to_string(collision->key.partition) + " " +
          (collision->value
               ? "salt " + std::to_string(collision->value->salt) + " of " + milliseconds(collision->value->timestamp)
               : "deleted"));
    if (collision->value)
      salts_written_[collision->key].insert(collision->value->salt);
    else
      ++counts_.tombstones;
    check_slots(write.log_partition);
  } else if (const auto* claim = std::get_if<Claim>(&decoded)) {
    trace("lands " + std::to_string(log.end - 1) + ": claim " +
          (claim->value ? claim->value->source_cluster_id + "/" + std::to_string(claim->value->original_pid.value) +
                              "@" + std::to_string(claim->key.partition) + " salt " + std::to_string(claim->value->salt)
                        : "deleted"));
  } else {
    trace("lands " + std::to_string(log.end - 1) + ": registration " +
          std::get<Registration>(decoded).key.source_cluster_id);
  }
}

// No two identities have a record for one slot.
void Simulation::check_slots(std::int32_t log_partition) {
  std::map<CollisionKey, CollisionValue> records;
  for (const auto& entry : logs_[static_cast<std::size_t>(log_partition)].entries) {
    const auto decoded = decode(entry.key, entry.value ? std::optional<ByteView>(*entry.value) : std::nullopt);
    const auto* collision = std::get_if<Collision>(&decoded);
    if (!collision) continue;
    records.erase(collision->key);
    if (collision->value) records.emplace(collision->key, *collision->value);
  }
  std::set<SlotName> slots;
  for (const auto& [identity, value] : records) {
    const auto source = std::ranges::find(sources_, identity.source_cluster_id, &Source::cluster_id);
    const auto mapped = layout::pack(salted(source->region, value.salt), identity.original_pid);
    if (!slots.emplace(identity.topic_id, identity.partition, mapped).second) fail("two records hold one slot");
  }
}

void Simulation::compact(LogPartition& log) {
  trace("compaction");
  std::map<Bytes, std::int64_t> last;
  for (const auto& entry : log.entries) last[entry.key] = entry.offset;
  std::erase_if(log.entries, [&](const Entry& entry) {
    if (last[entry.key] != entry.offset) return true;
    return !entry.value && now_ - entry.appended > settings_.expiration;
  });
}

}  // namespace mapping
