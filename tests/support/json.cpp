#include "tests/support/json.hpp"

#include <boost/json/parse.hpp>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace support {

boost::json::value read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  boost::json::parse_options options;
  options.allow_comments = true;
  return boost::json::parse(text, {}, options);
}

}  // namespace support
