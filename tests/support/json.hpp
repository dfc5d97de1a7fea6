#pragma once
#include <boost/json/value.hpp>
#include <string>

namespace support {

// The contents of a file, comments allowed (Kafka's definitions have them); throws if it cannot be read.
boost::json::value read_json(const std::string& path);

}  // namespace support
