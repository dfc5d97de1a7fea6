#include "proxy/server.hpp"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <future>

#include "config/load.hpp"
#include "mapping/cluster_id.hpp"
#include "proxy/listen.hpp"
#include "proxy/log.hpp"
#include "proxy/rdkafka_conf.hpp"
#include "proxy/session.hpp"

namespace proxy {
namespace {

// Each connection takes two descriptors, so the listeners may take half of what there is.
std::string raise_descriptor_limit(std::size_t listeners) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  constexpr std::size_t others = 64;
  if (2 * listeners + others <= limit.rlim_cur) return {};
  return fmt::format(
      "{} listeners need a descriptor limit of at least {}, and the hard limit is {}: raise it (ulimit -Hn), or "
      "lower `nodes.count`",
      listeners, 2 * listeners + others, limit.rlim_cur);
}

// Whether what is meant to be the destination is a port of ours, as far as names tell.
bool is_own_listener(const config::Source& source, const config::HostPort& server) {
  const auto is_here = [&](const config::HostPort& bound) {
    if (bound.port != server.port) return false;
    const bool is_this_machine = config::hosts_overlap(server.host, "localhost") || server.host.starts_with("127.");
    return config::is_wildcard(bound.host) ? is_this_machine : config::hosts_overlap(bound.host, server.host);
  };
  return is_here(source.listen) || std::ranges::any_of(node_listeners(source), [&](const config::NodeListener& node) {
           return is_here(node.bind) || node.advertise == server;
         });
}

asio::awaitable<void> serve(tcp::socket socket, const ListenerContext& listener, Worker& worker) {
  Session session(std::move(socket), listener, worker);
  co_await session.run();
}

}  // namespace

std::optional<mapping::Region> region_of(const config::Source& source) {
  if (source.region) return mapping::Region{*source.region};
  const auto id = mapping::ClusterId::parse(source.cluster_id);
  if (!id) return std::nullopt;
  return id->region();
}

std::string cluster_id_of(const config::Source& source) {
  const auto id = mapping::ClusterId::parse(source.cluster_id);
  return id ? id->text() : source.cluster_id;
}

Server::Server(const config::Config& config, std::function<void()> on_failure)
    : config_(config),
      cluster_(config.destination.bootstrap_servers),
      context_{config.limits, nullptr, config.destination.tls ? config.destination.tls->server_name : "",
               config.destination.hidden_apis, cluster_},
      on_failure_(std::move(on_failure)) {}

Server::~Server() {
  stop();
}

std::vector<std::string> Server::check(const config::Config& config) {
  std::vector<std::string> problems;
  const auto add = [&](const config::Place& place, std::string message) {
    problems.push_back(to_string(config::Problem{place, std::move(message)}));
  };
  std::map<std::uint32_t, const config::Source*> owners;
  std::map<mapping::ClusterId, const config::Source*> ids;
  for (const auto& source : config.sources) {
    if (const auto id = mapping::ClusterId::parse(source.cluster_id)) {
      const auto [at, is_new] = ids.emplace(*id, &source);
      if (!is_new && at->second->cluster_id != source.cluster_id)
        add(source.cluster_id_place,
            fmt::format(
                "this cluster id is the same UUID as that of source '{}' ({}): the last character has four bits "
                "that do not count",
                at->second->name, at->second->cluster_id));
    }
    const auto region = region_of(source);
    if (!region) {
      add(source.cluster_id_place,
          fmt::format(
              "cluster id '{}' is no UUID in 22 characters of base64url, so no region follows from it: give this "
              "source a `region` of its own (0 to 4294967295)",
              source.cluster_id));
      continue;
    }
    const auto [at, is_new] = owners.emplace(region->value, &source);
    if (!is_new && !config.state)
      add(source.region ? source.region_place : source.cluster_id_place,
          fmt::format("source '{}' has region {} (0x{:08x}), and so has source '{}': their producers would meet, and "
                      "without a state topic nothing keeps them apart; give one of them another `region`",
                      source.name, region->value, region->value, at->second->name));
    std::string error;
    if (source.tls && !make_listener_tls(*source.tls, error)) add(source.tls->place, error);
  }
  std::string error;
  if (config.destination.tls && !make_destination_tls(*config.destination.tls, error))
    add(config.destination.tls->place, error);
  const auto refused = refused_properties(config.destination);
  for (const auto& [index, why] : refused) add(config.destination.client_places[index], why);
  if (const auto why = ClusterWatcher::check(config.destination); refused.empty() && !why.empty())
    problems.push_back(config.destination.client_places.empty()
                           ? why
                           : to_string(config.destination.client_places.front()) + ": " + why);
  for (const auto& source : config.sources)
    for (const auto& server : config.destination.bootstrap_servers)
      if (is_own_listener(source, server))
        add(source.listen_place,
            fmt::format("the destination's bootstrap server {} is a listener of source '{}': the proxy "
                        "would connect to itself",
                        to_string(server), source.name));
  return problems;
}

