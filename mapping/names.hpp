#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mapping/assignments.hpp"
#include "mapping/state_records.hpp"

namespace mapping {

// A partition of a topic of the destination.
struct Place {
  TopicId topic_id;
  std::int32_t partition;
  bool operator==(const Place&) const = default;

  std::uint64_t hash() const {
    std::uint64_t halves[2];
    std::memcpy(halves, topic_id.bytes.data(), sizeof halves);
    return mix(mix(halves[0] + static_cast<std::uint32_t>(partition)) + halves[1]);
  }
};

// Small numbers for cluster ids and places, which stand in every entry. Numbers are never given back: there are as many
// as there ever were sources and partitions with salted identities.
class Names {
 public:
  std::optional<SourceNumber> find_source(std::string_view cluster_id) const {
    for (SourceNumber number = 0; number < cluster_ids_.size(); ++number)
      if (cluster_ids_[number] == cluster_id) return number;
    return std::nullopt;
  }
  SourceNumber source(std::string_view cluster_id) {
    if (const auto known = find_source(cluster_id)) return *known;
    cluster_ids_.emplace_back(cluster_id);
    return static_cast<SourceNumber>(cluster_ids_.size() - 1);
  }
  const std::string& cluster_id(SourceNumber number) const { return cluster_ids_[number]; }

  PlaceNumber place(const Place& place) {
    const auto [at, is_new] = numbers_.try_emplace(place, static_cast<PlaceNumber>(places_.size()));
    if (is_new) places_.push_back(place);
    return at->second;
  }
  std::optional<PlaceNumber> find(const Place& place) const {
    const auto at = numbers_.find(place);
    if (at == numbers_.end()) return std::nullopt;
    return at->second;
  }
  const Place& place(PlaceNumber number) const { return places_[number]; }

  CollisionKey collision_key(const IdentityKey& key) const {
    const auto& at = places_[key.place];
    return {at.topic_id, at.partition, cluster_ids_[key.source], key.pid};
  }

 private:
  struct Hash {
    std::size_t operator()(const Place& place) const { return place.hash(); }
  };
  std::vector<std::string> cluster_ids_;
  std::vector<Place> places_;
  boost::unordered_flat_map<Place, PlaceNumber, Hash> numbers_;
};

}  // namespace mapping
