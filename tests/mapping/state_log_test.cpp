// What is read from the log, registrations, and what is wrong with either.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/mapping/identities.hpp"
#include "tests/support/catch.hpp"

namespace mapping {
namespace {

Applied::Kind apply_bytes(State& state, const Bytes& key, const std::optional<Bytes>& value,
                          std::int32_t log_partition = 0) {
  static std::int64_t offset = 1000;
  return state.apply(log_partition, offset++, key, value ? std::optional<ByteView>(*value) : std::nullopt, noon).kind;
}
template <class Key, class Value>
Applied::Kind apply(State& state, const Key& key, const Value& value, std::int32_t log_partition = 0) {
  return apply_bytes(state, encode(key), encode(value), log_partition);
}
template <class Key>
Applied::Kind apply_deletion(State& state, const Key& key) {
  return apply_bytes(state, encode(key), std::nullopt);
}

}  // namespace

TEST_CASE("nothing is served in a log partition before the source's registration was read there") {
  PlainLog log(2);
  PlainProxy proxy(log, {a}, noon);
  for (const auto& command : proxy.state().take_commands()) proxy.carry_out(command);
  CHECK(proxy.state().is_loaded());
  CHECK_FALSE(proxy.state().is_ready());
  const auto writes = proxy.state().take_commands();
  REQUIRE(writes.size() == 2);
  for (int number = 0; number < 8; ++number)
    check_hindered(proxy.decide(identity(0, 5, number)), Hindrance::not_registered);
  proxy.carry_out(writes[0]);
  proxy.read();
  CHECK_FALSE(proxy.state().is_undisputed({0}));
  const auto served = std::get<Write>(writes[0]).log_partition;
  for (int number = 0; number < 8; ++number) {
    const bool is_served = log_partition_of(topic(number), 0, 2) == served;
    CHECK((proxy.decide(identity(0, 5, number)).kind == Verdict::Kind::natural) == is_served);
  }
  proxy.carry_out(writes[1]);
  proxy.read();
  CHECK(proxy.state().is_ready());
  CHECK(proxy.state().is_undisputed({0}));
}

TEST_CASE("a registration that failed is written again under another nonce") {
  PlainLog log(1);
  PlainProxy proxy(log, {a}, noon);
  for (const auto& command : proxy.state().take_commands()) proxy.carry_out(command);
  const auto first = proxy.state().take_commands();
  REQUIRE(first.size() == 1);
  const auto& write = std::get<Write>(first[0]);
  proxy.state().failed(write.id, noon);
  proxy.state().tick(noon);
  CHECK(proxy.state().take_commands().empty());  // with a pause
  const auto next = proxy.state().next_tick();
  CHECK(next > noon);
  CHECK(next < noon + minutes(1));
  proxy.state().tick(next);
  const auto second = proxy.state().take_commands();
  REQUIRE(second.size() == 1);
  CHECK(std::get<Write>(second[0]).key != write.key);
  proxy.land(write);  // the first one lands all the same
  proxy.carry_out(second[0]);
  proxy.read();
  CHECK(proxy.state().is_ready());
  REQUIRE(proxy.state().registrations().size() == 1);
  CHECK(proxy.state().registrations()[0].since == noon);
}

TEST_CASE("two proxies that start at the same time on an empty topic agree on the owner") {
  PlainLog log(2);
  PlainProxy one(log, {a, b}, noon, counting());
  PlainProxy other(log, {b, a}, noon, counting());
  for (auto* proxy : {&one, &other})
    for (const auto& command : proxy->state().take_commands()) proxy->carry_out(command);
  auto of_one = one.state().take_commands();
  auto of_other = other.state().take_commands();
  REQUIRE((of_one.size() == 4 && of_other.size() == 4));
  for (std::size_t i = 0; i < 4; ++i) {
    one.carry_out(of_one[i]);
    other.carry_out(of_other[i]);
  }
  for (auto* proxy : {&one, &other}) {
    proxy->settle();
    CHECK(proxy->state().is_ready());
    CHECK(proxy->state().problems().empty());
  }
  CHECK(log.size() == 8);
  for (int number = 0; number < 8; ++number)
    for (const std::uint32_t source : {0U, 1U})
      CHECK(one.serve(identity(source, 5, number)).mapped == [&] {
        other.read();
        return other.serve(identity(1 - source, 5, number)).mapped;
      }());
}

TEST_CASE("another number of partitions, or another region of a source, is a problem that says so") {
  PlainLog log(1);
  log.append(0, RegistrationKey{a.region, a.cluster_id, {}}, RegistrationValue{50, noon});
  PlainProxy proxy(log, {a}, noon);
  proxy.settle();
  REQUIRE(proxy.state().problems().size() == 1);
  CHECK(proxy.state().problems()[0].find("50 partitions") != std::string::npos);

  PlainLog other_log(1);
  other_log.append(0, RegistrationKey{{7}, a.cluster_id, {}}, RegistrationValue{1, noon});
  PlainProxy other(other_log, {a}, noon);
  other.settle();
  REQUIRE(other.state().problems().size() == 1);
  CHECK(other.state().problems()[0].find(a.cluster_id) != std::string::npos);
  CHECK(other.state().problems()[0].find("never changes") != std::string::npos);
}

TEST_CASE("unknown types are skipped and counted; what cannot be decoded or breaks the protocol is told and left out") {
  PlainLog log(2);
  PlainProxy proxy(log, {a, b}, noon);
  proxy.settle();
  auto& state = proxy.state();
  const auto home = log_partition_of(topic(1), 0, 2);
  CHECK(apply_bytes(state, {std::byte{0}, std::byte{99}, std::byte{1}}, std::nullopt) == Applied::Kind::skipped);
  CHECK(state.counts().unknown_types == 1);
  CHECK(apply_bytes(state, {std::byte{0}, std::byte{3}}, std::nullopt) == Applied::Kind::undecodable);
  CHECK(apply_bytes(state, {std::byte{0}}, std::nullopt) == Applied::Kind::undecodable);

  const CollisionValue value{1, a.cluster_id, noon};
  CHECK(apply(state, key_of(b, 5), value, 1 - home) == Applied::Kind::refused);
  CHECK(apply(state, key_of(d, 5), value, home) == Applied::Kind::refused);
  CHECK(apply(state, key_of(b, -5), value, home) == Applied::Kind::refused);
  CHECK(apply(state, key_of(b, 5), CollisionValue{0, a.cluster_id, noon}, home) == Applied::Kind::refused);
  const ClaimKey claim{topic(1), 0, {}};
  CHECK(apply(state, claim, ClaimValue{b.cluster_id, {5}, 0, noon}, home) == Applied::Kind::refused);
  CHECK(apply(state, claim, ClaimValue{b.cluster_id, {5}, 1, noon}, 1 - home) == Applied::Kind::refused);
  CHECK(apply(state, claim, ClaimValue{d.cluster_id, {5}, 1, noon}, home) == Applied::Kind::refused);
  CHECK(apply(state, claim, ClaimValue{b.cluster_id, {-5}, 1, noon}, home) == Applied::Kind::refused);
  CHECK(apply_deletion(state, RegistrationKey{a.region, a.cluster_id, {}}) == Applied::Kind::refused);
  CHECK(state.counts().records == 0);
  CHECK(state.counts().claims == 0);
  check_natural(proxy.decide(identity(0, 5)), shared, 5);
}

TEST_CASE("where a record cannot be decoded who has a salt keeps it, and nobody gets a new one") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  check_salted(proxy.serve(identity(1, 5)), slot(1, 5));
  REQUIRE(apply_bytes(proxy.state(), {std::byte{0}, std::byte{3}}, std::nullopt) == Applied::Kind::undecodable);
  check_salted(proxy.decide(identity(1, 5)), slot(1, 5));
  check_natural(proxy.decide(identity(0, 6)), shared, 6);
  check_hindered(proxy.serve(identity(1, 6)), Hindrance::undecodable);
  const auto size = log.size();
  proxy.state().work_on(identity(1, 6), proxy.now());
  proxy.settle();
  CHECK(log.size() == size);
}

