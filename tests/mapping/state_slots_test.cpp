// Whose a slot is, and who takes a salt.
#include "tests/mapping/identities.hpp"
#include "tests/support/catch.hpp"

namespace mapping {

TEST_CASE("sources that share no region write one registration a log partition, and nothing else ever") {
  PlainLog log(50);
  PlainProxy proxy(log, {a, c}, noon);
  CHECK_FALSE(proxy.state().is_loaded());
  CHECK_FALSE(proxy.state().is_undisputed({0}));
  check_hindered(proxy.decide(identity(0, 5)), Hindrance::not_loaded);
  proxy.settle();
  CHECK(proxy.state().is_ready());
  CHECK(log.size() == 100);
  for (const std::uint32_t source : {0U, 1U}) CHECK(proxy.state().is_undisputed({source}));
  check_natural(proxy.serve(identity(0, 5)), a.region, 5);
  check_natural(proxy.serve(identity(1, 5)), c.region, 5);
  proxy.live(e * 5);
  PlainProxy(log, {a, c}, noon + e * 5).settle();
  CHECK(log.size() == 100);
}

TEST_CASE("a region belongs to the source that was registered first, whoever sends first") {
  PlainLog log(1);
  PlainProxy first(log, {a}, noon);
  first.settle();
  PlainProxy proxy(log, {b, a}, noon, counting());
  proxy.settle();
  CHECK(proxy.state().is_undisputed({1}));
  CHECK_FALSE(proxy.state().is_undisputed({0}));
  check_salted(proxy.serve(identity(0, 5)), slot(1, 5));
  check_natural(proxy.serve(identity(1, 5)), shared, 5);
  CHECK(log.collisions().at(key_of(b, 5)).colliding_cluster_id == a.cluster_id);
  CHECK(proxy.state().is_undisputed({1}));
}

TEST_CASE("the owner of a region may be another one in each log partition") {
  PlainLog log(2);
  const auto append = [&](std::int32_t partition, const Source& source, std::byte nonce) {
    log.append(partition, RegistrationKey{source.region, source.cluster_id, {{nonce}}}, RegistrationValue{2, noon});
  };
  append(0, a, std::byte{1});
  append(0, b, std::byte{2});
  append(1, b, std::byte{3});
  append(1, a, std::byte{4});
  PlainProxy proxy(log, {a, b}, noon);
  proxy.settle();
  CHECK(log.size() == 4);
  for (const std::uint32_t source : {0U, 1U}) CHECK_FALSE(proxy.state().is_undisputed({source}));
  for (int number = 0; number < 20; ++number) {
    const auto owner = static_cast<std::uint32_t>(log_partition_of(topic(number), 0, 2));
    CHECK(proxy.decide(identity(owner, 5, number)).kind == Verdict::Kind::natural);
    CHECK(proxy.decide(identity(1 - owner, 5, number)).kind == Verdict::Kind::needs_work);
  }
}

TEST_CASE("two producer ids of one cluster that differ by 2^31 are kept apart") {
  PlainLog log(1);
  PlainProxy proxy(log, {a}, noon, counting());
  proxy.settle();
  check_salted(proxy.serve(identity(0, two_to_31 + 5)), slot(1, 5));
  check_natural(proxy.serve(identity(0, 5)), shared, 5);
  check_salted(proxy.serve(identity(0, 2 * two_to_31 + 5)), slot(2, 5));
  CHECK(log.collisions().at(key_of(a, two_to_31 + 5)).colliding_cluster_id == a.cluster_id);
}

TEST_CASE("no identity becomes -1, neither by nature nor by its salt") {
  constexpr std::int64_t ones = two_to_31 - 1;
  PlainLog log(1);
  const Source last{"the last region", {UINT32_MAX}};
  const Source before_last{"the one before", {UINT32_MAX - 1}};
  PlainProxy proxy(log, {last, before_last}, noon, counting());
  proxy.settle();
  check_salted(proxy.serve(identity(0, ones)), layout::pack({0}, {ones}));
  CHECK(log.collisions().begin()->second.colliding_cluster_id == last.cluster_id);
  check_natural(proxy.serve(identity(0, ones - 1)), last.region, ones - 1);

  PlainLog other_log(1);
  PlainProxy other(other_log, {before_last}, noon, counting());
  other.settle();
  // Salt 1 would lead to -1.
  check_salted(other.serve(identity(0, two_to_31 + ones)), layout::pack({0}, {ones}));
  check_salted(other.serve(identity(0, two_to_31 + 7)), layout::pack({UINT32_MAX}, {7}));
}

TEST_CASE("a salt that leads to a registered source's natural region is skipped") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b, c}, noon, counting());
  proxy.settle();
  check_salted(proxy.serve(identity(1, 5)), slot(2, 5));
  CHECK(proxy.state().is_undisputed({2}));
}

TEST_CASE("a third source of a region takes another slot than the second") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b, d}, noon, counting());
  proxy.settle();
  check_natural(proxy.serve(identity(0, 5)), shared, 5);
  check_salted(proxy.serve(identity(1, 5)), slot(1, 5));
  check_salted(proxy.serve(identity(2, 5)), slot(2, 5));
  check_salted(proxy.serve(identity(2, 6)), slot(1, 6));
  check_salted(proxy.serve(identity(2, 5, 1, 1)), slot(1, 5));
}

TEST_CASE("two identities that are worked on at the same time draw different slots") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b, d}, noon, counting());
  proxy.settle();
  proxy.state().work_on(identity(1, 5), noon);
  proxy.state().work_on(identity(2, 5), noon);
  proxy.settle();
  check_salted(proxy.decide(identity(1, 5)), slot(1, 5));
  check_salted(proxy.decide(identity(2, 5)), slot(2, 5));
  CHECK(proxy.state().counts().lost_claims == 0);
}

