// How a slot is claimed: what is written, in what order, and what becomes of it when something fails.
#include "tests/mapping/identities.hpp"
#include "tests/support/catch.hpp"

namespace mapping {
namespace {

// The one command there is.
template <class Kind>
Kind only(PlainProxy& proxy) {
  const auto commands = proxy.state().take_commands();
  REQUIRE(commands.size() == 1);
  REQUIRE(std::holds_alternative<Kind>(commands[0]));
  return std::get<Kind>(commands[0]);
}

template <class T>
T decoded(const Write& write) {
  const auto result = decode(write.key, write.value ? std::optional<ByteView>(*write.value) : std::nullopt);
  REQUIRE(std::holds_alternative<T>(result));
  return std::get<T>(result);
}

bool is_waiting(PlainProxy& proxy, const Identity& identity) {
  return proxy.decide(identity).kind == Verdict::Kind::needs_work;
}

const Identity second = identity(1, 5);  // of {a, b}: not the owner's

PlainProxy ready(PlainLog& log, std::vector<Source> sources = {a, b}, Time now = noon) {
  PlainProxy proxy(log, std::move(sources), now, counting());
  proxy.settle();
  REQUIRE(proxy.state().is_ready());
  return proxy;
}

}  // namespace

TEST_CASE("a salt is claimed, read back and on to the end, and recorded before anything is served") {
  PlainLog log(1);
  auto proxy = ready(log);
  CHECK(is_waiting(proxy, second));
  proxy.state().work_on(second, proxy.now());
  proxy.state().work_on(second, proxy.now());  // again: nothing new
  const auto claim = only<Write>(proxy);
  CHECK(decoded<Claim>(claim).value == ClaimValue{b.cluster_id, {5}, 1, proxy.now()});
  CHECK(decoded<Claim>(claim).key.topic_id == topic(1));

  proxy.land(claim);
  proxy.read();
  CHECK(proxy.state().take_commands().empty());  // read, and not acknowledged yet
  proxy.state().acknowledged(claim.id, proxy.now());
  const auto end = only<ReadToEnd>(proxy);
  CHECK(is_waiting(proxy, second));
  proxy.state().at_end(end.log_partition, proxy.now());
  const auto record = only<Write>(proxy);
  CHECK(decoded<Collision>(record) == Collision{key_of(b, 5), CollisionValue{1, a.cluster_id, proxy.now()}});

  CHECK(is_waiting(proxy, second));
  proxy.land(record);
  proxy.state().acknowledged(record.id, proxy.now());
  CHECK(is_waiting(proxy, second));  // until it is read
  CHECK(proxy.state().take_finished().empty());
  proxy.read();
  check_salted(proxy.decide(second), slot(1, 5));
  const auto finished = proxy.state().take_finished();
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].identity == second);
  CHECK(finished[0].hindrance == Hindrance::none);
  CHECK(proxy.state().take_commands().empty());
}

TEST_CASE("an end that was reached before the claim was acknowledged does not count for it") {
  PlainLog log(1);
  auto proxy = ready(log, {a, b, d});
  proxy.state().work_on(second, proxy.now());
  const auto claim = only<Write>(proxy);
  proxy.carry_out(claim);
  static_cast<void>(only<ReadToEnd>(proxy));  // the store is on its way to the end ...
  proxy.state().work_on(identity(2, 5), proxy.now());
  const auto other = only<Write>(proxy);
  proxy.land(other);
  proxy.state().acknowledged(other.id, proxy.now());  // ... when the other claim is acknowledged
  CHECK(proxy.state().take_commands().empty());
  proxy.read();
  proxy.state().at_end(0, proxy.now());
  const auto commands = proxy.state().take_commands();
  REQUIRE(commands.size() == 2);
  CHECK(std::holds_alternative<ReadToEnd>(commands[0]));
  CHECK(decoded<Collision>(std::get<Write>(commands[1])).key == key_of(b, 5));
}

TEST_CASE("of two claims for a slot the first in the log holds; the other is deleted and another slot taken") {
  PlainLog log(1);
  auto one = ready(log, {a, b, d});
  auto other = ready(log, {a, b, d});
  one.state().work_on(identity(1, 5), noon);
  other.state().work_on(identity(2, 5), noon);
  const auto first = only<Write>(one);
  const auto later = only<Write>(other);
  one.land(first);
  other.land(later);
  other.state().acknowledged(later.id, noon);
  other.settle();  // it reads both
  CHECK(other.state().counts().lost_claims == 1);
  CHECK(log.claims().size() == 1);
  CHECK(log.collisions().empty());
  one.state().acknowledged(first.id, noon);
  one.settle();
  check_salted(one.decide(identity(1, 5)), slot(1, 5));
  check_salted(other.serve(identity(2, 5)), slot(2, 5));
  one.read();
  check_salted(one.decide(identity(2, 5)), slot(2, 5));
  CHECK(log.claims().size() == 2);
}

TEST_CASE("a claim that another proxy left behind is confirmed, not repeated") {
  PlainLog log(1);
  {
    auto proxy = ready(log);
    proxy.state().work_on(second, noon);
    proxy.land(only<Write>(proxy));
  }
  auto proxy = ready(log, {a, b}, noon + e / 2);
  proxy.state().work_on(second, proxy.now());
  const auto end = only<ReadToEnd>(proxy);
  proxy.carry_out(end);
  const auto record = only<Write>(proxy);
  CHECK(decoded<Collision>(record).value == CollisionValue{1, a.cluster_id, proxy.now()});
  proxy.carry_out(record);
  proxy.settle();
  check_salted(proxy.decide(second), slot(1, 5));
  CHECK(log.claims().size() == 1);
}

