#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.hpp"

namespace config {

struct YamlNode;
using YamlNodePtr = std::shared_ptr<const YamlNode>;

struct Entry {
  YamlNodePtr key;
  YamlNodePtr value;
};

// A piece of the document with the place where it begins. Unlike yaml-cpp's own nodes, a mapping keeps every entry in
// the file's order, duplicates too: they are to be reported. An alias shares the node it stands for, so a file cannot
// make more nodes than it has bytes.
struct YamlNode {
  enum class Kind { nothing, text, list, mapping };

  Kind kind = Kind::nothing;
  bool flow = false;  // a list or mapping written with brackets
  Place place;        // of an absent value: of its key
  std::string text;
  std::vector<YamlNodePtr> items;
  std::vector<Entry> entries;
};

struct Document {
  YamlNodePtr root;  // none where the file is empty or no YAML
  std::vector<Problem> problems;
};

// The one function that knows yaml-cpp.
Document parse_document(std::string_view yaml, const std::string& file_name);

}  // namespace config
