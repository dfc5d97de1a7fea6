#include "proxy/request_filter.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace proxy {
namespace {

using codec::RecordBatchHeader;
using codec::RecordsEntryHead;
using codec::RequestHead;
using codec::Walker;
using Bytes = std::span<std::byte>;

constexpr std::uint32_t request_size_min = sizeof(RequestHead) - codec::frame_prefix_size;
constexpr std::int16_t sasl_authenticate = 36;

bool is_sasl(std::int16_t api_key) {
  return api_key == codec::sasl_handshake::request.api_key || api_key == sasl_authenticate;
}

// What people point at a Kafka port by mistake; its first four bytes, read as a size, are far over any limit.
std::string_view guess_protocol(std::span<const std::byte> bytes) {
  const auto begins_with = [&](std::string_view text) {
    return std::ranges::equal(bytes.first(std::min(text.size(), bytes.size())), std::as_bytes(std::span(text)));
  };
  if (begins_with("\x16\x03")) return ": a TLS handshake, but this listener is plain (set tls, or use a plain client)";
  if (begins_with("\x15\x03")) return ": a TLS alert, but this listener is plain";
  for (const auto* method : {"GET ", "POST", "PUT ", "HEAD"})
    if (begins_with(method)) return ": an HTTP request, but this is a Kafka listener";
  return "";
}

}  // namespace

RequestFilter::Turn RequestFilter::take(Bytes window, Sink& out) {
  consumed_ = 0;
  for (;;) {
    const auto rest = window.subspan(consumed_);
    Step step;
    switch (state_) {
      case State::head: step = read_head(rest, out); break;
      case State::header:
      case State::body: step = read_fields(rest, out); break;
      case State::records: step = read_entry(rest, out); break;
      case State::pass:
      case State::drop: step = pass(rest, out); break;
    }
    if (step) return {consumed_, *step};
  }
}

RequestFilter::Status RequestFilter::check_first_head(std::span<const std::byte> bytes) {
  if (!is_sane(bytes)) return Status::fault;
  return Status::more;
}

// As soon as the size is there it is judged: nothing is waited for, or allocated, because of a size that cannot be.
bool RequestFilter::is_sane(std::span<const std::byte> bytes) {
  if (bytes.size() < codec::frame_prefix_size) return true;
  fault_ = {};
  const std::int32_t size = codec::load<boost::endian::big_int32_t>(bytes);
  if (size < 0 || static_cast<std::uint32_t>(size) > frame_size_max_) {
    fail(fmt::format("frame size {} is not in {}..{}{}", size, request_size_min, frame_size_max_,
                     guess_protocol(bytes)));
    return false;
  }
  if (static_cast<std::uint32_t>(size) < request_size_min) {
    fail(fmt::format("frame size {} is less than a request's head of {} bytes", size, request_size_min));
    return false;
  }
  if (bytes.size() < sizeof(RequestHead)) return true;
  const auto head = codec::load<RequestHead>(bytes);
  if (head.api_key < 0) {
    fail(fmt::format("API key {} does not exist", head.api_key.value()));
    return false;
  }
  const auto* api = codec::find_api(head.api_key);
  const bool is_known = api == nullptr ? head.api_version >= 0 : api->served.contain(head.api_version);
  // A later ApiVersions has an answer; see route().
  if (is_known || (api != nullptr && api->response == &codec::api_versions::response)) return true;
  head_ = head;
  frame_left_ = static_cast<std::uint64_t>(size) + codec::frame_prefix_size;  // what the fault tells is in this frame
  fail(api == nullptr
           ? fmt::format("API key {} version {} does not exist", head.api_key.value(), head.api_version.value())
           : fmt::format("{} version {} is not in {}..{}, and this proxy must read it", api->name,
                         head.api_version.value(), api->served.first, api->served.last));
  return false;
}

RequestFilter::Step RequestFilter::read_head(Bytes rest, Sink& out) {
  if (is_ending_ && !is_looking_) return Status::ended;
  if (rest.size() < codec::frame_prefix_size) return Status::more;
  // Whether what comes behind a handshake is a request or a token is known when that has been answered.
  if (in_flight_.tokens.awaits_answer()) return Status::full;
  if (in_flight_.tokens.are_expected()) return read_token(rest);
  if (!is_sane(rest)) return Status::fault;
  if (rest.size() < sizeof(RequestHead)) return Status::more;
  if (in_flight_.full()) return Status::full;
  head_ = codec::load<RequestHead>(rest);
  frame_left_ = static_cast<std::uint64_t>(head_.size) + codec::frame_prefix_size;
  if (const auto step = wait_for_topic_ids(rest)) return step;
  if (!route(head_)) return Status::fault;
  observer_.on_request();
  if (state_ != State::drop) consume(rest.first(sizeof(RequestHead)), out);
  return {};
}

