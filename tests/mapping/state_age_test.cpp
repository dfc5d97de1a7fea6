// What becomes of records and claims with time.
#include "tests/mapping/identities.hpp"
#include "tests/support/catch.hpp"

namespace mapping {
namespace {

const Identity second = identity(1, 5);  // of {a, b}: not the owner's

Time recorded_at(const PlainLog& log, const Source& source = b) {
  return log.collisions().at(key_of(source, 5)).timestamp;
}

}  // namespace

TEST_CASE("a record is rewritten on use from E/2 on, and used meanwhile") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  check_salted(proxy.serve(second), slot(1, 5));
  proxy.wait(e / 2 - milliseconds(1));
  CHECK_FALSE(proxy.decide(second).needs_refresh);
  proxy.wait(milliseconds(1));
  check_salted(proxy.decide(second), slot(1, 5));
  CHECK(proxy.decide(second).needs_refresh);
  CHECK(recorded_at(log) == noon);  // not by itself
  check_salted(proxy.serve(second), slot(1, 5));
  CHECK(recorded_at(log) == noon + e / 2);
  CHECK_FALSE(proxy.decide(second).needs_refresh);
}

TEST_CASE("a record that cannot be rewritten is used up to 3/4 E and no longer") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  proxy.serve(second);
  proxy.wait(e / 2);
  proxy.state().work_on(second, proxy.now());
  const auto commands = proxy.state().take_commands();
  REQUIRE(commands.size() == 1);
  proxy.state().failed(std::get<Write>(commands[0]).id, proxy.now());
  proxy.wait(e / 4 - milliseconds(1));
  check_salted(proxy.decide(second), slot(1, 5));
  proxy.wait(milliseconds(1));
  CHECK(proxy.decide(second).kind == Verdict::Kind::needs_work);
}

TEST_CASE("a record past 3/4 E is claimed again for the same slot") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  proxy.serve(second);
  proxy.wait(e * 3 / 4);
  check_salted(proxy.serve(second), slot(1, 5));
  CHECK(log.claims().size() == 2);
  CHECK(recorded_at(log) == noon + e * 3 / 4);
}

TEST_CASE("such a claim must hold without the old record; while another stands before it the identity waits") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b, d}, noon, counting());
  proxy.settle();
  proxy.serve(second);
  log.append(0, ClaimKey{topic(1), 0, {{std::byte{9}}}}, ClaimValue{d.cluster_id, {5}, 1, noon});  // void, but there
  proxy.read();
  proxy.wait(e * 3 / 4);
  const auto size = log.size();
  check_hindered(proxy.serve(second), Hindrance::contested);
  CHECK(log.size() == size);
  proxy.live(e / 2);  // until the void claim is deleted
  check_salted(proxy.serve(second), slot(1, 5));
}

TEST_CASE("claims are deleted from E on, a record from 2 E on, and then its slot is free") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b, d}, noon, counting());
  proxy.settle();
  check_salted(proxy.serve(second), slot(1, 5));
  proxy.live(e - minutes(1));
  CHECK(log.claims().size() == 1);
  proxy.live(e / 8);
  CHECK(log.claims().empty());
  proxy.live(e * 7 / 8 - minutes(1));
  CHECK(log.collisions().size() == 1);
  check_salted(proxy.serve(identity(2, 5)), slot(2, 5));
  proxy.live(e / 8);
  CHECK_FALSE(log.collisions().contains(key_of(b, 5)));
  check_salted(proxy.serve(identity(2, 6)), slot(1, 6));
  check_salted(proxy.serve(second), slot(1, 5));  // late return
  proxy.live(e * 4);
  const auto size = log.size();
  CHECK(log.collisions().empty());
  CHECK(log.claims().empty());
  CHECK(proxy.state().counts().records == 0);
  proxy.live(e * 4);
  CHECK(log.size() == size);
}

TEST_CASE("a claim that nobody confirmed is deleted from 2 E on") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  log.append(0, ClaimKey{topic(1), 0, {{std::byte{9}}}}, ClaimValue{b.cluster_id, {5}, 1, noon});
  proxy.read();
  proxy.live(e * 2 - minutes(1));
  CHECK(log.claims().size() == 1);
  proxy.live(e / 8);
  CHECK(log.claims().empty());
}

TEST_CASE("a record is not deleted while a claim stands for its identity or its slot") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b, d}, noon, counting());
  proxy.settle();
  proxy.serve(second);
  proxy.live(e * 3 / 2);
  CHECK(log.claims().empty());
  const auto& claimant = GENERATE_REF(b, d);
  log.append(0, ClaimKey{topic(1), 0, {{std::byte{9}}}}, ClaimValue{claimant.cluster_id, {5}, 1, proxy.now()});
  proxy.read();
  proxy.live(e * 3 / 4);
  CHECK(log.collisions().size() == 1);
}

