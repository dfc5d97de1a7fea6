#include "config/document.hpp"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "config/quoting.hpp"

namespace config {

namespace {

// Makes nodes of the parser's events. Errors leave as the parser's own exception, from inside it.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string_view yaml, const std::string& file_name) : yaml_(yaml), file_name_(file_name) {}

  YamlNodePtr root() const { return root_; }

  Place place(const YAML::Mark& mark) const { return {file_name_, mark.line + 1, mark.column + 1}; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) throw YAML::ParserException(mark, "a second document; a configuration is one");
  }

  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // The mark of an absent value is that of whatever comes next.
    const bool is_value = !open_.empty() && open_.back().key;
    auto node = make(YamlNode::Kind::nothing, mark, anchor);
    if (is_value) node->place = open_.back().key->place;
    add(node);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto& node = anchored_.at(anchor);
    if (std::ranges::any_of(open_, [&](const Open& open) { return open.node == node; })) {
      throw YAML::ParserException(mark, "an alias inside of what it stands for");
    }
    add(node);
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    expect_closing_quote(mark);
    auto node = make(YamlNode::Kind::text, mark, anchor);
    node->text = value;
    add(node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(make(YamlNode::Kind::list, mark, anchor), style);
  }

  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(make(YamlNode::Kind::mapping, mark, anchor), style);
  }

  void OnMapEnd() override { close(); }

 private:
  // A list or mapping whose end has not come, and the key whose value is awaited.
  struct Open {
    std::shared_ptr<YamlNode> node;
    YamlNodePtr key;
  };

  std::shared_ptr<YamlNode> make(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->place = place(mark);
    if (anchor != 0) anchored_[anchor] = node;
    return node;
  }

  void open(std::shared_ptr<YamlNode> node, YAML::EmitterStyle::value style) {
    node->flow = style == YAML::EmitterStyle::Flow;
    open_.push_back({std::move(node), {}});
  }

  void close() {
    const YamlNodePtr node = open_.back().node;
    open_.pop_back();
    add(node);
  }

  void add(const YamlNodePtr& node) {
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Open& parent = open_.back();
    if (parent.node->kind == YamlNode::Kind::list) {
      parent.node->items.push_back(node);
    } else if (!parent.key) {
      parent.key = node;
    } else {
      parent.node->entries.push_back({std::move(parent.key), node});
      parent.key = nullptr;
    }
  }

  // yaml-cpp takes the end of the file for the end of a quoted text, and would hand out a password with a blank more.
  void expect_closing_quote(const YAML::Mark& mark) const {
    const auto start = static_cast<std::size_t>(std::max(mark.pos, 0));
    if (start >= yaml_.size() || (yaml_[start] != '"' && yaml_[start] != '\'')) return;
    if (!skip_quoted(yaml_, start)) throw YAML::ParserException(mark, "a quote that is never closed");
  }

  std::string_view yaml_;
  const std::string& file_name_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::shared_ptr<YamlNode>> anchored_;
  YamlNodePtr root_;
};

Place place_of(std::string_view yaml, std::size_t offset, const std::string& file_name) {
  const std::string_view before = yaml.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {file_name, static_cast<int>(line), static_cast<int>(offset - line_start) + 1};
}

// How many bytes the UTF-8 character at the start of the text has; 0: it is none, or one that no YAML may hold.
std::size_t character_size(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [byte](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= ' ' || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) return follows(1) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first < 0xf5) return follows(1) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

// yaml-cpp puts another character in the place of one it cannot read, in passwords too, and takes some control
// characters for the end of the file.
std::optional<std::size_t> find_non_text(std::string_view yaml) {
  std::size_t i = 0;
  while (i < yaml.size()) {
    const std::size_t size = character_size(yaml.substr(i));
    if (size == 0) return i;
    i += size;
  }
  return std::nullopt;
}

std::vector<Problem> syntax_problems(std::string_view yaml, const std::string& file_name, const Place& place,
                                     std::size_t offset, std::string_view reason) {
  const auto missing_quotes = find_missing_quotes(yaml);
  std::vector<Problem> problems;
  const bool explained = !missing_quotes.empty() && missing_quotes.front().offset <= offset;
  // After a colon yaml-cpp cites the file, and what it cites may be secret.
  if (!explained) problems.push_back({place, fmt::format("YAML syntax: {}", reason.substr(0, reason.find(':')))});
  for (const MissingQuotes& missing : missing_quotes) {
    problems.push_back({place_of(yaml, missing.offset, file_name), fmt::format("YAML syntax: {}", missing.advice)});
  }
  return problems;
}

}  // namespace

Document parse_document(std::string_view yaml, const std::string& file_name) {
  if (yaml.starts_with("\xef\xbb\xbf")) yaml.remove_prefix(3);  // the byte order mark of some editors
  if (const auto offset = find_non_text(yaml)) {
    return {{}, {{place_of(yaml, *offset, file_name), "YAML syntax: a byte that is no UTF-8 text"}}};
  }
  std::istringstream stream{std::string(yaml)};
  Builder builder(yaml, file_name);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) continue;
  } catch (const YAML::Exception& error) {
    const auto offset = static_cast<std::size_t>(std::max(error.mark.pos, 0));
    return {{}, syntax_problems(yaml, file_name, builder.place(error.mark), offset, error.msg)};
  }
  return {builder.root(), {}};
}

}  // namespace config
