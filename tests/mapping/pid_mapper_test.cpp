#include "mapping/pid_mapper.hpp"

#include <boost/endian/conversion.hpp>
#include <limits>
#include <set>
#include <span>

#include "tests/support/catch.hpp"
#include "tests/support/vectors.hpp"

namespace mapping {
namespace {

constexpr auto int64_min = std::numeric_limits<std::int64_t>::min();
constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t two_to_31 = std::int64_t{1} << 31;
constexpr auto uint32_max = std::numeric_limits<std::uint32_t>::max();

BatchFacts batch_of(std::int64_t pid) {
  return {.pid = {pid}, .epoch = 0, .base_sequence = 0, .is_transactional = false, .is_control = false};
}

Decision decide(std::uint32_t region, const BatchFacts& batch) {
  return PidMapper({region}).decide(batch);
}

void check_mapped(std::uint32_t region, std::int64_t pid, std::int64_t mapped) {
  CAPTURE(region, pid);
  const auto decision = decide(region, batch_of(pid));
  CHECK(decision.action == Action::map);
  CHECK(decision.pid == ProducerId{mapped});
  CHECK(decision.refusal == Refusal::none);
}

void check_passed(const BatchFacts& batch) {
  for (const std::uint32_t region : {0u, 42u, uint32_max}) {
    CAPTURE(region, batch.pid.value);
    const auto decision = decide(region, batch);
    CHECK(decision.action == Action::pass);
    CHECK(decision.pid == batch.pid);
    CHECK(decision.refusal == Refusal::none);
    CHECK_FALSE(decision.is_possible_alias);
  }
}

void check_refused(const BatchFacts& batch, Refusal refusal, std::int64_t pid) {
  CAPTURE(batch.pid.value, describe(refusal));
  const auto decision = decide(42, batch);
  CHECK(decision.action == Action::refuse);
  CHECK(decision.refusal == refusal);
  CHECK(decision.pid == ProducerId{pid});
}

std::int64_t f_42(std::int64_t pid) {
  return layout::pack({42}, {pid}).value;
}

template <typename T>
T read(std::span<const std::byte> batch, std::size_t offset) {
  return boost::endian::endian_load<T, sizeof(T), boost::endian::order::big>(
      reinterpret_cast<const unsigned char*>(batch.data() + offset));
}

}  // namespace

TEST_CASE("the mapped ids are those of the specification") {
  check_mapped(42, 5, -9223371946660462587);
  check_mapped(99, 5, -9223371824253894651);
  check_mapped(17, 5, static_cast<std::int64_t>(0x8000000880000005));
  check_mapped(0, 0, int64_min);
  check_mapped(42, two_to_31 - 1, -9223371944512978945);
  check_mapped(uint32_max, 0, static_cast<std::int64_t>(0xffffffff80000000));
  check_mapped(uint32_max, two_to_31 - 2, -2);
}

TEST_CASE("the first batch of every row of the vectors is decided as they say") {
  int batches = 0;
  for (const auto& row : support::golden_batches()) {
    if (read<std::int8_t>(row.in, 16) != 2) continue;
    CAPTURE(row.name);
    const auto attributes = read<std::int16_t>(row.in, 21);
    const BatchFacts batch{.pid = {read<std::int64_t>(row.in, 43)},
                           .epoch = read<std::int16_t>(row.in, 51),
                           .base_sequence = read<std::int32_t>(row.in, 53),
                           .is_transactional = (attributes & 0x10) != 0,
                           .is_control = (attributes & 0x20) != 0};
    REQUIRE(batch.pid == ProducerId{row.pid_in});
    const auto decision = decide(row.region, batch);
    CHECK(decision.pid == ProducerId{row.pid_out});
    const bool is_refused = read<std::int64_t>(row.in, 0) == 0 && read<std::int64_t>(row.out, 0) == 1;
    CHECK((decision.action == Action::refuse) == is_refused);
    CHECK((decision.action == Action::pass) == (row.pid_in < 0));
    ++batches;
  }
  CHECK(batches > 0);
}

TEST_CASE("ids of every cluster of the vectors are mapped as they say") {
  for (const auto& row : support::golden_cluster_ids())
    for (const auto& [pid, mapped] : row.mapped) check_mapped(row.region, pid, mapped);
}

TEST_CASE("every negative id passes, whoever made it") {
  for (const std::int64_t pid : {std::int64_t{-1}, std::int64_t{-2}, std::int64_t{-7}, -two_to_31, int64_min + 5,
                                 int64_min, f_42(5), f_42(0), f_42(two_to_31 - 1)})
    check_passed(batch_of(pid));
}

TEST_CASE("a batch without a producer passes as producers without idempotence write it") {
  auto batch = batch_of(-1);
  batch.epoch = -1;
  batch.base_sequence = -1;
  check_passed(batch);
  batch.is_control = true;
  check_passed(batch);
}

TEST_CASE("a mapped control batch or transactional one passes") {
  auto batch = batch_of(f_42(5));
  batch.is_transactional = true;
  check_passed(batch);
  batch.is_control = true;
  check_passed(batch);
}

TEST_CASE("mapping twice is mapping once, in the same region and in a chain") {
  for (const std::int64_t pid : {std::int64_t{0}, std::int64_t{5}, two_to_31 - 1, two_to_31, two_to_31 + 5}) {
    for (const std::uint32_t first : {0u, 1u, 42u, 99u, 0x80000000u, uint32_max}) {
      if (layout::pack({first}, {pid}) == no_producer_id) continue;
      CAPTURE(pid, first);
      const auto once = decide(first, batch_of(pid));
      REQUIRE(once.action == Action::map);
      check_passed(batch_of(once.pid.value));
    }
  }
}

TEST_CASE("a mapped id tells its region and its producer, and no two ids below 2^31 meet") {
  std::set<std::int64_t> mapped;
  for (const std::uint32_t region : {0u, 1u, 17u, 42u, 0x7fffffffu, 0x80000000u, uint32_max - 1}) {
    for (const std::int64_t pid : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, two_to_31 / 2, two_to_31 - 1}) {
      CAPTURE(region, pid);
      const auto decision = decide(region, batch_of(pid));
      CHECK(decision.pid.value < -1);
      CHECK(layout::region_of(decision.pid) == Region{region});
      CHECK(layout::producer_of(decision.pid) == ProducerId{pid});
      CHECK(mapped.insert(decision.pid.value).second);
    }
  }
}

