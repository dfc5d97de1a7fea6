#include "config/reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <tuple>

namespace config {

namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::ranges::all_of(name, is_name_character);
}

// A key is only shown where it looks like one: without the space after its colon, `password:secret` is a key too.
std::string shown_key(std::string_view key) {
  constexpr std::size_t size_max = 64;
  const bool good = std::ranges::all_of(key, [](char c) { return is_name_character(c) || c == '.' || c == '-'; });
  return good && !key.empty() && key.size() <= size_max ? fmt::format("key '{}'", key) : "key";
}

// Edits (insert, remove, replace, swap neighbours) from one text to the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before_previous;
  std::vector<std::size_t> previous;
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    before_previous = std::exchange(previous, row);
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_previous[j - 2] + 1);
    }
  }
  return row.back();
}

std::string suggestion(std::string_view key, std::span<const std::string_view> keys) {
  constexpr std::size_t key_size_max = 64;
  if (key.size() <= key_size_max) {
    const auto distance = [key](std::string_view other) { return edit_distance(key, other); };
    const std::string_view nearest = *std::ranges::min_element(keys, {}, distance);
    if (distance(nearest) <= std::max<std::size_t>(1, nearest.size() / 3)) {
      return fmt::format("did you mean '{}'?", nearest);
    }
  }
  std::string list;
  for (const std::string_view each : keys) list += (list.empty() ? "" : ", ") + std::string(each);
  return "known here: " + list;
}

std::string_view name_of(YamlNode::Kind kind) {
  constexpr std::array<std::string_view, 4> names = {"nothing", "text", "a list", "a mapping"};
  return names[static_cast<std::size_t>(kind)];
}

void sort_by_place(std::vector<Problem>& problems) {
  // By the message too: equal ones must be neighbours.
  std::ranges::sort(problems, {}, [](const Problem& problem) {
    return std::tie(problem.place.line, problem.place.column, problem.message);
  });
  const auto rest = std::ranges::unique(problems);
  problems.erase(rest.begin(), rest.end());
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t size_max = 80;
  std::string shown(text.substr(0, size_max));
  std::ranges::replace_if(shown, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return fmt::format("'{}{}'", shown, text.size() > size_max ? "..." : "");
}

void Reader::complain(const Place& place, std::string message) {
  problems_.push_back({place, std::move(message)});
}
void Reader::warn(const Place& place, std::string message) {
  warnings_.push_back({place, std::move(message)});
}

bool Reader::expect(const YamlNode& node, YamlNode::Kind kind) {
  if (node.kind == kind) return true;
  // `[::]:1` and `${NAME}` in a flow list are sometimes good YAML, though never what was meant.
  const bool quotes_may_miss = kind == YamlNode::Kind::text && node.flow;
  complain(node.place, fmt::format("expected {}, found {}{}", name_of(kind), name_of(node.kind),
                                   quotes_may_miss ? "; a text with [...] or {...} in it must be quoted" : ""));
  return false;
}

std::optional<Text> Reader::text(const YamlNode& node) {
  if (!expect(node, YamlNode::Kind::text)) return std::nullopt;
  Text text = {{}, node.text, false, node.place};
  bool good = true;
  const auto fail = [&](std::string message) {
    complain(node.place, std::move(message));
    good = false;
  };
  std::string_view rest = node.text;
  while (!rest.empty()) {
    if (rest.starts_with("$${")) {
      text.value += "${";
      rest.remove_prefix(3);
      continue;
    }
    if (!rest.starts_with("${")) {
      text.value += rest[0];
      rest.remove_prefix(1);
      continue;
    }
    const std::size_t end = rest.find('}');
    if (end == std::string_view::npos) {
      fail("a '${' has no closing '}'; '$${' stands for the two characters themselves");
      break;
    }
    const std::string_view inner = rest.substr(2, end - 2);
    rest.remove_prefix(end + 1);
    const std::size_t name_end = std::min(inner.find(":-"), inner.size());
    const std::string_view name = inner.substr(0, name_end);
    if (!is_variable_name(name)) {
      // Not shown: a secret that happens to hold `${` leads here too.
      fail("expected ${NAME} or ${NAME:-default}; '$${' stands for the characters '${' themselves");
      continue;
    }
    const auto value = environment_(name);
    const bool has_default = name_end < inner.size();
    if (value && !(value->empty() && has_default)) {
      text.value += *value;
      text.from_environment = true;
    } else if (has_default) {
      text.value += inner.substr(name_end + 2);
    } else {
      fail(fmt::format("environment variable '{}' is not set", name));
    }
  }
  return good ? std::optional(std::move(text)) : std::nullopt;
}

std::vector<Problem> Reader::take_problems() {
  sort_by_place(problems_);
  return std::exchange(problems_, {});
}

std::vector<Problem> Reader::take_warnings() {
  sort_by_place(warnings_);
  return std::exchange(warnings_, {});
}

Section::Section(Reader& reader, const YamlNode& node)
    : reader_(reader), place_(node.place), is_mapping_(reader.expect(node, YamlNode::Kind::mapping)) {
  for (const Entry& entry : node.entries) {
    if (is_usable(entry)) entries_.push_back(entry);
  }
}

Section::Section(Reader& reader, const YamlNode& node, Place place, std::initializer_list<std::string_view> keys)
    : Section(reader, node) {
  place_ = std::move(place);
  std::erase_if(entries_, [&](const Entry& entry) {
    const std::string& key = entry.key->text;
    if (std::ranges::find(keys, key) != keys.end()) return false;
    reader_.complain(entry.key->place, fmt::format("unknown {}; {}", shown_key(key), suggestion(key, keys)));
    return true;
  });
}

bool Section::is_usable(const Entry& entry) const {
  const YamlNode& key = *entry.key;
  if (key.kind != YamlNode::Kind::text) {
    reader_.complain(key.place, "a key must be text");
    return false;
  }
  if (entry.value->kind == YamlNode::Kind::nothing && key.text.find(':') != std::string::npos) {
    reader_.complain(key.place, "a key has no value; is the space after its colon missing?");
    return false;
  }
  if (const Entry* first = find(key.text)) {
    reader_.complain(
        key.place, fmt::format("duplicate {}; the first is at {}", shown_key(key.text), to_string(first->key->place)));
    return false;
  }
  return true;
}

const Entry* Section::find(std::string_view key) const {
  const auto entry = std::ranges::find_if(entries_, [key](const Entry& each) { return each.key->text == key; });
  return entry == entries_.end() ? nullptr : &*entry;
}

const Entry* Section::require(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry && is_mapping_) reader_.complain(place_, fmt::format("required key '{}' is missing", key));
  return entry;
}

}  // namespace config