std::string Server::make_sources() {
  std::string error;
  if (config_.destination.tls) context_.destination_tls = make_destination_tls(*config_.destination.tls, error);
  for (const auto& source : config_.sources) {
    const auto region = region_of(source);
    if (!region) return fmt::format("source '{}' has no region", source.name);
    auto& made = sources_.emplace_back(
        SourceContext{sources_.size(), source.name, mapping::PidMapper(*region), {}, {}, nullptr});
    if (source.tls) made.tls = make_listener_tls(*source.tls, error);
    for (const auto& node : node_listeners(source))
      made.endpoints[node.node_id] = {node.advertise.host, node.advertise.port};
    made.advertise = [&made](std::int32_t node_id) -> const codec::Endpoint* {
      const auto at = made.endpoints.find(node_id);
      return at == made.endpoints.end() ? nullptr : &at->second;
    };
  }
  return error;
}

std::string Server::bind(const SourceContext& source, std::optional<std::int32_t> node_id,
                         const config::HostPort& address) {
  ErrorCode error;
  auto acceptor = bind_to(accept_io_, address, error);
  if (!acceptor)
    return fmt::format("source '{}' cannot listen on {}{}: {}", source.name, to_string(address),
                       node_id ? fmt::format(" for node {}", *node_id) : "", error.message());
  listeners_.push_back({{source, node_id, address}, std::move(*acceptor)});
  return {};
}

std::string Server::bind_all() {
  std::size_t count = 0;
  for (const auto& source : config_.sources) count += 1 + node_listeners(source).size();
  if (auto error = raise_descriptor_limit(count); !error.empty()) return error;
  for (std::size_t i = 0; i < config_.sources.size(); ++i) {
    const auto& source = config_.sources[i];
    if (auto error = bind(sources_[i], std::nullopt, source.listen); !error.empty()) return error;
    for (const auto& node : node_listeners(source))
      if (auto error = bind(sources_[i], node.node_id, node.bind); !error.empty()) return error;
  }
  return {};
}

void Server::make_store() {
  std::vector<mapping::Source> sources;
  for (const auto& source : config_.sources) sources.push_back({cluster_id_of(source), *region_of(source)});
  store_.emplace(config_.destination, *config_.state, std::move(sources), on_failure_);
}

std::string Server::prepare() {
  auto error = make_sources();
  if (error.empty() && config_.state) make_store();
  if (error.empty()) error = bind_all();
  if (!error.empty()) listeners_.clear();
  const auto threads =
      config_.limits.threads > 0 ? config_.limits.threads : std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>(context_, sources_.size()));
  return error;
}

// Nobody may be served before it is known whose the slots are.
std::string Server::load_state(const std::function<bool()>& is_cancelled) {
  if (!store_) return {};
  store_->start();
  constexpr std::chrono::milliseconds step{100};
  std::optional<std::string> result;
  while (!result && !is_cancelled()) result = store_->wait_started(step);
  if (!result) return "stopped before the state topic was loaded";
  if (!result->empty()) return *result;
  collisions_.emplace(store_->state(), *store_);
  context_.collisions = &*collisions_;
  context_.hold_timeout = config_.state->write_timeout;
  return {};
}

std::string Server::start(const std::function<bool()>& is_cancelled) {
  if (auto error = workers_.empty() ? prepare() : std::string(); !error.empty()) return error;
  if (auto error = load_state(is_cancelled); !error.empty()) return error;
  for (auto& listener : listeners_) {
    ErrorCode error;
    listener.acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) return fmt::format("cannot listen on {}: {}", to_string(listener.context.bound), error.message());
  }
  std::vector<const config::Source*> sources;
  for (const auto& source : config_.sources) sources.push_back(&source);
  watcher_.emplace(config_.destination, cluster_, std::move(sources));

  for (auto& worker : workers_) threads_.emplace_back([&worker = *worker] { worker.run(); });
  for (auto& listener : listeners_) asio::co_spawn(accept_io_, accept(listener), asio::detached);
  threads_.emplace_back([this] { accept_io_.run(); });
  is_serving_ = true;
  return {};
}

Worker& Server::next_worker() {
  return *workers_[next_worker_++ % workers_.size()];
}