TEST_CASE("an id from 2^31 on may be another one's alias, and is said to be") {
  CHECK_FALSE(decide(42, batch_of(0)).is_possible_alias);
  CHECK_FALSE(decide(42, batch_of(two_to_31 - 1)).is_possible_alias);
  for (const std::int64_t pid : {two_to_31, two_to_31 + 5, (std::int64_t{1} << 61) + 5, mark::bit - 1}) {
    CAPTURE(pid);
    const auto decision = decide(42, batch_of(pid));
    CHECK(decision.action == Action::map);
    CHECK(decision.is_possible_alias);
    CHECK(decision.pid == ProducerId{f_42(pid % two_to_31)});
  }
}

TEST_CASE("the destination's own ids, which carry the mark, get back what they were") {
  for (const std::int64_t pid : {std::int64_t{0}, std::int64_t{5}, two_to_31, two_to_31 + 5, mark::bit - 1}) {
    CAPTURE(pid);
    const auto marked = mark::set({pid});
    CHECK(mark::is_on(marked));
    const auto decision = decide(42, batch_of(marked.value));
    CHECK(decision.action == Action::unmark);
    CHECK(decision.pid == ProducerId{pid});
    CHECK(decision.refusal == Refusal::none);
    CHECK_FALSE(decision.is_possible_alias);
  }
  CHECK(mark::set({mark::bit - 1}) == ProducerId{int64_max});
  CHECK_FALSE(mark::is_on({mark::bit - 1}));
  CHECK_FALSE(mark::is_on(no_producer_id));
}

TEST_CASE("transactional batches of sources and of the destination are mapped and unmarked like any other") {
  auto batch = batch_of(5);
  batch.is_transactional = true;
  CHECK(decide(42, batch).pid == ProducerId{f_42(5)});
  batch.pid = mark::set({5});
  CHECK(decide(42, batch).pid == ProducerId{5});
}

