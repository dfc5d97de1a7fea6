#pragma once

#include <vector>

#include "config/config.hpp"
#include "config/ports.hpp"
#include "config/reader.hpp"

namespace config {

std::vector<Source> read_sources(Reader& reader, const Entry& entry, Ports& ports);

}  // namespace config
