#pragma once
#include <cstdint>
#include <string>

namespace proxy {

// Why a connection cannot go on: what a peer sent and where, for one log line.
struct Fault {
  std::string reason;
  std::int16_t api_key = -1;  // -1: before a frame's head was read
  std::int16_t api_version = -1;
  std::int32_t correlation_id = 0;
  std::uint64_t offset = 0;  // bytes into the frame, its size field counted
};

}  // namespace proxy
