#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/document.hpp"
#include "config/load.hpp"
#include "config/parse.hpp"

namespace config {

// A text as the file has it and as the environment makes it. Messages show `written`.
struct Text {
  std::string value;
  std::string written;
  bool from_environment = false;  // `value`, and all that is computed from it, must not be shown
  Place place;
};

template <class T>
struct Read {
  T value;
  Text text;
};

// A text of the file as messages show it: in quotes, on one line, not too long.
std::string in_quotes(std::string_view text);

// Turns nodes into values. Whatever is wrong is noted with its place and reading goes on, so that one run finds all.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  void complain(const Place& place, std::string message);
  void warn(const Place& place, std::string message);

  // Whether the node is of that kind; complains where it is not.
  bool expect(const YamlNode& node, YamlNode::Kind kind);

  // The text of a node, variables replaced.
  std::optional<Text> text(const YamlNode& node);

  // What `parse` makes of the node's text.
  template <class Parse>
  auto read(const YamlNode& node, Parse parse) {
    using Value = typename decltype(parse(std::string_view()))::value_type;
    std::optional<Read<Value>> result;
    auto source = text(node);
    if (!source) return result;
    auto parsed = parse(std::string_view(source->value));
    if (parsed.value) {
      result = Read<Value>{std::move(*parsed.value), std::move(*source)};
    } else {
      complain(node.place, in_quotes(source->written) + " " + parsed.problem);
    }
    return result;
  }

  // In the order of the file, each once: what an alias repeats is one mistake.
  std::vector<Problem> take_problems();
  std::vector<Problem> take_warnings();

 private:
  const Environment& environment_;
  std::vector<Problem> problems_;
  std::vector<Problem> warnings_;
};

// A mapping of the file. Making one complains about what is wrong with its keys: duplicates (the first counts), and
// those that are not in `keys`. Where the node is no mapping, all keys are absent and none is missed.
class Section {
 public:
  // `place` is where a missing key is reported.
  Section(Reader& reader, const YamlNode& node, Place place, std::initializer_list<std::string_view> keys);

  // With keys of the user's choice.
  Section(Reader& reader, const YamlNode& node);

  const std::vector<Entry>& entries() const { return entries_; }

  const Entry* find(std::string_view key) const;
  const Entry* require(std::string_view key) const;

  // Sets `out` to the value, and gives its text. Leaves `out` alone where the key is absent or the value wrong.
  template <class T, class Parse>
  std::optional<Text> read(std::string_view key, T& out, Parse parse) const {
    const Entry* entry = find(key);
    return entry ? read_entry(*entry, out, parse) : std::nullopt;
  }

  template <class T, class Parse>
  std::optional<Text> read_required(std::string_view key, T& out, Parse parse) const {
    const Entry* entry = require(key);
    return entry ? read_entry(*entry, out, parse) : std::nullopt;
  }

 private:
  template <class T, class Parse>
  std::optional<Text> read_entry(const Entry& entry, T& out, Parse parse) const {
    auto read = reader_.read(*entry.value, parse);
    if (!read) return std::nullopt;
    out = static_cast<T>(std::move(read->value));  // the parsers' bounds are within those of `out`
    return std::move(read->text);
  }

  bool is_usable(const Entry& entry) const;  // complains where it is not

  Reader& reader_;
  Place place_;
  bool is_mapping_;
  std::vector<Entry> entries_;
};

}  // namespace config
