#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "mapping/pid_mapper.hpp"
#include "mapping/state.hpp"
#include "proxy/topic_ids.hpp"
#include "proxy/waiting_batches.hpp"

namespace proxy {

class StateStore;

// What all sessions share about collisions; absent with `state: off`.
struct CollisionContext {
  CollisionContext(mapping::State& the_state, StateStore& the_store, std::string topic)
      : state(the_state), store(the_store), state_topic(std::move(topic)) {}

  mapping::State& state;
  StateStore& store;
  StateTopicName state_topic;
  TopicIds topic_ids;
};

// Where a batch goes: a topic by its name, or by its id from Produce 13 on.
struct BatchPlace {
  std::string_view topic_name;  // of no meaning where there is an id
  std::optional<mapping::TopicId> topic_id;
  std::int32_t partition;

  // For people: the name, or the id as Kafka prints it.
  std::string topic() const { return topic_id ? topic_id->text() : std::string(topic_name); }
};

// Why a batch is deferred. All of it passes by itself, and is told apart for the people who watch.
enum class Deferral : std::uint8_t {
  none,
  no_topic_id,        // the request names the topic, and its id has been asked for
  no_record,          // the salt is being claimed and written
  behind_another,     // an earlier batch of the producer is to come again first
  chained_slot_held,  // a chained id whose slot is another identity's; then come the mapping::Hindrances but none
};
inline constexpr std::size_t deferrals = static_cast<std::size_t>(Deferral::chained_slot_held) + mapping::hindrances;
std::string_view describe(Deferral deferral);

// Topics whose ids a session needs.
struct TopicQuestions {
  std::set<std::string> names;
  std::set<mapping::TopicId> ids;  // whether they exist

  bool is_empty() const { return names.empty() && ids.empty(); }
};

// One session's view of collisions: takes what the memoryless mapping says of a batch, and says what it becomes given
// what is remembered. In the normal case, an owner's producer, that is one atomic load.
//
// Its invariant: nothing is written for a client that no broker knows. A deferred batch goes to the broker, made
// refusable; the work on its salt begins with the broker's 87, which shows that the topic and the partition are there
// and that the client may write to it. For a batch that nobody answers it begins when the broker has described the
// topic on the client's connection.
class Collisions {
 public:
  // `shared` must outlive it.
  Collisions(CollisionContext& shared, mapping::SourceIndex source) : shared_(shared), source_(source) {}

  struct Batch {
    mapping::ProducerId pid;
    std::int16_t epoch;
    std::int32_t sequence;
  };
  struct Outcome {
    mapping::Decision decision;
    Deferral deferral = Deferral::none;
    bool is_shared_chained = false;  // a chained value on a natural slot: the same producer by another route
    bool is_first = false;           // ... of that region in that partition
    std::optional<mapping::Identity> work = {};  // of a deferred batch: to be asked for when a broker has judged it
  };
  Outcome refine(const mapping::Decision& decision, const Batch& batch, const BatchPlace& place);

  // A batch that will be answered goes on as `outcome` says. False: more wait than are kept in order.
  bool sent(const Outcome& outcome, const Batch& batch, const std::string& topic, std::int32_t partition);
  void request_work(const mapping::Identity& identity);
  // What waits for this partition goes elsewhere.
  void forget_waiting(const std::string& topic, std::int32_t partition) { waiting_.remove(topic, partition); }

  // ---- For a request that nobody will answer.

  // What the request before it found is forgotten.
  void begin_request() { topics_of_request_.clear(); }
  // Whether a batch with this id can be judged only with its topic's.
  bool needs_topic_id(mapping::ProducerId pid) const;
  // Whether the topic's id is known, and stays so for this request, and a broker has told of it on this connection:
  // that is all that shows who is there. Else it is asked for.
  bool knows(const BatchPlace& place);
  bool is_described(const mapping::TopicId& id) const { return described_.contains(id); }

  // Topics to be asked for on the session's own broker connection.
  TopicQuestions& questions() { return questions_; }
  void learn(std::string_view topic_name, const mapping::TopicId& id);
  // A client that speaks a Metadata without ids has asked for this topic.
  void saw_name_alone(std::string_view topic_name);

 private:
  Outcome judge(const mapping::Decision& decision, mapping::ProducerId pid, const BatchPlace& place);
  std::optional<mapping::TopicId> topic_id_of(const BatchPlace& place);
  Outcome judge_chained(const mapping::Decision& decision, mapping::ProducerId pid, const BatchPlace& place);
  void ask(std::string_view topic_name);

  CollisionContext& shared_;
  mapping::SourceIndex source_;
  mapping::LastHit last_;
  std::string last_topic_;  // whose id is `last_topic_id_`: found without the lock that all threads share
  std::optional<TopicIds::Known> last_topic_id_;
  std::uint64_t last_changes_ = 0;  // as of then
  bool has_asked_ = false;
  std::set<mapping::TopicId> described_;  // by a broker, on this connection, since it was asked
  std::map<std::string, mapping::TopicId, std::less<>> topics_of_request_;
  TopicQuestions questions_;
  WaitingBatches waiting_;
};

}  // namespace proxy
