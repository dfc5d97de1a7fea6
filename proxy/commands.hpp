#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What the command line offers beside the proxy itself. Data goes to standard output, notes and errors to standard
// error.
namespace proxy {

// The program's exit codes.
inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;    // while running
inline constexpr int exit_usage = 2;     // the command line or the configuration is wrong
inline constexpr int exit_findings = 3;  // it worked, and found what it looked for

enum class Format { text, json };

int serve(const std::string& config_path);
// `connect`: asks the destination for its nodes too.
int check(const std::string& config_path, bool connect, Format format);

struct MapOptions {
  std::string cluster_id;
  std::optional<std::uint32_t> region;  // wins
  std::vector<std::string> pids;        // decimal, or hexadecimal behind 0x
  Format format = Format::text;
};
int map(const MapOptions& options);

int decode(const std::vector<std::string>& pids, Format format);

// An ApiVersions through each source's listener.
int health(const std::string& config_path, std::chrono::milliseconds timeout, Format format);

}  // namespace proxy
