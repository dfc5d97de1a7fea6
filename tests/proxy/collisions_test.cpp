#include "proxy/collisions.hpp"

#include <algorithm>

#include "proxy/state_store.hpp"
#include "tests/mapping/identities.hpp"
#include "tests/proxy/filters.hpp"
#include "tests/proxy/frames.hpp"
#include "tests/support/catch.hpp"

// Two sources of one region at a state topic in memory: the first owns it, the second one's producers take salts.
namespace proxy {
namespace {

using mapping::Action;
using support::Bytes;
using support::piece_sizes;
using Status = RequestFilter::Status;

constexpr std::int16_t by_name = 9, by_id = 13;  // versions of Produce
constexpr std::int16_t metadata = 3;
constexpr std::int16_t not_enough_replicas = 19, invalid_record = 87;
constexpr mapping::SourceIndex owner{0}, other{1};

mapping::TopicId orders() {
  mapping::TopicId id;
  codec::Writer out(false);
  out.integer(std::uint64_t{0x1122334455667788}).integer(std::uint64_t{0x99aabbccddeeff00});
  std::ranges::copy(out.data(), id.bytes.begin());
  return id;
}

mapping::Identity identity(std::int64_t pid, std::int32_t partition = 3) {
  return {other, orders(), partition, {pid}};
}

// What the sessions of a proxy share. The store never runs: `settle` does what it would have done.
class Shared {
 public:
  Shared()
      : plain_(log_, {mapping::a, mapping::b}, std::chrono::floor<mapping::Duration>(std::chrono::system_clock::now())),
        store_(destination_, config_, {mapping::a, mapping::b}),
        context(plain_.state(), store_, "__mirror_state") {
    plain_.settle();
  }
  void settle(const mapping::Identity& identity) { plain_.serve(identity); }

 private:
  mapping::PlainLog log_{1};
  mapping::PlainProxy plain_;
  config::Destination destination_;
  config::State config_;
  StateStore store_;

 public:
  CollisionContext context;
};

// One session of a source.
struct Session {
  Session(Shared& shared, mapping::SourceIndex source)
      : collisions(shared.context, source), connection({.region = mapping::shared.value, .collisions = &collisions}) {}

  support::SeenBatch send(std::int64_t pid, std::int16_t version, std::int32_t sequence = 0) {
    sent = connection.send(support::produce(version, support::batch({.pid = pid, .sequence = sequence})));
    REQUIRE(sent.status == Status::more);
    return connection.observer.batches.back();
  }

