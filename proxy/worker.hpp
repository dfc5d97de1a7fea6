#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <future>
#include <set>
#include <vector>

#include "proxy/context.hpp"
#include "proxy/counters.hpp"
#include "proxy/log.hpp"

namespace proxy {

class Session;

// One thread's world: its event loop, the sessions that never leave it, and the one buffer that they all read into,
// each in its turn. So nothing here needs a lock.
class Worker {
 public:
  static constexpr std::size_t read_size_max = 128 << 10;  // bytes of one turn
  static constexpr std::size_t carry_max = 64 << 10;       // undecided bytes that a session puts in front of them
  static constexpr std::chrono::milliseconds tick_interval{250};

  Worker(const ServerContext& shared, std::size_t sources)
      : server(shared), buffer(carry_max + read_size_max), counters(sources), ticker_(io) {}

  // Runs until stop(); to be called on the worker's own thread.
  void run();

  // On the worker's thread: every session takes what its client has sent by now, and ends.
  void drain();

  // Sessions that run or are about to.
  void begin_session() { ++active_; }
  void end_session();
  // For the thread that ends the server: whether no session is left before `deadline`. After drain() only.
  bool wait_until_idle(std::chrono::steady_clock::time_point deadline);

  const ServerContext& server;
  std::vector<std::byte> buffer;
  std::vector<Counters> counters;  // by SourceContext::index
  std::set<Session*> sessions;
  bool is_draining = false;
  std::atomic<bool> was_cut_off = false;  // a session ended by its deadline left something unanswered or unsent

  // One a kind of line, so that none of them hides another.
  log::Limit client_faults, broker_faults, dial_failures, refusals, deferrals, cut_offs, unmarked_ids;

 private:
  void tick();
  void tell_if_idle();

  std::size_t active_ = 0;
  bool is_idle_ = false;
  std::promise<void> idle_;

 public:
  // Behind all that sessions refer to: those which are left at the end are destroyed with it.
  boost::asio::io_context io{1};

 private:
  boost::asio::steady_timer ticker_;
};

}  // namespace proxy
