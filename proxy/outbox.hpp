#pragma once
#include <boost/asio/error.hpp>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "proxy/sink.hpp"
#include "proxy/stream.hpp"

namespace proxy {

// What goes to one side of a session: sent at once from where it lies, and only what would block is kept. Spans that
// lie behind each other leave in one write. While something is kept the other side is not read, so what is kept never
// exceeds one turn's bytes.
class Outbox final : public Sink {
 public:
  explicit Outbox(Stream& to) : to_(to) {}

  void add(std::span<const std::byte> bytes) override {
    if (!run_.empty() && run_.data() + run_.size() == bytes.data()) {
      run_ = {run_.data(), run_.size() + bytes.size()};
      return;
    }
    end_turn();
    run_ = bytes;
  }

  void add_copy(std::span<const std::byte> bytes) override {
    end_turn();
    run_ = bytes;
    end_turn();
  }

  // Must be called before the window that was added from is used again.
  void end_turn() {
    auto run = std::exchange(run_, {});
    if (kept_.empty()) run = run.subspan(send(run));
    if (!error_) kept_.insert(kept_.end(), run.begin(), run.end());
  }

  // Sends of what was kept what goes now.
  void retry() {
    sent_ += send(std::span<const std::byte>(kept_).subspan(sent_));
    if (sent_ < kept_.size() && !error_) return;
    kept_ = {};  // gives the memory back: most of the time nothing is kept
    sent_ = 0;
  }

  bool is_empty() const { return kept_.empty(); }
  // The first failure; everything added afterwards is dropped.
  const ErrorCode& error() const { return error_; }

 private:
  std::size_t send(std::span<const std::byte> bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size() && !error_) {
      const auto done = to_.write(bytes.subspan(sent));
      sent += done.size;
      if (done.error == asio::error::would_block) break;
      error_ = done.error;
    }
    return sent;
  }

  Stream& to_;
  std::span<const std::byte> run_;
  std::vector<std::byte> kept_;
  std::size_t sent_ = 0;  // of kept_
  ErrorCode error_;
};

}  // namespace proxy
