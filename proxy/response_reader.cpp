#include "proxy/response_reader.hpp"

#include <algorithm>
#include <string>

#include "codec/frame.hpp"
#include "codec/walker.hpp"

namespace proxy {
namespace {

using Bytes = std::span<std::byte>;
using boost::endian::big_int16_t;
using codec::Role;
using codec::Walker;

constexpr std::int16_t invalid_record = 87;
constexpr std::int16_t not_enough_replicas = 19;
// Unknown topic, not the leader, fenced leader epoch, unknown topic id: the client turns to another broker, or to none.
constexpr std::int16_t elsewhere[] = {3, 6, 74, 100};
constexpr codec::Version topic_ids_since = 10;  // of Metadata

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls `see` for each field with a role in a whole response.
template <typename See>
codec::ErrorCode walk(Bytes frame, const PendingResponse& pending, See see) {
  const auto& api = *codec::find_api(pending.api_key);
  if (frame.size() < sizeof(codec::ResponseHead)) return codec::Error::truncated;
  auto bytes = frame.subspan(sizeof(codec::ResponseHead));
  for (const auto* message : {&codec::headers::response, api.response}) {
    const auto version =
        message == api.response ? pending.version : codec::response_header_version(api, pending.version);
    Walker walker(*message, version, bytes.size());
    codec::Cursor in(bytes);
    for (;;) {
      const auto step = walker.next(in);
      if (step.kind == Walker::Step::Kind::done) break;
      if (step.kind == Walker::Step::Kind::malformed) return walker.error();
      if (step.kind == Walker::Step::Kind::need_more) return codec::Error::truncated;
      if (step.kind == Walker::Step::Kind::tagged || step.kind == Walker::Step::Kind::records) in.take(step.size);
      if (step.kind == Walker::Step::Kind::field) see(step);
    }
    bytes = bytes.subspan(in.position());
  }
  return {};
}

}  // namespace

codec::Result<std::size_t> retry_deferred(Bytes frame, const PendingResponse& pending, Collisions& collisions) {
  std::string topic;
  std::int32_t partition = -1;
  std::size_t appended = 0;
  const auto error = walk(frame, pending, [&](const Walker::Step& step) {
    if (step.role == Role::topic_name || step.role == Role::topic_id) topic = text_of(step.value);
    if (step.role == Role::partition) partition = codec::load<boost::endian::big_int32_t>(step.value);
    if (step.role != Role::error_code) return;
    const auto is_meant = [&](const DeferredPartition& deferred) {
      return deferred.partition == partition && deferred.topic == topic;
    };
    const auto deferred = std::ranges::find_if(pending.deferred, is_meant);
    if (deferred == pending.deferred.end()) return;
    const std::int16_t code = codec::load<big_int16_t>(step.value);
    if (code == 0) ++appended;
    if (std::ranges::find(elsewhere, code) != std::end(elsewhere)) collisions.forget_waiting(topic, partition);
    if (code != invalid_record) return;
    codec::store(step.value, big_int16_t(not_enough_replicas));
    if (deferred->work) collisions.request_work(*deferred->work);
  });
  if (error) return error;
  return appended;
}

codec::Result<std::int16_t> read_error_code(Bytes frame, const PendingResponse& pending) {
  std::int16_t code = 0;
  const auto error = walk(frame, pending, [&](const Walker::Step& step) {
    if (step.role == Role::error_code) code = codec::load<big_int16_t>(step.value);
  });
  if (error) return error;
  return code;
}

codec::ErrorCode learn_topics(Bytes frame, const PendingResponse& pending, Collisions& collisions) {
  std::string name;
  return walk(frame, pending, [&](const Walker::Step& step) {
    if (step.role == Role::topic_name) {
      name = text_of(step.value);
      if (pending.version < topic_ids_since) collisions.saw_name_alone(name);
    }
    if (step.role != Role::topic_id || name.empty()) return;
    mapping::TopicId id;
    std::ranges::copy(step.value, id.bytes.begin());
    collisions.learn(name, id);
  });
}

}  // namespace proxy