  Collisions collisions;
  support::Connection connection;
  support::Outcome sent;
};

// A broker has told of the topic on the session's connection, as it was asked.
void describe_topic(Session& session) {
  session.collisions.knows({"orders", {}, 3});
  session.collisions.learn("orders", orders());
}

codec::Writer response_head(bool flexible) {
  codec::Writer out(flexible);
  return out.integer(support::correlation).no_tags();
}

struct Answer {
  std::int32_t partition;
  std::int16_t error;
};

Bytes produce_response(const std::vector<Answer>& answers) {
  auto out = response_head(true);
  out.array(1).string("orders").array(answers.size());
  for (const auto& [partition, error] : answers) {
    out.integer(partition).integer(error).integer(std::int64_t{-1}).integer(std::int64_t{-1}).integer(std::int64_t{-1});
    out.array(0).null_string().no_tags();
  }
  return out.no_tags().integer(std::int32_t{0}).no_tags().frame();
}

Bytes metadata_response(std::int16_t version, const mapping::TopicId& id) {
  auto out = response_head(true);
  out.integer(std::int32_t{0}).array(0).null_string().integer(std::int32_t{-1}).array(1);
  out.integer(std::int16_t{0}).string("orders");
  if (version >= 10) out.raw(id.bytes);
  out.integer(std::int8_t{0}).array(0).integer(std::int32_t{0}).no_tags();
  if (version < 11) out.integer(std::int32_t{0});
  return out.no_tags().frame();
}

void receive(Session& session, const Bytes& response, const Bytes& expected) {
  for (const auto piece : piece_sizes()) {
    session.connection.in_flight.push(session.connection.in_flight.front());
    const auto outcome = session.connection.receive(response, piece);
    CHECK(outcome.status == Status::more);
    REQUIRE(support::to_hex(outcome.bytes) == support::to_hex(expected));
  }
}

}  // namespace

TEST_CASE("the owner's producers are mapped at once, and no topic id is asked for") {
  Shared shared;
  Session session(shared, owner);
  const auto seen = session.send(5, by_name);
  CHECK(seen.action == Action::map);
  CHECK(seen.pid_after == mapping::layout::pack(mapping::shared, {5}).value);
  CHECK(session.collisions.questions().is_empty());
}

TEST_CASE("a batch without a salt is made refusable and deferred; with one it is mapped to its slot") {
  Shared shared;
  Session session(shared, other);
  const auto deferred = session.send(5, by_id);
  CHECK(deferred.action == Action::defer);
  CHECK(deferred.deferral == Deferral::no_record);
  CHECK(deferred.pid_after < -1);
  CHECK(session.sent.bytes.size() == support::produce(by_id, support::batch({.pid = 5})).size());
  REQUIRE(session.connection.in_flight.back().deferred.size() == 1);

  shared.settle(identity(5));
  const auto mapped = session.send(5, by_id);
  CHECK(mapped.action == Action::map);
  CHECK(mapped.pid_after != mapping::layout::pack(mapping::shared, {5}).value);
  CHECK(session.connection.in_flight.back().deferred.empty());
}

TEST_CASE("a topic that is named is deferred until its id is known, which is asked for once") {
  Shared shared;
  Session session(shared, other);
  shared.settle(identity(5));
  CHECK(session.send(5, by_name).deferral == Deferral::no_topic_id);
  CHECK(session.send(5, by_name).deferral == Deferral::no_topic_id);
  CHECK(session.collisions.questions().names == std::set<std::string>{"orders"});

  session.collisions.learn("orders", orders());
  CHECK(session.send(5, by_name).action == Action::map);
}

TEST_CASE("a topic's new id is known to every session as soon as one has heard of it") {
  Shared shared;
  Session session(shared, other), another(shared, other);
  shared.settle(identity(5));
  session.collisions.learn("orders", orders());
  CHECK(session.send(5, by_name).action == Action::map);
  another.collisions.learn("orders", mapping::topic(9));
  CHECK(session.send(5, by_name).deferral == Deferral::no_record);
}

TEST_CASE("topic ids are learnt from a Metadata answer that passes, unchanged and cut anywhere") {
  for (const auto piece : piece_sizes()) {
    Shared shared;
    Session session(shared, other);
    shared.settle(identity(5));
    session.connection.expect(support::correlation, metadata, 12);
    const auto response = metadata_response(12, orders());
    CHECK(session.connection.receive(response, piece).bytes == response);
    CHECK(session.send(5, by_name).action == Action::map);
  }
}

TEST_CASE("a topic in a Metadata answer without ids is asked for anew, by a source that needs it") {
  Shared shared;
  Session in_need(shared, other), owning(shared, owner);
  in_need.collisions.learn("orders", orders());
  for (auto* session : {&in_need, &owning}) {
    session->connection.expect(support::correlation, metadata, 9);
    const auto response = metadata_response(9, {});
    CHECK(session->connection.receive(response).bytes == response);
  }
  CHECK(in_need.collisions.questions().names == std::set<std::string>{"orders"});
  CHECK(owning.collisions.questions().is_empty());
  CHECK(in_need.send(5, by_name).deferral == Deferral::no_topic_id);
}

TEST_CASE("the answer to a question of the proxy's own is learnt from and goes no further") {
  Shared shared;
  Session session(shared, other);
  shared.settle(identity(5));
  session.connection.in_flight.push(
      {.correlation_id = support::correlation, .api_key = metadata, .version = 12, .is_own = true});
  CHECK(session.connection.receive(metadata_response(12, orders())).bytes.empty());
  CHECK(session.connection.in_flight.empty());
  CHECK(session.send(5, by_name).action == Action::map);
}

TEST_CASE("of a deferred partition alone INVALID_RECORD becomes NOT_ENOUGH_REPLICAS, cut anywhere") {
  Shared shared;
  Session session(shared, other);
  session.collisions.learn("orders", orders());
  REQUIRE(session.send(5, by_name).action == Action::defer);
  constexpr std::int16_t not_leader = 6;
  receive(session, produce_response({{2, invalid_record}, {3, invalid_record}, {4, 0}}),
          produce_response({{2, invalid_record}, {3, not_enough_replicas}, {4, 0}}));
  CHECK(session.connection.observer.deferred_appended == 0);
  receive(session, produce_response({{3, not_leader}}), produce_response({{3, not_leader}}));
}

TEST_CASE("a broker that appends a deferred batch all the same is told of") {
  Shared shared;
  Session session(shared, other);
  session.collisions.learn("orders", orders());
  session.send(5, by_name);
  session.connection.receive(produce_response({{3, 0}}));
  CHECK(session.connection.observer.deferred_appended == 1);
}

TEST_CASE("what waits is forgotten when an answer sends its client to another broker, and at no other error") {
  Shared shared;
  Session session(shared, other);
  session.collisions.learn("orders", orders());
  session.send(5, by_name, 0);
  shared.settle(identity(5));
  CHECK(session.send(5, by_name, 1).deferral == Deferral::behind_another);
  CHECK(session.send(5, by_name, 1).deferral == Deferral::behind_another);
  session.connection.receive(produce_response({{3, not_enough_replicas}}));  // the broker's own
  CHECK(session.send(5, by_name, 1).deferral == Deferral::behind_another);
  constexpr std::int16_t not_leader = 6;
  session.connection.receive(produce_response({{3, not_leader}}));
  CHECK(session.send(5, by_name, 1).action == Action::map);
}

TEST_CASE("nothing of a producer passes before its first batch that was told to come again") {
  Shared shared;
  Session session(shared, other);
  CHECK(session.send(5, by_id, 0).deferral == Deferral::no_record);
  CHECK(session.send(5, by_id, 1).deferral == Deferral::no_record);
  shared.settle(identity(5));
  shared.settle(identity(6));
  CHECK(session.send(5, by_id, 2).deferral == Deferral::behind_another);
  CHECK(session.send(6, by_id, 9).action == Action::map);  // of another producer
  CHECK(session.send(5, by_id, 1).deferral == Deferral::behind_another);
  CHECK(session.send(5, by_id, 0).action == Action::map);
  CHECK(session.send(5, by_id, 2).deferral == Deferral::behind_another);
  CHECK(session.send(5, by_id, 3).deferral == Deferral::behind_another);
  for (const auto sequence : {1, 2, 3, 4}) CHECK(session.send(5, by_id, sequence).action == Action::map);
}

TEST_CASE("a batch that does not come back is forgotten after a while") {
  WaitingBatches waiting;
  const WaitingBatches::Producer producer{"orders", 3, {5}};
  const WaitingBatches::Clock::time_point start{};
  REQUIRE(waiting.add(producer, {0, 0}, start));
  CHECK(waiting.is_behind_another(producer, {0, 1}, start + WaitingBatches::patience));
  REQUIRE(waiting.add(producer, {0, 0}, start + WaitingBatches::patience));  // it came again
  CHECK(waiting.is_behind_another(producer, {0, 1}, start + 2 * WaitingBatches::patience));
  CHECK_FALSE(
      waiting.is_behind_another(producer, {0, 1}, start + 2 * WaitingBatches::patience + std::chrono::seconds(1)));
  CHECK(waiting.is_empty());
}

TEST_CASE("no more batches wait than are kept in order") {
  WaitingBatches waiting;
  const WaitingBatches::Clock::time_point start{};
  for (std::size_t i = 0; i < WaitingBatches::size_max; ++i)
    REQUIRE(waiting.add({"orders", 3, {5}}, {static_cast<std::int16_t>(i % 7), static_cast<std::int32_t>(i)}, start));
  CHECK(waiting.add({"orders", 3, {5}}, {0, 0}, start));
  CHECK_FALSE(waiting.add({"orders", 3, {6}}, {0, 0}, start));
}

TEST_CASE("a batch that nobody answers is held, and leaves with its salt") {
  const auto version = GENERATE(by_name, by_id);
  Shared shared;
  Session session(shared, other);
  describe_topic(session);
  const auto request = support::produce(version, support::batch({.pid = 5}), 0);
  auto outcome = session.connection.send(request);
  CHECK(outcome.status == Status::held);
  CHECK(session.connection.observer.batches.empty());
  shared.settle(identity(5));
  const Bytes rest(request.end() - static_cast<std::ptrdiff_t>(outcome.undecided), request.end());
  outcome = session.connection.send(rest);
  CHECK(outcome.status == Status::more);
  CHECK(session.connection.observer.batches.back().action == Action::map);
}

TEST_CASE("nothing of a request that nobody answers leaves before its topics are known, cut anywhere") {
  const auto version = GENERATE(by_name, by_id);
  const auto request = support::produce(version, support::batch({.pid = 5}), 0);
  for (const auto piece : piece_sizes()) {
    Shared shared;
    Session session(shared, other);
    shared.settle(identity(5));
    auto outcome = session.connection.send(request, piece);
    REQUIRE(outcome.status == Status::held);
    CHECK(outcome.bytes.empty());
    CHECK(session.connection.requests.may_interject());
    CHECK(session.collisions.questions().names.size() + session.collisions.questions().ids.size() == 1);
    session.collisions.learn("orders", orders());
    outcome = session.connection.send(request, piece);
    CHECK(outcome.status == Status::more);
    CHECK(session.connection.observer.batches.back().action == Action::map);
  }
}

TEST_CASE("batches that nobody answers and that need no topic id leave at once, salts or not, and after a login") {
  Shared shared;
  shared.settle(identity(5));
  Session session(shared, owner);
  const auto pid = GENERATE(std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 62 | 7);
  CHECK(session.connection.send(support::produce(by_name, support::batch({.pid = pid}), 0)).status == Status::more);
  CHECK(session.collisions.questions().is_empty());
}

TEST_CASE("behind a login the topics of a request that nobody answers are asked for, too") {
  constexpr std::int16_t sasl_authenticate = 36;
  Shared shared;
  Session session(shared, other);
  session.connection.send(support::request_head(sasl_authenticate, 2, true).bytes(Bytes(4)).no_tags().frame());
  CHECK_FALSE(session.connection.requests.may_interject());
  const auto request = support::produce(by_name, support::batch({.pid = 5}), 0);
  CHECK(session.connection.send(request).status == Status::held);
  CHECK(session.connection.requests.may_interject());
  CHECK_FALSE(session.connection.requests.is_at_frame_boundary());  // a stop lets it finish
}

TEST_CASE("a topic that was known when a request began stays known to its end") {
  Shared shared;
  Session session(shared, other);
  describe_topic(session);
  const auto held = session.connection.send(support::produce(by_name, support::batch({.pid = 5}), 0));
  REQUIRE(held.status == Status::held);
  shared.context.topic_ids.forget("orders");
  shared.settle(identity(5));
  const auto request = support::produce(by_name, support::batch({.pid = 5}), 0);
  const Bytes rest(request.end() - static_cast<std::ptrdiff_t>(held.undecided), request.end());
  CHECK(session.connection.send(rest).status == Status::more);
  CHECK(session.connection.observer.batches.back().action == Action::map);
}

TEST_CASE("a batch that nobody answers and that may be held no longer is made refusable") {
  Shared shared;
  Session session(shared, other);
  describe_topic(session);
  const auto request = support::produce(by_id, support::batch({.pid = 5}), 0);
  const auto held = session.connection.send(request);
  REQUIRE(held.status == Status::held);
  session.connection.requests.stop_holding();
  const Bytes rest(request.end() - static_cast<std::ptrdiff_t>(held.undecided), request.end());
  CHECK(session.connection.send(rest).status == Status::more);
  CHECK(session.connection.observer.batches.back().action == Action::defer);
  CHECK(session.connection.send(request).status == Status::held);  // the next one waits again
}

TEST_CASE("whatever is sent into the state topic is refused, by its name and by its id") {
  Shared shared;
  Session session(shared, owner);
  const auto pid = GENERATE(std::int64_t{-1}, std::int64_t{5}, std::int64_t{-7});
  shared.context.state_topic.learn(orders());
  const auto seen = session.send(pid, by_id);
  CHECK(seen.action == Action::refuse);
  CHECK(seen.refusal == mapping::Refusal::state_topic);
  CHECK(seen.pid_after < 0);
  CHECK(StateTopicName("orders").is("orders"));
  CHECK_FALSE(StateTopicName("orders").is(mapping::TopicId{}));
}

TEST_CASE("a chained id by name passes at once where nobody has a salt") {
  Shared shared;
  Session session(shared, other);
  const auto chained = mapping::layout::pack({7}, {5}).value;
  CHECK(session.send(chained, by_name).action == Action::pass);
  shared.settle(identity(5));
  CHECK(session.send(chained, by_name).deferral == Deferral::no_topic_id);
}

TEST_CASE("a chained id that is also a source's own passes, is counted each time, and is news once") {
  Shared shared;
  Session session(shared, other);
  const auto natural = mapping::layout::pack(mapping::shared, {5}).value;
  for (int i = 0; i < 3; ++i) CHECK(session.send(natural, by_id).action == Action::pass);
  CHECK(session.connection.observer.shared_chained == 3);
  CHECK(session.connection.observer.first_shared_chained == 1);
}

TEST_CASE("a chained id on another producer's slot is deferred, and any other one passes") {
  Shared shared;
  Session session(shared, other);
  shared.settle(identity(5));
  const auto held = session.send(5, by_id).pid_after;
  Session chained(shared, owner);
  const auto seen = chained.send(held, by_id);
  CHECK(seen.action == Action::defer);
  CHECK(seen.deferral == Deferral::chained_slot_held);
  CHECK(chained.send(held + 1, by_id).action == Action::pass);
  CHECK(chained.connection.observer.shared_chained == 0);
}

TEST_CASE("an owner's producer past 31 bits, and one that would be -1, are salted and not taken for another") {
  Shared shared;
  Session session(shared, owner);
  const auto pid = mapping::two_to_31 + 5;
  CHECK(session.send(pid, by_id).action == Action::defer);
  shared.settle({owner, orders(), 3, {pid}});
  const auto seen = session.send(pid, by_id);
  CHECK(seen.action == Action::map);
  CHECK_FALSE(seen.is_possible_alias);
  CHECK(seen.pid_after != session.send(5, by_id).pid_after);
}

}  // namespace proxy