TEST_CASE("a deletion that fails is tried again") {
  PlainLog log(1);
  PlainProxy proxy(log, {a, b}, noon, counting());
  proxy.settle();
  proxy.serve(second);
  proxy.wait(e * 2);
  int failures = 0;
  for (int turn = 0; turn < 200 && failures < 2; ++turn) {
    proxy.wait(minutes(30));
    proxy.state().tick(proxy.now());
    for (const auto& command : proxy.state().take_commands()) {
      const auto* write = std::get_if<Write>(&command);
      if (!write) {
        proxy.carry_out(command);
        continue;
      }
      proxy.state().failed(write->id, proxy.now());
      ++failures;
    }
  }
  CHECK(failures == 2);
  CHECK(log.claims().size() == 1);
  proxy.live(e);
  CHECK(log.claims().empty());
  CHECK(log.collisions().empty());
}

TEST_CASE("what holds a natural slot of a source that came later stays for good; that source's identity takes a salt") {
  PlainLog log(1);
  {
    PlainProxy before(log, {a, b}, noon, counting());
    before.settle();
    check_salted(before.serve(second), slot(1, 5));  // in the region of c
  }
  PlainProxy proxy(log, {a, b, c}, noon + hours(1), counting());
  proxy.settle();
  const auto third = identity(2, 5);
  CHECK_FALSE(proxy.state().is_undisputed({2}));
  check_salted(proxy.decide(second), slot(1, 5));
  check_natural(proxy.decide(identity(2, 6)), c.region, 6);
  check_hindered(proxy.decide(third), Hindrance::settling);
  proxy.wait(w * 3 - milliseconds(1));
  check_hindered(proxy.decide(third), Hindrance::settling);
  proxy.wait(milliseconds(1));
  check_salted(proxy.serve(third), layout::pack(salted(c.region, 1), {5}));
  CHECK(log.collisions().at(key_of(c, 5)).colliding_cluster_id == b.cluster_id);

  proxy.live(e * 4);
  CHECK(log.collisions().contains(key_of(b, 5)));
  CHECK_FALSE(log.collisions().contains(key_of(c, 5)));
  CHECK(log.claims().empty());
  const auto size = log.size();
  check_salted(proxy.serve(second), slot(1, 5));
  CHECK(log.size() == size + 1);  // renewed directly: a claim could not hold
  CHECK(recorded_at(log) == proxy.now());
}

TEST_CASE("for 3 W after a registration an old record on its natural slots is not renewed") {
  PlainLog log(1);
  {
    PlainProxy before(log, {a, b}, noon, counting());
    before.settle();
    before.serve(second);
  }
  PlainProxy proxy(log, {a, b, c}, noon + e, counting());
  proxy.settle();
  check_hindered(proxy.serve(second), Hindrance::settling);
  check_hindered(proxy.serve(identity(2, 5)), Hindrance::settling);
  proxy.wait(w * 3);
  check_salted(proxy.serve(second), slot(1, 5));
  check_salted(proxy.serve(identity(2, 5)), layout::pack(salted(c.region, 1), {5}));
}

TEST_CASE("a claim on a natural slot of a source that came later stays for good as well") {
  PlainLog log(1);
  PlainProxy before(log, {a, b}, noon, counting());
  before.settle();
  log.append(0, ClaimKey{topic(1), 0, {{std::byte{9}}}}, ClaimValue{b.cluster_id, {5}, 1, noon});
  PlainProxy proxy(log, {a, b, c}, noon, counting());
  proxy.settle();
  check_hindered(proxy.decide(identity(2, 5)), Hindrance::settling);
  proxy.live(e * 3);
  CHECK(log.claims().size() == 1);
  CHECK(proxy.decide(identity(2, 5)).kind == Verdict::Kind::needs_work);
  const auto size = log.size();
  check_salted(proxy.serve(second), slot(1, 5));
  CHECK(log.size() == size + 1);
}

TEST_CASE("a clock that is ahead or behind by W changes no slot") {
  PlainLog log(1);
  PlainProxy ahead(log, {a, b}, noon + w, counting());
  ahead.settle();
  check_salted(ahead.serve(second), slot(1, 5));
  PlainProxy behind(log, {a, b}, noon, counting());
  behind.settle();
  check_salted(behind.decide(second), slot(1, 5));
  behind.wait(e * 3 / 4);
  check_salted(behind.decide(second), slot(1, 5));
  CHECK(behind.decide(second).needs_refresh);
}

}  // namespace mapping
