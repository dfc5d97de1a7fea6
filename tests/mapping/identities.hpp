#pragma once
#include <string>

#include "tests/mapping/plain_store.hpp"
#include "tests/support/catch.hpp"

namespace mapping {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr Time noon = std::chrono::sys_days{std::chrono::year{2026} / 6 / 1} + hours(12);
constexpr Duration e = hours(24);
constexpr Duration w = hours(1);
constexpr std::int64_t two_to_31 = std::int64_t{1} << 31;

constexpr Region shared{0x8dde7554};
const Source a{"4L6g3nShT-eMCtK--X86sw", shared};
const Source b{"5L6g3nShT-eMCtK--X86sw", shared};
const Source c{"free text", {shared.value + 1}};
const Source d{"another one", shared};

inline TopicId topic(int number) {
  TopicId id;
  id.bytes.back() = static_cast<std::byte>(number);
  return id;
}

// Of a source by its place in the proxy's list.
inline Identity identity(std::uint32_t source, std::int64_t pid, int topic_number = 1, std::int32_t partition = 0) {
  return {{source}, topic(topic_number), partition, {pid}};
}
inline CollisionKey key_of(const Source& source, std::int64_t pid, int topic_number = 1) {
  return {topic(topic_number), 0, source.cluster_id, {pid}};
}

// Salts 1, 2, 3 and so on, so that tests can tell where they lead.
inline std::int64_t count_up(const CollisionKey&, int attempt) {
  return attempt + 1;
}
inline StateSettings counting() {
  StateSettings settings;
  settings.protocol.draw = count_up;
  return settings;
}

// Where salt `salt` of count_up leads.
inline ProducerId slot(std::int64_t salt, std::int64_t pid) {
  return layout::pack(salted(shared, salt), {pid});
}

inline void check_natural(const Verdict& verdict, Region region, std::int64_t pid) {
  CHECK(verdict.kind == Verdict::Kind::natural);
  CHECK(verdict.mapped == layout::pack(region, {pid}));
}
inline void check_salted(const Verdict& verdict, ProducerId mapped) {
  CHECK(verdict.kind == Verdict::Kind::salted);
  CHECK(verdict.mapped == mapped);
}
inline void check_hindered(const Verdict& verdict, Hindrance hindrance) {
  CHECK(verdict.kind == Verdict::Kind::not_served);
  CHECK(verdict.hindrance == hindrance);
}

}  // namespace mapping
