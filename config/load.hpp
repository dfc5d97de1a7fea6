#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace config {

// Something wrong with a file. The message shows values as they are written there, `${PORT}` and not what the variable
// holds, and of `destination.client` only the names: what is printed here ends in logs.
struct Problem {
  Place place;
  std::string message;

  bool operator==(const Problem&) const = default;
};

std::string to_string(const Place& place);      // file:line:column, or the file alone
std::string to_string(const Problem& problem);  // file:line:column: message

// What a file says and everything that is wrong with it, in the order of the file. With problems, the configuration is
// as much of it as could be read: good for further checks, not for use.
struct Loaded {
  Config config;
  std::vector<Problem> problems;
  std::vector<Problem> warnings;
};

// What `${NAME}` stands for; none: not set.
using Environment = std::function<std::optional<std::string>(std::string_view)>;

std::optional<std::string> process_environment(std::string_view name);

// A file that cannot be read is a problem of the file as a whole.
Loaded load_file(const std::string& path, const Environment& environment);
Loaded load_text(std::string_view yaml, std::string file_name, const Environment& environment);

}  // namespace config