TEST_CASE("a state that is closed serves nobody, also not from what sessions remember") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  LastHit last;
  check_salted(proxy.serve(identity(1, 5)), slot(1, 5));
  check_salted(proxy.state().decide(identity(1, 5), noon, last), slot(1, 5));
  proxy.state().close();
  CHECK_FALSE(proxy.state().is_undisputed({0}));
  check_hindered(proxy.state().decide(identity(1, 5), noon, last), Hindrance::not_loaded);
  CHECK(proxy.state().see_chained(topic(1), 0, {-7}).kind == Chained::refused);
}

TEST_CASE("a state holds nothing until a salt is asked for") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  CHECK(proxy.state().holds_nothing());
  proxy.state().work_on(identity(1, 5), noon);
  CHECK_FALSE(proxy.state().holds_nothing());
  proxy.settle();
  CHECK_FALSE(proxy.state().holds_nothing());
}

TEST_CASE("of two salts for a live identity the last counts, and it is counted") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon);
  proxy.settle();
  CHECK(apply(proxy.state(), key_of(b, 5), CollisionValue{1, a.cluster_id, noon}) == Applied::Kind::applied);
  CHECK(apply(proxy.state(), key_of(b, 5), CollisionValue{2, a.cluster_id, noon}) == Applied::Kind::applied);
  CHECK(proxy.state().counts().two_salts == 1);
  CHECK(proxy.state().counts().records == 1);
  check_salted(proxy.decide(identity(1, 5)), slot(2, 5));
  CHECK(proxy.state().see_chained(topic(1), 0, slot(1, 5)).kind == Chained::passes);
}

