#include "proxy/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <fmt/chrono.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <vector>

namespace proxy::log {
namespace {

bool as_json = false;

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = spdlog::stderr_logger_mt("mirrorpid");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::trace: return spdlog::level::trace;
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// RFC 3339, in UTC.
std::string timestamp() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     now.time_since_epoch().count() % 1000);
}

// Values come from peers: not longer than a line should have, and ASCII, so that a line of JSON is JSON.
std::string tame(std::string_view value) {
  constexpr std::size_t size_max = 300;
  std::string text(value.substr(0, size_max));
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x7f; }, '?');
  if (value.size() > size_max) text += fmt::format("... ({} bytes)", value.size());
  return text;
}

// Bare where it is one word, else in quotes: a line must stay one line.
std::string in_quotes(std::string_view value) {
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '='; };
  bool is_word = !value.empty();
  for (const char c : value) is_word = is_word && is_plain(c);
  if (is_word) return std::string(value);
  return boost::json::serialize(boost::json::string_view(value.data(), value.size()));
}

template <typename Range>
void write_fields(Level level, std::string_view message, const Range& fields) {
  const auto spd_level = to_spdlog(level);
  if (!logger().should_log(spd_level)) return;
  if (as_json) {
    boost::json::object line{{"time", timestamp()},
                             {"level", spdlog::level::to_string_view(spd_level).data()},
                             {"message", boost::json::string_view(message.data(), message.size())}};
    for (const auto& [key, value] : fields) line[boost::json::string_view(key.data(), key.size())] = tame(value);
    logger().log(spd_level, boost::json::serialize(line));
    return;
  }
  std::string text(message);
  for (const auto& [key, value] : fields) text.append(" ").append(key).append("=").append(in_quotes(tame(value)));
  logger().log(spd_level, text);
}

}  // namespace

void configure(std::string_view level, bool json) {
  as_json = json;
  if (json) logger().set_pattern("%v");
  logger().set_level(level == "warn" ? spdlog::level::warn : spdlog::level::from_str(std::string(level)));
  logger().flush_on(spdlog::level::trace);
}

void write(Level level, std::string_view message, Fields fields) {
  write_fields(level, message, fields);
}

void Limit::write(Level level, std::string_view message, Fields fields, std::chrono::steady_clock::time_point now) {
  if (now - begin_ >= interval) {
    begin_ = now;
    lines_ = 0;
  }
  if (lines_ >= lines_max) {
    ++left_out_;
    return;
  }
  ++lines_;
  if (left_out_ == 0) return write_fields(level, message, fields);
  std::vector<Field> all(fields);
  all.emplace_back("left_out", std::to_string(std::exchange(left_out_, 0)));
  write_fields(level, message, all);
}

}  // namespace proxy::log