// A Produce that nobody answers: its client cannot be told to try again, and in its midst nobody can ask for a topic's
// id. So those of its topics whose batches need it, as far as they stand in its first bytes, are known before any of it
// leaves.
RequestFilter::Step RequestFilter::wait_for_topic_ids(Bytes rest) {
  constexpr std::size_t look_max = 48 << 10;
  is_looking_ = false;
  const auto* api = codec::find_api(head_.api_key);
  if (collisions_ == nullptr || api == nullptr || api->request != &codec::produce::request ||
      !api->served.contain(head_.api_version))
    return {};
  collisions_->begin_request();
  const auto whole = std::min<std::size_t>(frame_left_, look_max);
  auto bytes = rest.first(std::min(rest.size(), whole)).subspan(sizeof(RequestHead));
  auto look = look_for_topics(*api, bytes);
  if (look == Look::needs_more && rest.size() >= whole) look = Look::all_known;
  if (look == Look::all_known || (look == Look::unknown && !may_hold_)) return {};
  is_looking_ = true;
  is_authenticating_ = false;  // who produces has logged in
  return look == Look::needs_more ? Status::more : Status::held;
}

RequestFilter::Look RequestFilter::look_for_topics(const codec::Api& api, Bytes bytes) {
  const codec::Version version = head_.api_version;
  bool are_known = true;
  BatchPlace place{};
  for (const auto* message : {&codec::headers::request, api.request}) {
    Walker walker(*message, message == api.request ? version : codec::request_header_version(api, version),
                  frame_left_);
    codec::Cursor in(bytes);
    for (;;) {
      const auto step = walker.next(in);
      if (step.kind == Walker::Step::Kind::done) break;
      // What is wrong with it is found when it is read.
      if (step.kind == Walker::Step::Kind::malformed) return Look::all_known;
      if (step.kind == Walker::Step::Kind::need_more) return are_known ? Look::needs_more : Look::unknown;
      if (step.role == codec::Role::acks && codec::load<boost::endian::big_int16_t>(step.value) != 0)
        return Look::all_known;
      if (step.role == codec::Role::topic_name)
        place = {{reinterpret_cast<const char*>(step.value.data()), step.value.size()}, {}, 0};
      if (step.role == codec::Role::topic_id) std::ranges::copy(step.value, place.topic_id.emplace().bytes.begin());
      if (step.kind != Walker::Step::Kind::records) continue;
      const auto begin = bytes.subspan(in.position());
      in.take(step.size);
      if (begin.size() < std::min<std::size_t>(step.size, sizeof(RecordBatchHeader)))
        return are_known ? Look::needs_more : Look::unknown;
      if (step.size >= sizeof(RecordBatchHeader)) {
        const mapping::ProducerId pid{codec::load<RecordBatchHeader>(begin).producer_id};
        if (collisions_->needs_topic_id(pid) && !collisions_->knows(place)) are_known = false;
      }
      if (!in.good()) return are_known ? Look::needs_more : Look::unknown;
    }
    bytes = bytes.subspan(in.position());
  }
  return are_known ? Look::all_known : Look::unknown;
}

// A token is passed on as it comes. Nothing of it may get into a log.
RequestFilter::Step RequestFilter::read_token(Bytes rest) {
  const std::int32_t size = codec::load<boost::endian::big_int32_t>(rest);
  if (size < 0 || static_cast<std::uint32_t>(size) > frame_size_max_)
    return fail(fmt::format("size {} of a SASL token is not in 0..{}", size, frame_size_max_));
  if (in_flight_.full()) return Status::full;
  switch (in_flight_.tokens.next(rest)) {
    case SaslTokens::Next::more: return Status::more;
    case SaslTokens::Next::request: return {};
    case SaslTokens::Next::unknown:
      return fail(
          "after SaslHandshake version 0, tokens have no Kafka header, and how many come is not known of this "
          "mechanism: only of PLAIN, OAUTHBEARER, SCRAM and GSSAPI");
    case SaslTokens::Next::token: break;
  }
  if (in_flight_.awaits_optional_answer())
    return fail("a SASL token that did not wait for the answer to the one before");
  is_authenticating_ = true;
  head_ = {};
  frame_left_ = static_cast<std::uint64_t>(size) + codec::frame_prefix_size;
  expects_response_ = true;
  in_flight_.push({.is_token = true, .may_stay_unanswered = in_flight_.tokens.may_stay_unanswered()});
  state_ = State::pass;
  pass_left_ = frame_left_;
  return {};
}

