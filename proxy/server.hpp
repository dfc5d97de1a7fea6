#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/config.hpp"
#include "proxy/context.hpp"
#include "proxy/counters.hpp"
#include "proxy/state_store.hpp"
#include "proxy/worker.hpp"

namespace proxy {

// A source's counters, summed over all threads.
struct Totals {
  std::string source;
  std::uint32_t region = 0;
  std::uint64_t connections = 0, connections_closed = 0, dial_failures = 0, client_faults = 0, broker_faults = 0;
  std::uint64_t requests = 0, responses = 0, request_bytes = 0, response_bytes = 0;
  std::uint64_t batches_passed = 0, batches_mapped = 0, batches_unmarked = 0, batches_shared = 0;
  std::map<std::string, std::uint64_t> batches_refused, batches_deferred;  // by reason
  std::uint64_t ids_marked = 0, ids_unmarked = 0, ids_marked_upstream = 0, markers_mapped = 0;
  std::uint64_t connections_of_both_ids = 0;
  std::uint64_t possible_aliases = 0, null_records = 0, rebootstraps = 0, nodes_left_out = 0;
};

// The region of a source: the one it is given, or the one that follows from its cluster id; else nothing.
std::optional<mapping::Region> region_of(const config::Source& source);

// Its cluster id as the state topic has it: of a UUID the canonical form.
std::string cluster_id_of(const config::Source& source);

// The proxy of one configuration: its listeners, its threads, and its look at the destination.
//
// Connections are accepted on one thread and handed out in turn. That takes one socket a port, spreads them evenly, and
// a second process on the same ports is told so, where SO_REUSEPORT would have shared them with it in silence.
class Server {
 public:
  // The configuration must be free of problems, and outlive the server. `on_failure` is called at most once, on a
  // thread of the server's: nothing can be served rightly any more, and the process must begin anew.
  explicit Server(const config::Config& config, std::function<void()> on_failure = {});
  ~Server();

  // What the configuration alone cannot tell: regions, TLS files, librdkafka's properties. Sentences with their places;
  // none: it can be started.
  static std::vector<std::string> check(const config::Config& config);

  // Binds every port, without listening. A sentence when that cannot be done.
  std::string prepare();
  // Begins to serve; before that, where there is a state topic, it is loaded, which is tried until `is_cancelled` says
  // so. A sentence when that cannot be done.
  std::string start(const std::function<bool()>& is_cancelled = [] { return false; });

  // Takes what clients have sent by now, answers it, and ends; at most `drain_timeout`. False: not all was through.
  bool stop();

  std::vector<Totals> totals() const;
  const ClusterMap& cluster() const { return cluster_; }
  // Serves, and knows the destination's nodes.
  bool is_ready() const { return is_serving_ && !is_stopping_ && !cluster_.nodes().empty(); }
  // Nothing with `state: off`, or before prepare().
  const StateStore* store() const { return store_ ? &*store_ : nullptr; }
  std::size_t listeners() const { return listeners_.size(); }

 private:
  struct Listener {
    ListenerContext context;
    boost::asio::ip::tcp::acceptor acceptor;
  };

  std::string make_sources();
  void make_store();
  std::string bind_all();
  std::string load_state(const std::function<bool()>& is_cancelled);
  std::string bind(const SourceContext& source, std::optional<std::int32_t> node_id, const config::HostPort& address);
  boost::asio::awaitable<void> accept(Listener& listener);
  void accept_rest(Listener& listener);
  void hand_out(boost::asio::ip::tcp::socket socket, const Listener& listener);
  Worker& next_worker();

  const config::Config& config_;
  ClusterMap cluster_;
  ServerContext context_;
  std::deque<SourceContext> sources_;
  std::optional<StateStore> store_;
  std::optional<CollisionContext> collisions_;
  boost::asio::io_context accept_io_{1};
  std::deque<Listener> listeners_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_worker_ = 0;
  std::vector<std::thread> threads_;
  std::optional<ClusterWatcher> watcher_;
  std::function<void()> on_failure_;
  std::atomic<bool> is_serving_ = false;
  std::atomic<bool> is_stopping_ = false;
};

}  // namespace proxy
