#pragma once
#include <optional>
#include <string>

#include "config/config.hpp"

namespace proxy {

// The configuration in a file, judged by its own rules and by the server's. Nothing: all that is wrong with it has been
// written to standard error, a line each.
std::optional<config::Config> load_configuration(const std::string& path);

}  // namespace proxy