// Decides by a request's head how its bytes are treated and whether a response is expected.
bool RequestFilter::route(const RequestHead& head) {
  expects_response_ = false;
  is_authenticating_ = is_sasl(head.api_key);
  const auto* api = codec::find_api(head.api_key);
  if (api != nullptr && !api->served.contain(head.api_version)) {
    // Its body is in a form that nobody knows yet; the answer tells the client what to come back with.
    expect_response(true);
    state_ = State::drop;
    pass_left_ = frame_left_;
    return true;
  }
  if (api != nullptr && api->request != nullptr) {
    if (frame_left_ == sizeof(RequestHead)) {
      fail(make_error_code(codec::Error::truncated).message());
      return false;
    }
    // Of Produce its body says whether a response comes.
    if (api->request != &codec::produce::request) expect_response(false);
    if (api->request == &codec::sasl_handshake::request && head.api_version == 0) in_flight_.tokens.expect_answer();
    state_ = State::header;
    walker_.emplace(codec::headers::request, codec::request_header_version(*api, head.api_version),
                    frame_left_ - sizeof(RequestHead));
    return true;
  }
  expect_response(false);
  state_ = State::pass;
  pass_left_ = frame_left_ - sizeof(RequestHead);
  return true;
}

RequestFilter::Step RequestFilter::read_fields(Bytes rest, Sink& out) {
  codec::Cursor in(rest.first(std::min<std::size_t>(rest.size(), walker_->left())));
  const auto step = walker_->next(in);
  // What cannot be read must not go on to its last byte, or the broker would have it all.
  if (step.kind == Walker::Step::Kind::malformed) return fail(make_error_code(walker_->error()).message());
  if (is_cut_off(step)) return fail(make_error_code(codec::Error::truncated).message());
  if (step.role == codec::Role::producer_id && !rewrite_id(step.value))
    return fail(fmt::format("markers of more than {} producers of a source", markers_max));
  see(step);
  consume(rest.first(in.position()), out);
  switch (step.kind) {
    case Walker::Step::Kind::need_more: return Status::more;
    case Walker::Step::Kind::records:
      state_ = State::records;
      records_left_ = step.size;
      return {};
    case Walker::Step::Kind::done:
      if (state_ == State::header) {
        const auto& request = *codec::find_api(head_.api_key)->request;
        state_ = State::body;
        walker_.emplace(request, head_.api_version, frame_left_);
      } else {
        state_ = State::pass;  // bytes behind the last field are not ours to judge
        pass_left_ = frame_left_;
      }
      return {};
    default: return {};
  }
}

// Whether the frame ends with this step, and its fields do not.
bool RequestFilter::is_cut_off(const Walker::Step& step) const {
  if (state_ == State::header) return walker_->left() == 0;
  return step.kind != Walker::Step::Kind::done && walker_->is_cut_off();
}

void RequestFilter::see(const Walker::Step& step) {
  switch (step.role) {
    case codec::Role::acks:
      if (codec::load<boost::endian::big_int16_t>(step.value) != 0) expect_response(false);
      break;
    case codec::Role::topic_name:
      topic_.assign(reinterpret_cast<const char*>(step.value.data()), step.value.size());
      topic_id_.reset();
      break;
    case codec::Role::topic_id:
      topic_.assign(reinterpret_cast<const char*>(step.value.data()), step.value.size());
      std::ranges::copy(step.value, topic_id_.emplace().bytes.begin());
      break;
    case codec::Role::mechanism:
      in_flight_.tokens.choose({reinterpret_cast<const char*>(step.value.data()), step.value.size()});
      break;
    case codec::Role::partition: partition_ = codec::load<boost::endian::big_int32_t>(step.value); break;
    case codec::Role::records:
      if (!step.is_null) break;
      // Brokers from 3.9 on never answer a null; an empty field has the same size and is answered with 87.
      if (codec::find_api(head_.api_key)->request->is_flexible(head_.api_version)) {
        step.encoded.front() |= std::byte{1};  // a null is 0, an empty field 1
      } else {
        std::ranges::fill(step.encoded, std::byte{0});
      }
      observer_.on_null_records();
      break;
    default: break;
  }
}

// False: more than can be kept in mind until the answer comes.
bool RequestFilter::rewrite_id(Bytes value) {
  using boost::endian::big_int64_t;
  const mapping::ProducerId pid{codec::load<big_int64_t>(value)};
  const bool is_marker = head_.api_key == codec::write_txn_markers::request.api_key;
  const auto written = is_marker ? mapper_.decide_marker(pid) : mapping::mark::to_broker(pid);
  if (written == pid) return true;
  codec::store(value, big_int64_t(written.value));
  if (mapping::mark::is_on(pid)) {
    observer_.on_id(IdEvent::unmarked, pid);
    return true;
  }
  observer_.on_id(IdEvent::marker_mapped, pid);
  if (in_flight_.empty()) return true;  // its answer has come already, whatever it was
  auto& markers = in_flight_.back().markers;
  if (markers.size() == markers_max) return false;
  markers.push_back({written, pid});
  return true;
}

