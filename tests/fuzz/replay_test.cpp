#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/targets.hpp"
#include "tests/support/catch.hpp"

namespace {

void replay(const std::string& name, void (*target)(fuzz::Input)) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FUZZ_CORPUS) / name))
    files.push_back(entry.path());
  std::ranges::sort(files);
  REQUIRE_FALSE(files.empty());
  for (const auto& path : files) {
    INFO(path);
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file.is_open());
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    target(std::as_bytes(std::span(bytes)));
    // And cut short: the corpus is of whole messages.
    for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 8) {
      const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      target(std::as_bytes(std::span(cut)));
    }
  }
}

}  // namespace

TEST_CASE("the corpus of the walker's fuzz target is walked alike whole and in pieces") {
  replay("walker", fuzz::walker);
}

TEST_CASE("the corpus of the endpoints' fuzz target is rewritten to responses that can be read again") {
  replay("endpoints", fuzz::endpoints);
}

TEST_CASE("the corpus of the fuzz target of ApiVersions is clamped to answers that can be read again") {
  replay("api_versions", fuzz::api_versions);
}
