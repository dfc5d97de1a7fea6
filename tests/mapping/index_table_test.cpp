#include "mapping/index_table.hpp"

#include <algorithm>
#include <random>

#include "tests/support/catch.hpp"

namespace mapping {

TEST_CASE("an index finds what was put in and not erased, whatever was erased before, equal hashes included") {
  std::mt19937 random(7);
  for (const std::uint64_t hashes : {1U, 5U, 40U, 100'000U}) {
    CAPTURE(hashes);
    std::vector<std::uint64_t> hash_of_number;
    const auto hash_of = [&](std::uint32_t number) { return hash_of_number[number]; };
    std::vector<std::uint32_t> numbers;  // in the index
    IndexTable index;
    const auto finds = [&](std::uint32_t number) {
      return index.find(hash_of(number), [&](std::uint32_t found) { return found == number; });
    };
    for (int step = 0; step < 400; ++step) {
      if (numbers.empty() || random() % 3 != 0) {
        // Also hashes whose home is the last cell, so that what follows wraps around.
        hash_of_number.push_back(random() % hashes + 15);
        numbers.push_back(static_cast<std::uint32_t>(hash_of_number.size() - 1));
        index.insert(numbers.back(), hash_of);
      } else {
        const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(random() % numbers.size());
        index.erase(*at, hash_of);
        numbers.erase(at);
      }
      REQUIRE(index.size() == numbers.size());
      for (std::uint32_t number = 0; number < hash_of_number.size(); ++number)
        REQUIRE(finds(number) == (std::ranges::find(numbers, number) != numbers.end()));
    }
    std::vector<std::uint32_t> all;
    index.each([&](std::uint32_t number) { all.push_back(number); });
    CHECK(std::ranges::is_permutation(all, numbers));
  }
}

TEST_CASE("numbers of erased entries are used again, and the others stay") {
  NumberedTable<int> table;
  CHECK(table.add(10) == 0);
  CHECK(table.add(11) == 1);
  table.erase(0);
  CHECK(table.add(12) == 0);
  CHECK(table.add(13) == 2);
  CHECK((table[0] == 12 && table[1] == 11 && table[2] == 13));
}

}  // namespace mapping
