#pragma once
#include <string>

#include "proxy/commands.hpp"

namespace proxy {

struct StateListOptions {
  std::string config_path;
  std::string topic_id;  // 22 characters, as Kafka prints it; empty: all
  std::string source;    // a name of the configuration, or a cluster id; empty: all
  Format format = Format::text;
};

// Reads the state topic to its end, writing nothing, and says what it holds: who has a salt, and whose each region is.
int state_list(const StateListOptions& options);

}  // namespace proxy
