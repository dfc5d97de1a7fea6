#include "proxy/state_store.hpp"

#include <random>
#include <utility>

#include "proxy/log.hpp"
#include "proxy/state_owner.hpp"
#include "proxy/state_topic.hpp"

namespace proxy {
namespace {

constexpr std::chrono::milliseconds pause{500};  // before looking for the topic again

mapping::StateSettings settings_of(const config::State& config) {
  mapping::StateSettings settings;
  settings.partitions = config.partitions;
  settings.expiration = config.producer_id_expiration;
  std::random_device random;
  settings.process_nonce = std::uint64_t{random()} << 32 | random();
  return settings;
}

std::vector<std::string> cluster_ids_of(const std::vector<mapping::Source>& sources) {
  std::vector<std::string> ids;
  for (const auto& source : sources) ids.push_back(source.cluster_id);
  return ids;
}

}  // namespace

StateStore::StateStore(const config::Destination& destination, const config::State& config,
                       std::vector<mapping::Source> sources, std::function<void()> on_failure)
    : destination_(destination),
      config_(config),
      on_failure_(std::move(on_failure)),
      cluster_ids_(cluster_ids_of(sources)),
      state_(settings_of(config), std::move(sources)) {}

StateStore::~StateStore() {
  stop();
}

void StateStore::start() {
  thread_ = std::thread([this] { run(); });
}

std::optional<std::string> StateStore::wait_started(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  started_.wait_for(lock, timeout, [&] { return start_result_.has_value(); });
  return start_result_;
}

void StateStore::stop() {
  is_stopping_ = true;
  wake_.notify();
  if (thread_.joinable()) thread_.join();
}

void StateStore::request_work(const mapping::Identity& identity) {
  {
    const std::lock_guard lock(mutex_);
    if (requests_.size() >= requests_max || !requests_.insert(identity).second || requests_.size() > 1) return;
  }
  wake_.notify();
}

StateStore::Status StateStore::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

std::vector<mapping::State::RegisteredSource> StateStore::registrations() const {
  const std::lock_guard lock(mutex_);
  return registrations_;
}

std::set<mapping::Identity> StateStore::take_requests() {
  const std::lock_guard lock(mutex_);
  return std::exchange(requests_, {});
}

void StateStore::finish_start(std::string failure) {
  {
    const std::lock_guard lock(mutex_);
    if (start_result_) return;
    start_result_ = std::move(failure);
  }
  started_.notify_all();
}

std::string StateStore::prepare_topic() {
  StateTopic topic(destination_, config_, config_.producer_id_expiration);
  std::string last_reason;
  while (!is_stopping_) {
    auto [kind, reason] = topic.prepare(StateTopic::Use::serve, is_stopping_);
    if (kind == StateTopic::Outcome::Kind::done) return {};
    if (kind == StateTopic::Outcome::Kind::refused) return std::move(reason);
    if (reason != last_reason && !is_stopping_)
      log::warn("the state topic is not there yet; nothing is served until it is",
                {{"topic", config_.topic}, {"reason", reason}});
    last_reason = std::move(reason);
    if (!is_stopping_) wake_.wait(pause);
  }
  return "stopped";
}

void StateStore::run() {
  auto failure = prepare_topic();
  if (failure.empty()) {
    StateOwner owner(destination_, config_, state_, cluster_ids_, wake_,
                     {[this] { return take_requests(); },
                      [this](const Status& status) {
                        auto registrations = state_.registrations();
                        const std::lock_guard lock(mutex_);
                        status_ = status;
                        registrations_ = std::move(registrations);
                      },
                      [this] { finish_start({}); }});
    failure = owner.run(is_stopping_);
  }
  const bool was_started = wait_started(std::chrono::milliseconds(0)).has_value();
  {
    const std::lock_guard lock(mutex_);
    status_.is_ready = false;
    status_.failure = failure;
  }
  finish_start(failure.empty() ? "stopped" : failure);
  if (was_started && !failure.empty()) {
    log::error(failure);
    if (on_failure_) on_failure_();
  }
}

}  // namespace proxy
