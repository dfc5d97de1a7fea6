#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace config {

// A place where brackets or braces are meant as text and YAML takes them for a list or a mapping.
struct MissingQuotes {
  std::size_t offset = 0;  // in bytes
  std::string_view advice;
};

// Finds `${` inside [...] or {...}, and [address]:port anywhere, where no quotes are around it. The file is known to be
// broken YAML when this is asked, and the parser's own words ("end of map flow not found") help nobody; so a guess
// that knows quotes, comments and nesting, but no block scalars, is good enough.
std::vector<MissingQuotes> find_missing_quotes(std::string_view yaml);

// The offset after the closing quote of the text whose opening quote stands at `start`; none: it is never closed.
std::optional<std::size_t> skip_quoted(std::string_view yaml, std::size_t start);

}  // namespace config
