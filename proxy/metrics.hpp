#pragma once
#include <string>

#include "proxy/server.hpp"

namespace proxy {

// What the server has counted, in Prometheus' text format.
std::string metrics_text(const Server& server);

// The same for people and programs: sources, their regions and counters, and the destination's nodes. JSON.
std::string status_json(const Server& server);

}  // namespace proxy
