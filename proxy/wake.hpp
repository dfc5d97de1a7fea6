#pragma once
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

namespace proxy {

// One thread waits, for whatever others have for it: threads of ours, and librdkafka's queues.
class Wake {
 public:
  Wake() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Wake() { ::close(descriptor_); }
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void notify() { [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one); }
  // When `queue` is no longer empty: so it must be emptied before the next wait.
  void watch(rd_kafka_queue_t* queue) { rd_kafka_queue_io_event_enable(queue, descriptor_, &one, sizeof one); }

  // At most `timeout`. What came before the call is not missed.
  void wait(std::chrono::milliseconds timeout) {
    pollfd entry{descriptor_, POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(timeout.count()));
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(descriptor_, &count, sizeof count);
  }

 private:
  static constexpr std::uint64_t one = 1;
  int descriptor_;
};

}  // namespace proxy