// One entry of a records field. A tail that is no complete entry goes on as it is: brokers cut it off.
RequestFilter::Step RequestFilter::read_entry(Bytes rest, Sink& out) {
  if (pass_left_ > 0) return pass(rest, out);
  if (records_left_ == 0) {
    state_ = State::body;
    return {};
  }
  auto size = records_left_;
  if (records_left_ >= sizeof(RecordsEntryHead)) {
    if (rest.size() < sizeof(RecordsEntryHead)) return Status::more;
    const auto entry = codec::load<RecordsEntryHead>(rest);
    if (!entry.is_well_formed())
      return fail(fmt::format("{}: magic {}, length {}, topic {}, partition {}",
                              make_error_code(codec::Error::bad_record_batch).message(), entry.magic.value(),
                              entry.length.value(), BatchPlace{topic_, topic_id_, partition_}.topic(), partition_));
    if (static_cast<std::uint64_t>(entry.size()) <= records_left_) {
      size = static_cast<std::uint64_t>(entry.size());
      if (entry.magic == 2) {
        if (rest.size() < sizeof(RecordBatchHeader)) return Status::more;
        if (const auto step = rewrite(rest.first(sizeof(RecordBatchHeader)))) return step;
      }
    }
  }
  records_left_ -= size;
  pass_left_ = size;
  return {};
}

RequestFilter::Step RequestFilter::rewrite(Bytes bytes) {
  auto batch = codec::load<RecordBatchHeader>(bytes);
  const Collisions::Batch facts{{batch.producer_id}, batch.producer_epoch, batch.base_sequence};
  Collisions::Outcome outcome{
      mapper_.decide({facts.pid, facts.epoch, facts.sequence, batch.is_transactional(), batch.is_control()})};
  const BatchPlace place{topic_, topic_id_, partition_};
  if (collisions_ != nullptr) {
    outcome = collisions_->refine(outcome.decision, facts, place);
    // Without an answer nobody would be told to try again; nor would a broker judge the batch beforehand.
    if (outcome.decision.action == mapping::Action::defer && !expects_response_ && may_hold_) {
      if (outcome.work && collisions_->is_described(outcome.work->topic_id)) collisions_->request_work(*outcome.work);
      return Status::held;
    }
    if (expects_response_ && !collisions_->sent(outcome, facts, topic_, partition_))
      return fail(
          fmt::format("more than {} batches of this connection wait for their salts", WaitingBatches::size_max));
  }

  const auto& decision = outcome.decision;
  if (decision.pid != facts.pid) codec::rewrite_producer_id(batch, decision.pid.value);
  if (decision.action == mapping::Action::refuse || decision.action == mapping::Action::defer)
    codec::make_refusable(batch);
  if (decision.action == mapping::Action::defer && expects_response_ && !in_flight_.empty())
    in_flight_.back().deferred.push_back({topic_, partition_, outcome.work});
  if (decision.action != mapping::Action::pass) codec::store(bytes, batch);
  const BatchEvent event{decision, facts.pid, place, outcome.deferral, expects_response_};
  observer_.on_batch(event);
  if (outcome.is_shared_chained) observer_.on_shared_chained(event, outcome.is_first);
  return {};
}

RequestFilter::Step RequestFilter::pass(Bytes rest, Sink& out) {
  const auto count = std::min<std::uint64_t>(pass_left_, rest.size());
  pass_left_ -= count;
  consume(rest.first(count), out);
  if (pass_left_ > 0) return Status::more;
  // A records field is followed by what its table says, so there the walker tells where the frame ends.
  if (state_ == State::records) return {};
  state_ = State::head;
  may_hold_ = true;
  return {};
}

void RequestFilter::consume(Bytes bytes, Sink& out) {
  if (state_ != State::drop && !bytes.empty()) out.add(bytes);
  consumed_ += bytes.size();
  frame_left_ -= bytes.size();
}

void RequestFilter::expect_response(bool is_local) {
  expects_response_ = true;
  in_flight_.push({.correlation_id = head_.correlation_id,
                   .api_key = head_.api_key,
                   .version = head_.api_version,
                   .is_local = is_local});
}

void RequestFilter::forget_incomplete() {
  // The last one in the queue, unless its answer has left, or begun to, before it came in whole.
  if (state_ == State::head || !expects_response_ || in_flight_.empty()) return;
  in_flight_.pop_back();
  expects_response_ = false;
}

RequestFilter::Step RequestFilter::fail(std::string reason) {
  fault_ = {.reason = std::move(reason)};
  if (state_ != State::head || frame_left_ > 0) {
    fault_.api_key = head_.api_key;
    fault_.api_version = head_.api_version;
    fault_.correlation_id = head_.correlation_id;
    fault_.offset = static_cast<std::uint64_t>(head_.size) + codec::frame_prefix_size - frame_left_;
  }
  return Status::fault;
}

}  // namespace proxy
