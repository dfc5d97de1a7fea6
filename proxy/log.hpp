#pragma once
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

// The program's log: one line an event, on standard error. As text `message key=value ...`, or as JSON an object with
// the same keys, for which every value is a string.
namespace proxy::log {

enum class Level { trace, debug, info, warn, error };
using Field = std::pair<std::string_view, std::string>;
using Fields = std::initializer_list<Field>;

// `level`: trace, debug, info, warn or error. Called once, before threads start.
void configure(std::string_view level, bool as_json);

void write(Level level, std::string_view message, Fields fields = {});
inline void debug(std::string_view message, Fields fields = {}) {
  write(Level::debug, message, fields);
}
inline void info(std::string_view message, Fields fields = {}) {
  write(Level::info, message, fields);
}
inline void warn(std::string_view message, Fields fields = {}) {
  write(Level::warn, message, fields);
}
inline void error(std::string_view message, Fields fields = {}) {
  write(Level::error, message, fields);
}

// Lets through so many lines of one kind in each interval and counts the others: a peer must not be able to fill a
// disk. Belongs to one thread.
class Limit {
 public:
  static constexpr int lines_max = 20;
  static constexpr std::chrono::seconds interval{10};

  // Adds how many lines of this kind were left out since the last one.
  void write(Level level, std::string_view message, Fields fields,
             std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

 private:
  std::chrono::steady_clock::time_point begin_{};
  int lines_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace proxy::log
