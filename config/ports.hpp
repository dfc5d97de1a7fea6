#pragma once

#include <string>
#include <vector>

#include "config/reader.hpp"

namespace config {

// Consecutive ports that the program will bind, and what clients are told of them.
struct PortRange {
  std::string host;  // empty: not known, because what says so is wrong
  int first_port = 0;
  int last_port = 0;
  std::string advertised_host;    // empty: clients are not told
  int advertised_first_port = 0;  // as many ports follow
  std::string label;              // for messages; holds nothing secret
  Place place;
};

// All ports of a configuration. That no two share one must be seen here: the sockets are opened so that several may
// share a port, and the kernel would deal one source's connections to another source's listener without a word.
class Ports {
 public:
  void add(PortRange range) { ranges_.push_back(std::move(range)); }

  // One complaint for each pair of ranges that meet.
  void check(Reader& reader);

 private:
  std::vector<PortRange> ranges_;
};

}  // namespace config