TEST_CASE("of two records for one slot the later one is not served until the other is gone") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b, d}, noon);
  proxy.settle();
  apply(proxy.state(), key_of(b, 5), CollisionValue{1, a.cluster_id, noon});
  apply(proxy.state(), key_of(d, 5), CollisionValue{1, a.cluster_id, noon});
  CHECK(proxy.state().counts().slot_conflicts == 1);
  check_salted(proxy.decide(identity(1, 5)), slot(1, 5));
  check_hindered(proxy.decide(identity(2, 5)), Hindrance::slot_conflict);
  apply_deletion(proxy.state(), key_of(b, 5));
  check_salted(proxy.decide(identity(2, 5)), slot(1, 5));
}

TEST_CASE("records and registrations are listed for people") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  proxy.serve(identity(1, 6));
  proxy.serve(identity(1, 5));
  const auto list = proxy.state().list();
  REQUIRE(list.size() == 2);
  CHECK(list[0].key == key_of(b, 5));
  CHECK(list[0].value == CollisionValue{1, a.cluster_id, noon});
  CHECK(list[0].region == salted(shared, 1));
  CHECK(list[1].key == key_of(b, 6));
  const auto registrations = proxy.state().registrations();
  REQUIRE(registrations.size() == 2);
  CHECK(registrations[0].cluster_id == a.cluster_id);
  CHECK(registrations[0].is_owner);
  CHECK(registrations[1].cluster_id == b.cluster_id);
  CHECK_FALSE(registrations[1].is_owner);
}

TEST_CASE("the last hit is forgotten when the log says something new, and when its time is over") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  proxy.serve(identity(1, 5));
  LastHit last;
  const auto decide = [&](Duration after = {}) { return proxy.state().decide(identity(1, 5), noon + after, last); };
  check_salted(decide(), slot(1, 5));
  CHECK(last.generation != 0);
  check_salted(decide(), slot(1, 5));
  CHECK(proxy.state().decide(identity(0, 5), noon, last).kind == Verdict::Kind::natural);  // another identity
  check_salted(decide(), slot(1, 5));
  CHECK(decide(e / 2).needs_refresh);
  check_salted(decide(), slot(1, 5));
  apply_deletion(proxy.state(), key_of(b, 5));
  CHECK(decide().kind == Verdict::Kind::needs_work);
}

TEST_CASE("sessions decide on many threads while the log is applied") {
  PlainLog log(4);
  PlainProxy proxy(log, {a, b}, noon);
  proxy.settle();
  constexpr int topics = 50;
  std::atomic<bool> is_over = false;
  std::atomic<int> ready = 0;
  std::atomic<std::uint64_t> wrong = 0;
  std::vector<std::thread> sessions;
  for (int thread = 0; thread < 3; ++thread)
    sessions.emplace_back([&, thread] {
      LastHit last;
      std::vector<ProducerId> seen(topics, no_producer_id);
      ++ready;
      for (bool is_last = false; !is_last;) {
        is_last = is_over;  // one more round with all in place
        for (int number = 0; number < topics; ++number) {
          const auto verdict = proxy.state().decide(identity(1, 5, number), noon, last);
          auto& before = seen[static_cast<std::size_t>(number)];
          if (verdict.kind == Verdict::Kind::salted) wrong += before != no_producer_id && before != verdict.mapped;
          if (verdict.kind == Verdict::Kind::salted) before = verdict.mapped;
          wrong += proxy.state().decide(identity(0, 5, number), noon, last).kind != Verdict::Kind::natural;
          const auto chained = layout::pack({static_cast<std::uint32_t>(thread)}, {number});
          wrong += proxy.state().see_chained(topic(number), 0, chained).kind != Chained::passes;
        }
        if (is_last) wrong += static_cast<std::uint64_t>(std::ranges::count(seen, no_producer_id));
      }
    });
  while (ready < 3) std::this_thread::yield();
  for (int number = 0; number < topics; ++number)
    CHECK(proxy.serve(identity(1, 5, number)).kind == Verdict::Kind::salted);
  is_over = true;
  for (auto& session : sessions) session.join();
  CHECK(wrong == 0);
}

}  // namespace mapping