TEST_CASE("a first sequence above 0 and a high epoch change nothing") {
  auto batch = batch_of(5);
  batch.epoch = std::numeric_limits<std::int16_t>::max();
  batch.base_sequence = std::numeric_limits<std::int32_t>::max();
  CHECK(decide(42, batch).action == Action::map);
  CHECK(decide(42, batch).pid == ProducerId{f_42(5)});
}

TEST_CASE("a producer with a negative epoch or sequence is refused, with an id that no coordinator is asked about") {
  const std::int64_t marked = mark::set({5}).value;
  struct Row {
    std::int64_t pid, written;
  };
  for (const auto& [pid, written] :
       {Row{5, f_42(5)}, Row{0, f_42(0)}, Row{two_to_31 + 5, f_42(5)}, Row{marked, f_42(5)}, Row{-2, -2}, Row{-7, -7},
        Row{int64_min, int64_min}, Row{f_42(9), f_42(9)}}) {
    auto batch = batch_of(pid);
    batch.epoch = -1;
    check_refused(batch, Refusal::negative_epoch, written);
    batch.base_sequence = -1;
    check_refused(batch, Refusal::negative_epoch, written);
    batch.epoch = 0;
    check_refused(batch, Refusal::negative_sequence, written);
    batch.base_sequence = std::numeric_limits<std::int32_t>::min();
    check_refused(batch, Refusal::negative_sequence, written);
  }
}

TEST_CASE("a control batch of a source or of the destination is refused") {
  auto batch = batch_of(5);
  batch.is_control = true;
  check_refused(batch, Refusal::control_batch, f_42(5));
  batch.is_transactional = true;
  check_refused(batch, Refusal::control_batch, f_42(5));
  batch.pid = mark::set({5});
  check_refused(batch, Refusal::control_batch, f_42(5));
  batch.epoch = -1;
  check_refused(batch, Refusal::control_batch, f_42(5));
}

TEST_CASE("a transactional batch without a producer is refused and stays without one") {
  auto batch = batch_of(-1);
  batch.is_transactional = true;
  check_refused(batch, Refusal::no_producer, -1);
  batch.epoch = -1;
  batch.base_sequence = -1;
  check_refused(batch, Refusal::no_producer, -1);
}

TEST_CASE("the one id that would become the id of no producer is refused") {
  for (const std::int64_t pid : {two_to_31 - 1, 2 * two_to_31 - 1, mark::bit - 1}) {
    CAPTURE(pid);
    const auto decision = decide(uint32_max, batch_of(pid));
    CHECK(decision.action == Action::refuse);
    CHECK(decision.refusal == Refusal::is_no_producer_id);
    CHECK(decide(uint32_max - 1, batch_of(pid)).action == Action::map);
  }
  // The destination's own id does not become what F would make of it.
  const auto decision = decide(uint32_max, batch_of(int64_max));
  CHECK(decision.action == Action::unmark);
  CHECK(decision.pid == ProducerId{mark::bit - 1});
}

TEST_CASE("every refusal has a name of its own") {
  std::set<std::string_view> names;
  for (const auto refusal : {Refusal::none, Refusal::negative_epoch, Refusal::negative_sequence, Refusal::control_batch,
                             Refusal::no_producer, Refusal::is_no_producer_id})
    CHECK(names.insert(describe(refusal)).second);
  CHECK(names.count("unknown") == 0);
}

TEST_CASE("the mapper tells the region it was made for") {
  CHECK(PidMapper({42}).home() == Region{42});
}

TEST_CASE("a marker never keeps a source's id, and the destination's own becomes its own again") {
  const PidMapper mapper({42});
  for (const std::int64_t pid : {std::int64_t{0}, std::int64_t{5}, std::int64_t{0x7fffffff}, mark::bit - 1}) {
    CHECK(mapper.decide_marker({pid}) == layout::pack({42}, {pid}));
    CHECK(mapper.decide_marker({pid}).value < 0);
    CHECK(mapper.decide_marker(mark::set({pid})).value == (pid & ~mark::bit));
  }
  for (const std::int64_t pid : {std::int64_t{-1}, std::int64_t{-7}, layout::pack({99}, {5}).value, INT64_MIN})
    CHECK(mapper.decide_marker({pid}).value == pid);
  CHECK(PidMapper({UINT32_MAX}).decide_marker({layout::producer_max}) == no_producer_id);
}

}  // namespace mapping
