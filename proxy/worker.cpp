#include "proxy/worker.hpp"

#include "proxy/session.hpp"

namespace proxy {

void Worker::run() {
  tick();
  io.run();
}

void Worker::drain() {
  is_draining = true;
  for (auto* session : sessions) session->drain();
  tell_if_idle();
}

void Worker::end_session() {
  --active_;
  if (is_draining) tell_if_idle();
}

void Worker::tell_if_idle() {
  if (active_ > 0 || is_idle_) return;
  is_idle_ = true;
  idle_.set_value();
}

bool Worker::wait_until_idle(std::chrono::steady_clock::time_point deadline) {
  return idle_.get_future().wait_until(deadline) == std::future_status::ready;
}

// One timer a thread stands for all deadlines of its sessions: they are many, coarse, and rarely met.
void Worker::tick() {
  const auto now = std::chrono::steady_clock::now();
  for (auto* session : sessions) session->check_deadlines(now);
  ticker_.expires_after(tick_interval);
  ticker_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

}  // namespace proxy
