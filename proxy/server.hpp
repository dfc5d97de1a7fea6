#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/config.hpp"
#include "proxy/context.hpp"
#include "proxy/counters.hpp"
#include "proxy/worker.hpp"

namespace proxy {

// A source's counters, summed over all threads.
struct Totals {
  std::string source;
  std::uint32_t region = 0;
  std::uint64_t connections = 0, connections_closed = 0, dial_failures = 0, client_faults = 0, broker_faults = 0;
  std::uint64_t requests = 0, responses = 0, request_bytes = 0, response_bytes = 0;
  std::uint64_t batches_passed = 0, batches_mapped = 0, batches_unmarked = 0;
  std::map<std::string, std::uint64_t> batches_refused;  // by reason
  std::uint64_t possible_aliases = 0, null_records = 0, rebootstraps = 0, nodes_left_out = 0;
};

// The region of a source: the one it is given, or the one that follows from its cluster id; else nothing.
std::optional<mapping::Region> region_of(const config::Source& source);

// The proxy of one configuration: its listeners, its threads, and its look at the destination.
//
// Connections are accepted on one thread and handed out in turn. That takes one socket a port, spreads them evenly, and
// a second process on the same ports is told so, where SO_REUSEPORT would have shared them with it in silence.
class Server {
 public:
  // The configuration must be free of problems, and outlive the server.
  explicit Server(const config::Config& config);
  ~Server();

  // What the configuration alone cannot tell: regions, TLS files, librdkafka's properties. Sentences with their places;
  // none: it can be started.
  static std::vector<std::string> check(const config::Config& config);

  // Binds every port and begins to serve. A sentence when that cannot be done; then nothing is left running.
  std::string start();

  // Takes what clients have sent by now, answers it, and ends; at most `drain_timeout`. False: not all was through.
  bool stop();

  std::vector<Totals> totals() const;
  const ClusterMap& cluster() const { return cluster_; }
  // Serves, and knows the destination's nodes.
  bool is_ready() const { return !is_stopping_ && !cluster_.nodes().empty(); }
  std::size_t listeners() const { return listeners_.size(); }

 private:
  struct Listener {
    ListenerContext context;
    boost::asio::ip::tcp::acceptor acceptor;
  };

  std::string make_sources();
  std::string bind_all();
  std::string bind(const SourceContext& source, std::optional<std::int32_t> node_id, const config::HostPort& address);
  boost::asio::awaitable<void> accept(Listener& listener);
  void accept_rest(Listener& listener);
  void hand_out(boost::asio::ip::tcp::socket socket, const Listener& listener);
  Worker& next_worker();

  const config::Config& config_;
  ClusterMap cluster_;
  ServerContext context_;
  std::deque<SourceContext> sources_;
  boost::asio::io_context accept_io_{1};
  std::deque<Listener> listeners_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_worker_ = 0;
  std::vector<std::thread> threads_;
  std::optional<ClusterWatcher> watcher_;
  std::atomic<bool> is_stopping_ = false;
};

}  // namespace proxy