TEST_CASE("a claim left behind that is too old to confirm is repeated for the same slot") {
  PlainLog log(1);
  {
    auto proxy = ready(log);
    proxy.state().work_on(second, noon);
    proxy.land(only<Write>(proxy));
  }
  auto proxy = ready(log, {a, b, d}, noon + e * 3 / 4);
  check_salted(proxy.serve(identity(2, 5)), slot(2, 5));  // it still holds its slot
  check_salted(proxy.serve(second), slot(1, 5));
  CHECK(log.claims().size() == 3);
}

TEST_CASE("a claim of our own that is older than E/2 is not acted on") {
  PlainLog log(1);
  auto proxy = ready(log);
  proxy.state().work_on(second, noon);
  const auto claim = only<Write>(proxy);
  proxy.land(claim);
  proxy.wait(e / 2);
  proxy.state().acknowledged(claim.id, proxy.now());
  proxy.settle();
  CHECK(log.collisions().empty());
  const auto finished = proxy.state().take_finished();
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].hindrance == Hindrance::own_claim_old);
  check_hindered(proxy.decide(second), Hindrance::own_claim_old);
  proxy.wait(e / 4);
  check_salted(proxy.serve(second), slot(1, 5));
}

TEST_CASE("an identity whose claim could not be written is not served, and tries again when it is asked for") {
  PlainLog log(1);
  auto proxy = ready(log);
  proxy.state().work_on(second, noon);
  proxy.state().failed(only<Write>(proxy).id, noon);
  const auto finished = proxy.state().take_finished();
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].hindrance == Hindrance::write_failed);
  CHECK(is_retriable(Hindrance::write_failed));
  CHECK(is_waiting(proxy, second));
  CHECK(proxy.state().take_commands().empty());
  check_salted(proxy.serve(second), slot(1, 5));
}

TEST_CASE("a claim that failed and lands all the same is found when the identity comes again") {
  PlainLog log(1);
  auto proxy = ready(log);
  proxy.state().work_on(second, noon);
  const auto claim = only<Write>(proxy);
  proxy.state().failed(claim.id, noon);
  proxy.land(claim);
  proxy.read();
  check_salted(proxy.serve(second), slot(1, 5));
  CHECK(log.claims().size() == 1);
}

TEST_CASE("a record that failed is not used unless it is read, and its claim is acted on again") {
  PlainLog log(1);
  auto proxy = ready(log);
  proxy.state().work_on(second, noon);
  proxy.carry_out(only<Write>(proxy));
  proxy.carry_out(only<ReadToEnd>(proxy));
  const auto record = only<Write>(proxy);
  proxy.state().failed(record.id, noon);
  CHECK(is_waiting(proxy, second));
  const bool lands_late = GENERATE(false, true);
  if (lands_late) {
    proxy.land(record);
    proxy.read();
    check_salted(proxy.decide(second), slot(1, 5));
  }
  check_salted(proxy.serve(second), slot(1, 5));
  CHECK(log.claims().size() == 1);
}

TEST_CASE("a record of another proxy ends our work on that identity") {
  PlainLog log(1);
  auto one = ready(log);
  auto other = ready(log);
  one.state().work_on(second, noon);
  const auto claim = only<Write>(one);
  check_salted(other.serve(second), slot(1, 5));
  one.land(claim);
  one.state().acknowledged(claim.id, noon);
  one.settle();
  check_salted(one.decide(second), slot(1, 5));
  CHECK(log.claims().size() == 1);  // ours was late: deleted
  CHECK(one.state().counts().works == 0);
}

TEST_CASE("no more identities than allowed are worked on at a time") {
  auto settings = counting();
  settings.works_max = 1;
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, settings);
  proxy.settle();
  proxy.state().work_on(identity(1, 5), noon);
  proxy.state().work_on(identity(1, 6), noon);
  const auto finished = proxy.state().take_finished();
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].identity == identity(1, 6));
  CHECK(finished[0].hindrance == Hindrance::busy);
  proxy.settle();
  check_salted(proxy.decide(identity(1, 5)), slot(1, 5));
  check_salted(proxy.serve(identity(1, 6)), slot(1, 6));
}

TEST_CASE("a claim into a region whose source was registered before it holds nothing") {
  PlainLog log(1);
  auto without = ready(log, {a, b});
  without.state().work_on(second, noon);
  const auto claim = only<Write>(without);
  auto proxy = ready(log, {a, b, c});  // registers c, to whose region the claim leads
  without.land(claim);
  without.state().acknowledged(claim.id, noon);
  without.settle();
  CHECK(without.state().counts().lost_claims == 1);
  check_salted(without.serve(second), slot(2, 5));
  proxy.read();
  check_natural(proxy.serve(identity(2, 5)), c.region, 5);
}

TEST_CASE("an owner's claim is void while its natural slot is free") {
  PlainLog log(1);
  auto proxy = ready(log);
  log.append(0, ClaimKey{topic(1), 0, {{std::byte{9}}}}, ClaimValue{a.cluster_id, {5}, 7, noon});
  proxy.read();
  check_natural(proxy.decide(identity(0, 5)), shared, 5);
  CHECK(proxy.state().see_chained(topic(1), 0, slot(7, 5)).kind == Chained::passes);
}

}  // namespace mapping
