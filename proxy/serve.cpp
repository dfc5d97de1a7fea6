#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "proxy/admin.hpp"
#include "proxy/commands.hpp"
#include "proxy/configuration.hpp"
#include "proxy/log.hpp"
#include "proxy/rdkafka_conf.hpp"
#include "proxy/server.hpp"

namespace proxy {
namespace {

std::string_view name_of(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::trace: return "trace";
    case config::LogLevel::debug: return "debug";
    case config::LogLevel::info: return "info";
    case config::LogLevel::warn: return "warn";
    case config::LogLevel::error: return "error";
  }
  return "info";
}

void warn_of_scram(const config::Config& config) {
  if (has_broken_scram(config.destination))
    log::error(
        "this librdkafka cannot log in by SCRAM at a broker from 4.0 on: it needs 2.6.1 or newer (the container "
        "image has it)",
        {{"librdkafka", rd_kafka_version_str()}});
}

bool is_signal_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

// Sources that share a region are kept apart by salts; people should know which of them.
void warn_of_shared_regions(const config::Config& config, const Server& server) {
  if (server.store() == nullptr) return;
  std::map<std::string, std::string> names;  // by cluster id; others' sources have none here
  std::set<std::uint32_t> regions;
  for (const auto& source : config.sources) {
    names[cluster_id_of(source)] = source.name;
    regions.insert(region_of(source)->value);
  }
  std::map<std::uint32_t, std::set<std::string>> owners, salted;
  for (const auto& registered : server.store()->registrations()) {
    const auto name = names.find(registered.cluster_id);
    const auto who =
        name == names.end() ? registered.cluster_id : fmt::format("{} ({})", name->second, registered.cluster_id);
    (registered.is_owner ? owners : salted)[registered.region.value].insert(who);
  }
  for (const auto region : regions)
    if (!salted[region].empty())
      log::warn("sources share a region: its owner's producers keep their natural ids, the others' take salts",
                {{"region", std::to_string(region)},
                 {"owner", fmt::format("{}", fmt::join(owners[region], ", "))},
                 {"salted", fmt::format("{}", fmt::join(salted[region], ", "))}});
}

void log_totals(const Server& server) {
  for (const auto& total : server.totals()) {
    std::uint64_t refused = 0;
    for (const auto& [reason, count] : total.batches_refused) refused += count;
    log::info("totals", {{"source", total.source},
                         {"connections", std::to_string(total.connections)},
                         {"requests", std::to_string(total.requests)},
                         {"responses", std::to_string(total.responses)},
                         {"batches_mapped", std::to_string(total.batches_mapped)},
                         {"batches_passed", std::to_string(total.batches_passed)},
                         {"batches_unmarked", std::to_string(total.batches_unmarked)},
                         {"batches_refused", std::to_string(refused)},
                         {"possible_aliases", std::to_string(total.possible_aliases)}});
  }
}

}  // namespace

int serve(const std::string& config_path) {
  const auto config = load_configuration(config_path);
  if (!config) return exit_usage;
  log::configure(name_of(config->log.level), config->log.format == config::LogFormat::json);

  // Blocked before any thread starts, so that this one alone takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  warn_of_scram(*config);
  std::atomic<bool> has_failed = false;
  Server server(*config, [&has_failed] {
    has_failed = true;
    kill(getpid(), SIGTERM);
  });
  if (const auto error = server.prepare(); !error.empty()) {
    log::error(error);
    return exit_failed;
  }
  std::optional<Admin> admin;
  if (config->admin) {
    admin.emplace(config->admin->listen, server);
    if (const auto error = admin->start(); !error.empty()) {
      log::error(error);
      return exit_failed;
    }
  }
  if (const auto error = server.start(is_signal_pending); !error.empty()) {
    log::error(error);
    return exit_failed;
  }
  warn_of_shared_regions(*config, server);
  for (const auto& source : config->sources)
    log::info("source", {{"name", source.name},
                         {"cluster_id", source.cluster_id},
                         {"region", std::to_string(region_of(source)->value)},
                         {"listen", to_string(source.listen)}});
  log::info("serving", {{"listeners", std::to_string(server.listeners())}, {"version", MIRRORPID_VERSION}});

  int signal_number = 0;
  sigwait(&signals, &signal_number);
  log::info("stopping: what is in flight is answered first", {{"signal", strsignal(signal_number)}});
  // Who asks twice does not want to wait.
  std::thread([signals] {
    int again = 0;
    sigwait(&signals, &again);
    log::error("stopped at once, at a second signal: what was in flight is lost");
    _exit(exit_failed);
  }).detach();
  const bool all_through = server.stop();
  log_totals(server);
  if (!all_through) {
    log::error("stopped before everything was through: `limits.drain_timeout` has passed");
    return exit_failed;
  }
  log::info("stopped");
  return has_failed ? exit_failed : exit_done;
}

}  // namespace proxy
