#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "config/config.hpp"
#include "mapping/state.hpp"
#include "proxy/wake.hpp"

namespace proxy {

// Keeps a mapping::State on the destination's state topic: reads the topic from its beginning and follows it, and
// carries out what the State commands. (Here and not in mapping/ because it needs `destination.client`.)
//
// One thread of its own, the owner of the State, does all of that; session threads decide at the same time and ask for
// work. Its invariant: the State hears of a record only by reading it, never by having written it.
class StateStore {
 public:
  static constexpr std::size_t requests_max = 10'000;  // that wait; sessions ask again anyway

  // `sources` in the order of the configuration: a SourceIndex is a place in it. `on_failure` is called at most once,
  // on the store's thread, when the topic lost records that had been read: nothing may be served from then on, and the
  // process must begin anew.
  StateStore(const config::Destination& destination, const config::State& config, std::vector<mapping::Source> sources,
             std::function<void()> on_failure = {});
  ~StateStore();
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  // Begins: makes or checks the topic, loads it, and registers the sources in it. While the destination cannot be
  // reached that is tried for ever. To be called once.
  void start();

  // Waits for the beginning to be over, at most `timeout`. Nothing: it is not yet. Empty: the State is ready. Else the
  // sentence that says why not and what to do about it; the store has given up then.
  std::optional<std::string> wait_started(std::chrono::milliseconds timeout);

  // Ends the thread; within two seconds. Writes under way count as failed.
  void stop();

  // For decide() and see_chained(), on any thread.
  mapping::State& state() { return state_; }
  const mapping::State& state() const { return state_; }

  // For an identity that needs work or a refresh, on any thread. Cheap when it waits already. What becomes of it is
  // what decide() says later.
  void request_work(const mapping::Identity& identity);

  // As of the last second; on any thread.
  struct Status {
    bool is_ready = false;
    std::string failure;  // empty: none
    mapping::State::Counts counts{};
    std::uint64_t records_read = 0;
    std::uint64_t writes = 0;  // answered, either way
    std::uint64_t writes_failed = 0;
    std::uint64_t writes_under_way = 0;
    std::chrono::milliseconds oldest_write{0};                            // how long the oldest of them has been
    std::array<std::uint64_t, mapping::hindrances> works_by_hindrance{};  // finished works; by mapping::Hindrance
  };
  Status status() const;
  std::vector<mapping::State::RegisteredSource> registrations() const;  // as of the last second, too

 private:
  void run();
  std::string prepare_topic();
  std::set<mapping::Identity> take_requests();
  void finish_start(std::string failure);

  const config::Destination& destination_;
  const config::State& config_;
  std::function<void()> on_failure_;
  std::vector<std::string> cluster_ids_;
  mapping::State state_;
  Wake wake_;
  std::atomic<bool> is_stopping_ = false;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable started_;
  std::optional<std::string> start_result_;
  std::set<mapping::Identity> requests_;
  Status status_;
  std::vector<mapping::State::RegisteredSource> registrations_;

  std::thread thread_;
};

}  // namespace proxy
