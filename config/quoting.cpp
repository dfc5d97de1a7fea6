#include "config/quoting.hpp"

#include <algorithm>

namespace config {

namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The size of `[address]:` at the start of the text, 0 where there is none.
std::size_t bracketed_address(std::string_view text) {
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos || !text.substr(end).starts_with("]:")) return 0;
  const std::string_view address = text.substr(1, end - 1);
  const bool good = address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  const bool port_follows = text.size() > end + 2 && !is_space(text[end + 2]);
  return good && port_follows && address.find(':') != std::string_view::npos ? end + 2 : 0;
}

}  // namespace

std::optional<std::size_t> skip_quoted(std::string_view yaml, std::size_t start) {
  const char quote = yaml[start];
  for (std::size_t i = start + 1; i < yaml.size(); ++i) {
    if (quote == '"' && yaml[i] == '\\') {
      ++i;
    } else if (yaml[i] == quote) {
      if (quote == '"' || !yaml.substr(i + 1).starts_with(quote)) return i + 1;
      ++i;  // '' inside '...' is a quote
    }
  }
  return std::nullopt;
}

std::vector<MissingQuotes> find_missing_quotes(std::string_view yaml) {
  std::vector<MissingQuotes> found;
  int depth = 0;            // of [ and {
  bool value_start = true;  // whether a value may begin here: quotes and brackets inside a plain text mean nothing
  std::size_t i = 0;
  while (i < yaml.size()) {
    const std::string_view rest = yaml.substr(i);
    const char c = rest[0];
    const bool opens = (c == '[' || c == '{') && (value_start || depth > 0);
    if (c == '#' && (i == 0 || is_space(yaml[i - 1]))) {
      i = std::min(yaml.find('\n', i), yaml.size());
    } else if (is_space(c)) {
      value_start = value_start || c == '\n';
      ++i;
    } else if (value_start && (c == '"' || c == '\'')) {
      value_start = false;
      i = skip_quoted(yaml, i).value_or(yaml.size());
    } else if (depth > 0 && rest.starts_with("${")) {
      found.push_back({i, "'${' inside [...] or {...} must be quoted, as in \"${NAME}\""});
      value_start = false;
      i += std::min(rest.find('}'), rest.size() - 1) + 1;
    } else if (const std::size_t size = opens ? bracketed_address(rest) : 0; size > 0) {
      found.push_back({i, "an address in brackets must be quoted, as in \"[::]:19092\""});
      value_start = false;
      i += size;
    } else {
      if (opens) ++depth;
      if ((c == ']' || c == '}') && depth > 0) --depth;
      const bool before_space = rest.size() == 1 || is_space(rest[1]);
      const bool dash = value_start && (c == '-' || c == '?') && before_space;
      value_start = opens || dash || (c == ':' && before_space) || (c == ',' && depth > 0);
      ++i;
    }
  }
  return found;
}

}  // namespace config