TEST_CASE("when no attempt finds a slot that is an error, and nothing is written") {
  auto settings = counting();
  settings.protocol.draw = [](const CollisionKey&, int) -> std::int64_t { return 1; };
  PlainLog log(1);
  PlainProxy proxy(log, {a, b, d}, noon, settings);
  proxy.settle();
  check_salted(proxy.serve(identity(1, 5)), slot(1, 5));
  const auto size = log.size();
  static_cast<void>(proxy.state().take_finished());
  proxy.state().work_on(identity(2, 5), noon);
  proxy.settle();
  const auto finished = proxy.state().take_finished();
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].identity == identity(2, 5));
  CHECK(finished[0].hindrance == Hindrance::exhausted);
  CHECK_FALSE(is_retriable(finished[0].hindrance));
  check_hindered(proxy.decide(identity(2, 5)), Hindrance::exhausted);  // and not a retry for ever
  proxy.wait(minutes(2));
  CHECK(proxy.decide(identity(2, 5)).kind == Verdict::Kind::needs_work);
  CHECK(log.size() == size);
}

TEST_CASE("a salt of 0 is none, nor is one that leads back to the natural region") {
  auto settings = counting();
  settings.protocol.draw = [](const CollisionKey&, int attempt) {
    return std::array<std::int64_t, 3>{0, std::int64_t{1} << 32, -1}[static_cast<std::size_t>(attempt % 3)];
  };
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, settings);
  proxy.settle();
  check_salted(proxy.serve(identity(1, 5)), slot(-1, 5));
}

TEST_CASE("a topic that was created again is another topic") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  check_salted(proxy.serve(identity(1, 5, 1)), slot(1, 5));
  CHECK(proxy.decide(identity(1, 5, 2)).kind == Verdict::Kind::needs_work);
  check_salted(proxy.serve(identity(1, 5, 2)), slot(1, 5));
  CHECK(log.collisions().contains(key_of(b, 5, 1)));
  CHECK(log.collisions().contains(key_of(b, 5, 2)));
  proxy.live(e);
  check_salted(proxy.serve(identity(1, 5, 2)), slot(1, 5));  // only the new one is used
  proxy.live(e * 3 / 2);
  CHECK_FALSE(log.collisions().contains(key_of(b, 5, 1)));
  CHECK(log.collisions().contains(key_of(b, 5, 2)));
}

TEST_CASE("after a restart no slot changes hands, in whatever order the traffic comes") {
  PlainLog log(3);
  {
    PlainProxy proxy(log, {a, b, d}, noon);
    proxy.settle();
    for (int number = 0; number < 10; ++number)
      for (const std::uint32_t source : {2U, 0U, 1U}) proxy.serve(identity(source, 5, number));
  }
  const auto collisions = log.collisions();
  CHECK(collisions.size() == 20);
  PlainProxy proxy(log, {d, b, a}, noon);
  proxy.settle();
  for (int number = 9; number >= 0; --number) {
    check_natural(proxy.serve(identity(2, 5, number)), shared, 5);
    const auto check_same = [&](std::uint32_t source, const Source& is) {
      const auto salt = collisions.at(key_of(is, 5, number)).salt;
      check_salted(proxy.serve(identity(source, 5, number)), slot(salt, 5));
    };
    check_same(0, d);
    check_same(1, b);
  }
  CHECK(log.collisions() == collisions);
}

TEST_CASE("a chained value passes, and salts avoid its region in that partition") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  auto seen = proxy.state().see_chained(topic(1), 0, slot(1, 77));
  CHECK(seen.kind == Chained::passes);
  CHECK(seen.is_first);
  seen = proxy.state().see_chained(topic(1), 0, slot(1, 78));
  CHECK(seen.kind == Chained::passes);
  CHECK_FALSE(seen.is_first);
  check_salted(proxy.serve(identity(1, 5)), slot(2, 5));
  check_salted(proxy.serve(identity(1, 5, 1, 1)), slot(1, 5));  // nothing chained was seen there
}

TEST_CASE("a chained value on a registered source's natural slot is the same producer, and shared") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon);
  proxy.settle();
  const auto seen = proxy.state().see_chained(topic(1), 0, layout::pack(shared, {5}));
  CHECK(seen.kind == Chained::shared);
  CHECK(seen.is_first);
  CHECK_FALSE(proxy.state().see_chained(topic(1), 0, layout::pack(shared, {5})).is_first);
  check_natural(proxy.decide(identity(0, 5)), shared, 5);
}

TEST_CASE("a chained value is refused on a slot that a record, a claim or a claim under way holds") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  const auto kind = [&](std::int64_t salt) { return proxy.state().see_chained(topic(1), 0, slot(salt, 5)).kind; };
  proxy.state().work_on(identity(1, 5), noon);
  CHECK(kind(1) == Chained::refused);
  const auto commands = proxy.state().take_commands();
  REQUIRE(commands.size() == 1);
  proxy.land(std::get<Write>(commands[0]));
  proxy.state().failed(std::get<Write>(commands[0]).id, noon);  // it landed all the same
  CHECK(kind(1) == Chained::passes);
  proxy.read();
  CHECK(kind(1) == Chained::refused);  // by the claim
  CHECK(kind(2) == Chained::passes);
  check_salted(proxy.serve(identity(1, 5)), slot(1, 5));
  CHECK(kind(1) == Chained::refused);  // by the record
  CHECK(proxy.state().see_chained(topic(1), 1, slot(1, 5)).kind == Chained::passes);
}

}  // namespace mapping
