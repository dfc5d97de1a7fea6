#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace mapping {

// Spreads what differs in any bit over all 64 (the finalizer of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// Finds entries of a table of the caller's by a hash of them, at 4 bytes a cell: what is stored is their number alone.
// Several may have the same hash, or the same key. The caller says what an entry's hash is, by its number, and it must
// not change while the entry is in here.
//
// Open addressing, linear probing, at most 3/4 full. Erasing moves later entries back, so that there are no graves.
class IndexTable {
 public:
  template <class HashOf>
  void insert(std::uint32_t number, const HashOf& hash_of) {
    if ((size_ + 1) * 4 > cells_.size() * 3) grow(hash_of);
    put(number, hash_of(number));
    ++size_;
  }

  template <class HashOf>
  void erase(std::uint32_t number, const HashOf& hash_of) {
    auto hole = home(hash_of(number));
    while (cells_[hole] != number) hole = next(hole);
    for (auto at = next(hole); cells_[at] != empty; at = next(at)) {
      // An entry may move to the hole unless its home lies behind the hole, cyclically.
      const auto distance_from_home = (at - home(hash_of(cells_[at]))) & (cells_.size() - 1);
      const auto distance_from_hole = (at - hole) & (cells_.size() - 1);
      if (distance_from_home < distance_from_hole) continue;
      cells_[hole] = cells_[at];
      hole = at;
    }
    cells_[hole] = empty;
    --size_;
  }

  // Calls `visit(number)` for all entries that may have that hash, until it says true; then true. The visitor compares.
  template <class Visit>
  bool find(std::uint64_t hash, const Visit& visit) const {
    if (cells_.empty()) return false;
    for (auto at = home(hash); cells_[at] != empty; at = next(at))
      if (visit(cells_[at])) return true;
    return false;
  }

  template <class Visit>
  void each(const Visit& visit) const {
    for (const auto number : cells_)
      if (number != empty) visit(number);
  }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint32_t empty = UINT32_MAX;
  static constexpr std::size_t cells_min = 16;

  std::size_t home(std::uint64_t hash) const { return static_cast<std::size_t>(hash) & (cells_.size() - 1); }
  std::size_t next(std::size_t at) const { return (at + 1) & (cells_.size() - 1); }

  void put(std::uint32_t number, std::uint64_t hash) {
    auto at = home(hash);
    while (cells_[at] != empty) at = next(at);
    cells_[at] = number;
  }

  template <class HashOf>
  void grow(const HashOf& hash_of) {
    const auto old = std::exchange(cells_, Cells(cells_.empty() ? cells_min : cells_.size() * 2, empty));
    for (const auto number : old)
      if (number != empty) put(number, hash_of(number));
  }

  using Cells = std::vector<std::uint32_t>;
  Cells cells_;  // a power of two of them, or none
  std::size_t size_ = 0;
};

// Entries with numbers that stay as long as they do. Numbers of erased ones are used again.
template <class T>
class NumberedTable {
 public:
  std::uint32_t add(const T& entry) {
    if (free_.empty()) {
      entries_.push_back(entry);
      return static_cast<std::uint32_t>(entries_.size() - 1);
    }
    const auto number = free_.back();
    free_.pop_back();
    entries_[number] = entry;
    return number;
  }
  void erase(std::uint32_t number) { free_.push_back(number); }

  T& operator[](std::uint32_t number) { return entries_[number]; }
  const T& operator[](std::uint32_t number) const { return entries_[number]; }

 private:
  std::deque<T> entries_;
  std::vector<std::uint32_t> free_;
};

}  // namespace mapping
