#include "proxy/configuration.hpp"

#include <cstdio>

#include "config/load.hpp"
#include "proxy/server.hpp"

namespace proxy {

std::optional<config::Config> load_configuration(const std::string& path) {
  auto loaded = config::load_file(path, config::process_environment);
  for (const auto& warning : loaded.warnings) std::fprintf(stderr, "warning: %s\n", to_string(warning).c_str());
  for (const auto& problem : loaded.problems) std::fprintf(stderr, "%s\n", to_string(problem).c_str());
  // Judged all the same: who mends a file wants to know everything at once.
  const auto problems = Server::check(loaded.config);
  for (const auto& problem : problems) std::fprintf(stderr, "%s\n", problem.c_str());
  if (!loaded.problems.empty() || !problems.empty()) return std::nullopt;
  return std::move(loaded.config);
}

}  // namespace proxy
