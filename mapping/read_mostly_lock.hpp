#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <shared_mutex>

namespace mapping {

// A lock for what is read on every thread all the time and written on one, seldom: each reading thread locks a mutex of
// its own, the writer all of them. So readers never wait for readers, nor write to a cache line of another one's (up to
// `stripes` threads; beyond, some share).
class ReadMostlyLock {
 public:
  void lock() {
    for (auto& stripe : stripes_) stripe.mutex.lock();
  }
  void unlock() {
    for (auto& stripe : stripes_) stripe.mutex.unlock();
  }
  void lock_shared() { own().lock_shared(); }
  void unlock_shared() { own().unlock_shared(); }

 private:
  static constexpr std::size_t stripes = 16;
  static constexpr std::size_t cache_line = 64;  // bytes
  struct alignas(cache_line) Stripe {
    std::shared_mutex mutex;
  };

  std::shared_mutex& own() {
    static std::atomic<std::size_t> threads = 0;
    thread_local const std::size_t thread = threads.fetch_add(1, std::memory_order_relaxed);
    return stripes_[thread % stripes].mutex;
  }

  std::array<Stripe, stripes> stripes_;
};

}  // namespace mapping
