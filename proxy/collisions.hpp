#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "mapping/pid_mapper.hpp"
#include "mapping/state.hpp"
#include "proxy/topic_ids.hpp"

namespace proxy {

class StateStore;

// What all sessions share about collisions; absent with `state: off`.
struct CollisionContext {
  mapping::State& state;
  StateStore& store;
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
  chained_slot_held,  // a chained id whose slot is another identity's; then come the mapping::Hindrances but none
};
inline constexpr std::size_t deferrals = static_cast<std::size_t>(Deferral::chained_slot_held) + mapping::hindrances;
std::string_view describe(Deferral deferral);

// One session's view of collisions: takes what the memoryless mapping says of a batch, and says what it becomes given
// what is remembered. In the normal case, an owner's producer, that is one atomic load.
class Collisions {
 public:
  // `shared` must outlive it.
  Collisions(CollisionContext& shared, mapping::SourceIndex source) : shared_(shared), source_(source) {}

  struct Outcome {
    mapping::Decision decision;
    Deferral deferral = Deferral::none;
    bool is_shared_chained = false;  // a chained value on a natural slot: the same producer by another route
    bool is_first = false;           // ... of that region in that partition
  };
  Outcome refine(const mapping::Decision& decision, mapping::ProducerId pid, const BatchPlace& place);

  // Topics whose ids are wanted: to be asked for on the session's own broker connection.
  std::set<std::string>& topics_to_ask() { return topics_to_ask_; }
  void learn(std::string_view topic_name, const mapping::TopicId& id);
  // A client that speaks a Metadata without ids has asked for this topic.
  void saw_name_alone(std::string_view topic_name);

 private:
  std::optional<mapping::TopicId> topic_id_of(const BatchPlace& place);
  Outcome refine_chained(const mapping::Decision& decision, mapping::ProducerId pid, const BatchPlace& place);

  CollisionContext& shared_;
  mapping::SourceIndex source_;
  mapping::LastHit last_;
  std::set<std::string> topics_to_ask_;
};

}  // namespace proxy