void Server::hand_out(tcp::socket socket, const Listener& listener) {
  auto& worker = next_worker();
  // The socket moves to the thread that will serve it: it leaves the acceptor's loop by its number.
  // Asked of the socket: the acceptor may be closed by now.
  ErrorCode ignored;
  const auto protocol = socket.local_endpoint(ignored).protocol();
  const auto handle = socket.release();
  asio::post(worker.io, [&worker, &listener, protocol, handle] {
    ErrorCode error;
    tcp::socket moved(worker.io);
    moved.assign(protocol, handle, error);
    if (error) {
      ::close(handle);
      return;
    }
    worker.begin_session();
    asio::co_spawn(worker.io, serve(std::move(moved), listener.context, worker), asio::detached);
  });
}

asio::awaitable<void> Server::accept(Listener& listener) {
  asio::steady_timer pause(accept_io_);
  log::Limit failures;
  for (;;) {
    auto [error, socket] = co_await listener.acceptor.async_accept(no_throw);
    // Whoever was accepted has perhaps sent something already, so it is served also when the proxy is stopping.
    if (!error) hand_out(std::move(socket), listener);
    if (is_stopping_) break;
    if (!error) continue;
    failures.write(log::Level::error, "cannot accept a connection",
                   {{"listener", to_string(listener.context.bound)}, {"reason", error.message()}});
    // Out of descriptors, mostly: trying again at once would only burn the core that could free some.
    pause.expires_after(std::chrono::milliseconds(100));
    co_await pause.async_wait(no_throw);
  }
}

// Connections that the kernel has accepted already have sent what they have sent.
void Server::accept_rest(Listener& listener) {
  for (;;) {
    ErrorCode error;
    tcp::socket socket(accept_io_);
    listener.acceptor.accept(socket, error);
    if (error == asio::error::interrupted || error == asio::error::connection_aborted) continue;
    if (error) break;
    hand_out(std::move(socket), listener);
  }
  ErrorCode ignored;
  listener.acceptor.close(ignored);
}

bool Server::stop() {
  if (threads_.empty()) {
    if (store_) store_->stop();
    return true;
  }
  std::promise<void> accepted;
  asio::post(accept_io_, [&] {
    is_stopping_ = true;
    for (auto& listener : listeners_) accept_rest(listener);
    // Behind what the loop has accepted in the meantime.
    asio::post(accept_io_, [&] { accepted.set_value(); });
  });
  accepted.get_future().wait();

  // A worker is through when it has no session left; each asks again in its own loop.
  const auto deadline = std::chrono::steady_clock::now() + config_.limits.drain_timeout + std::chrono::seconds(3);
  bool all_through = true;
  for (auto& worker : workers_) asio::post(worker->io, [&worker = *worker] { worker.drain(); });
  for (auto& worker : workers_) all_through = worker->wait_until_idle(deadline) && !worker->was_cut_off && all_through;
  for (auto& worker : workers_) worker->io.stop();
  accept_io_.stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  watcher_.reset();
  if (store_) store_->stop();
  return all_through;
}

std::vector<Totals> Server::totals() const {
  std::vector<Totals> all;
  for (const auto& source : sources_) {
    auto& total = all.emplace_back();
    total.source = source.name;
    total.region = source.mapper.home().value;
    for (const auto& worker : workers_) {
      const auto& counters = worker->counters[source.index];
      total.connections += counters.connections.get();
      total.connections_closed += counters.connections_closed.get();
      total.dial_failures += counters.dial_failures.get();
      total.client_faults += counters.client_faults.get();
      total.broker_faults += counters.broker_faults.get();
      total.requests += counters.requests.get();
      total.responses += counters.responses.get();
      total.request_bytes += counters.request_bytes.get();
      total.response_bytes += counters.response_bytes.get();
      total.batches_passed += counters.batches_passed.get();
      total.batches_mapped += counters.batches_mapped.get();
      total.batches_unmarked += counters.batches_unmarked.get();
      total.batches_shared += counters.batches_shared.get();
      total.possible_aliases += counters.possible_aliases.get();
      total.ids_marked += counters.ids_marked.get();
      total.ids_unmarked += counters.ids_unmarked.get();
      total.ids_marked_upstream += counters.ids_marked_upstream.get();
      total.markers_mapped += counters.markers_mapped.get();
      total.connections_of_both_ids += counters.connections_of_both_ids.get();
      total.null_records += counters.null_records.get();
      total.rebootstraps += counters.rebootstraps.get();
      total.nodes_left_out += counters.nodes_left_out.get();
      for (std::size_t i = 1; i < Counters::refusals; ++i)
        total.batches_refused[std::string(describe(static_cast<mapping::Refusal>(i)))] +=
            counters.batches_refused[i].get();
      if (!store_) continue;
      for (std::size_t i = 1; i < deferrals; ++i)
        total.batches_deferred[std::string(describe(static_cast<Deferral>(i)))] += counters.batches_deferred[i].get();
    }
  }
  return all;
}

}  // namespace proxy
