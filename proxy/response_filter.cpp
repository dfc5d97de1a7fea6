#include "proxy/response_filter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codec/api_versions.hpp"
#include "codec/splice.hpp"
#include "proxy/response_reader.hpp"

namespace proxy {
namespace {

using codec::ResponseHead;
using codec::Walker;
using Bytes = std::span<std::byte>;

constexpr std::size_t kept_capacity_max = 4096;  // of the buffer for whole responses, between two of them

bool is_fetch(const codec::Api& api) {
  return api.response == &codec::fetch::response || api.response == &codec::share_fetch::response;
}

}  // namespace

ResponseFilter::Turn ResponseFilter::take(Bytes window, Sink& out) {
  consumed_ = 0;
  for (;;) {
    const auto rest = window.subspan(consumed_);
    Step step;
    switch (state_) {
      case State::head: step = read_head(rest, out); break;
      case State::whole: step = read_whole(rest, out); break;
      case State::header:
      case State::body: step = read_fields(rest, out); break;
      case State::tail: step = blank_tail(rest, out); break;
      case State::blank:
      case State::pass: step = pass(rest, out); break;
    }
    if (step) return {consumed_, *step};
  }
}

void ResponseFilter::answer_local(Sink& out) {
  if (state_ != State::head) return;
  while (!in_flight_.empty() && in_flight_.front().is_local) {
    out.add_copy(codec::unsupported_api_versions(in_flight_.front().correlation_id));
    in_flight_.pop();
    observer_.on_response();
  }
}

ResponseFilter::Step ResponseFilter::read_head(Bytes rest, Sink& out) {
  if (rest.size() < sizeof(ResponseHead)) return Status::more;
  const auto head = codec::load<ResponseHead>(rest);
  if (head.size < static_cast<std::int32_t>(sizeof head.correlation_id))
    return fail(fmt::format("response size {} is not possible", head.size.value()));
  if (in_flight_.empty())
    return fail(fmt::format("a response to correlation id {} that nobody asked for", head.correlation_id.value()));
  if (in_flight_.front().correlation_id != head.correlation_id)
    return fail(fmt::format("a response to correlation id {} where {} was next", head.correlation_id.value(),
                            in_flight_.front().correlation_id));
  const auto& pending = pending_.emplace(in_flight_.pop());

  frame_size_ = frame_left_ = static_cast<std::uint64_t>(head.size) + codec::frame_prefix_size;
  api_ = codec::find_api(pending.api_key);
  const bool must_read = !pending.deferred.empty() || pending.is_own;
  if (api_ == nullptr || (!must_read && !api_->response_read.contain(pending.version))) {
    state_ = State::pass;
    pass_left_ = frame_left_;
  } else if (api_->tells_ids || (is_fetch(*api_) && frame_size_ > fetch_whole_size_max)) {
    std::ranges::stable_sort(pending_->markers, {}, &MappedMarker::mapped);
    error_code_ = 0;
    state_ = State::header;
    consume(rest.first(sizeof(ResponseHead)), out);
    walker_.emplace(codec::headers::response, codec::response_header_version(*api_, pending.version), frame_left_);
  } else if (frame_size_ > whole_size_max) {
    return fail(
        fmt::format("a response of {} bytes, more than the {} that can be rewritten", frame_size_, whole_size_max));
  } else if (rest.size() >= frame_size_) {
    return rewrite_whole(rest.first(frame_size_), out, true);
  } else {
    state_ = State::whole;
  }
  return {};
}

ResponseFilter::Step ResponseFilter::read_whole(Bytes rest, Sink& out) {
  const auto count = std::min<std::uint64_t>(frame_left_, rest.size());
  frame_.insert(frame_.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
  consumed_ += count;
  frame_left_ -= count;
  if (frame_left_ > 0) return Status::more;
  const auto step = rewrite_whole(frame_, out, false);
  frame_.clear();
  if (frame_.capacity() > kept_capacity_max) frame_.shrink_to_fit();
  return step;
}

ResponseFilter::Step ResponseFilter::rewrite_whole(Bytes frame, Sink& out, bool is_window) {
  const auto version = pending_->version;
  std::vector<std::byte> edited;
  if (const auto error = look_into(frame)) return fail(error.message());
  if (api_->response == &codec::api_versions::response) {
    auto clamped = codec::clamp_api_versions(frame, version, hidden_apis_);
    if (!clamped) return fail(clamped.error().message());
    if (clamped->error_code == codec::error_rebootstrap_required) observer_.on_rebootstrap_required();
    edited = std::move(clamped->frame);
  } else {
    const auto edits = codec::rewrite_endpoints(frame, *api_, version, advertise_);
    if (!edits) return fail(edits.error().message());
    for (const auto node : edits->nodes_left_out) observer_.on_node_left_out(node);
    if (!edits->splices.empty()) edited = codec::apply_splices(frame, edits->splices);
  }
  if (is_window) {
    consumed_ += frame.size();
    frame_left_ = 0;
  }
  if (pending_->is_own) {
    // It goes no further.
  } else if (!edited.empty()) {
    out.add_copy(edited);
  } else if (is_window) {
    out.add(frame);
  } else {
    out.add_copy(frame);
  }
  end_frame(out);
  return {};
}

// What the proxy takes from a response, and the errors it changes in place, beside the addresses.
codec::ErrorCode ResponseFilter::look_into(Bytes frame) {
  if (!pending_->deferred.empty()) {
    const auto appended = retry_deferred(frame, *pending_);
    if (!appended) return appended.error();
    if (*appended > 0) observer_.on_deferred_appended();
  }
  if (collisions_ == nullptr || api_->response != &codec::metadata::response) return {};
  return learn_topics(frame, *pending_, *collisions_);
}

ResponseFilter::Step ResponseFilter::read_fields(Bytes rest, Sink& out) {
  codec::Cursor in(rest.first(std::min<std::size_t>(rest.size(), walker_->left())));
  const auto step = walker_->next(in);
  if (api_->tells_ids && step.kind != Walker::Step::Kind::done && walker_->is_cut_off())
    return fail(make_error_code(codec::Error::truncated).message());
  switch (step.kind) {
    case Walker::Step::Kind::need_more: consume(rest.first(in.position()), out); return Status::more;
    case Walker::Step::Kind::malformed: return fail(make_error_code(walker_->error()).message());
    case Walker::Step::Kind::field:
      if (api_->tells_ids) see_id(step);
      break;
    case Walker::Step::Kind::records:
      consume(rest.first(in.position()), out);
      state_ = State::pass;
      pass_left_ = step.size;
      return {};
    case Walker::Step::Kind::tagged:
      step.encoded.front() |= codec::unknown_tag;
      consume(rest.first(in.position()), out);
      state_ = State::blank;
      pass_left_ = step.size;
      return {};
    case Walker::Step::Kind::array:
      if (step.size == 0) break;
      // What stands before the count goes on; the count itself is part of what is blanked.
      consume(rest.first(in.position() - step.encoded.size()), out);
      if (frame_left_ > tail_size_max)
        return fail(
            fmt::format("{} bytes of addresses, more than the {} that can be blanked", frame_left_, tail_size_max));
      state_ = State::tail;
      return {};
    case Walker::Step::Kind::done:
      consume(rest.first(in.position()), out);
      if (state_ == State::header) {
        state_ = State::body;
        walker_.emplace(*api_->response, pending_->version, frame_left_);
      } else {
        walker_.reset();
        state_ = State::pass;
        pass_left_ = frame_left_;
      }
      return {};
    default: break;
  }
  consume(rest.first(in.position()), out);
  return {};
}

// The destination's own ids are marked, and markers get back the id that the client sent; an error's id is no id.
void ResponseFilter::see_id(const Walker::Step& step) {
  using boost::endian::big_int64_t;
  if (step.role == codec::Role::error_code) error_code_ = codec::load<boost::endian::big_int16_t>(step.value);
  if (step.role != codec::Role::producer_id || error_code_ != 0) return;
  const mapping::ProducerId pid{codec::load<big_int64_t>(step.value)};
  const auto& markers = pending_->markers;
  const auto marker = std::ranges::lower_bound(markers, pid, {}, &MappedMarker::mapped);
  if (marker != markers.end() && marker->mapped == pid) {
    codec::store(step.value, big_int64_t(marker->sent.value));
    return;
  }
  if (pid.value < 0) return;
  if (mapping::mark::is_on(pid)) return observer_.on_id(IdEvent::marked_upstream, pid);
  codec::store(step.value, big_int64_t(mapping::mark::to_client(pid).value));
  const bool is_for_use =
      api_->response == &codec::init_producer_id::response || api_->response == &codec::end_txn::response;
  observer_.on_id(is_for_use ? IdEvent::handed_out : IdEvent::marked, pid);
}

ResponseFilter::Step ResponseFilter::blank_tail(Bytes rest, Sink& out) {
  if (rest.size() < frame_left_) return Status::more;
  const auto tail = rest.first(frame_left_);
  if (const auto blanked = codec::blank_share_fetch_tail(tail, pending_->version); !blanked)
    return fail(blanked.error().message());
  consume(tail, out);
  end_frame(out);
  return {};
}

ResponseFilter::Step ResponseFilter::pass(Bytes rest, Sink& out) {
  const auto count = std::min<std::uint64_t>(pass_left_, rest.size());
  const auto bytes = rest.first(count);
  if (state_ == State::blank) std::ranges::fill(bytes, std::byte{0});
  pass_left_ -= count;
  consume(bytes, out);
  if (pass_left_ > 0) return Status::more;
  if (walker_) {
    state_ = State::body;
  } else {
    end_frame(out);
  }
  return {};
}

void ResponseFilter::end_frame(Sink& out) {
  state_ = State::head;
  walker_.reset();
  pending_.reset();
  observer_.on_response();
  answer_local(out);
}

void ResponseFilter::consume(Bytes bytes, Sink& out) {
  if (!bytes.empty()) out.add(bytes);
  consumed_ += bytes.size();
  frame_left_ -= bytes.size();
}

ResponseFilter::Step ResponseFilter::fail(std::string reason) {
  fault_ = {.reason = std::move(reason), .offset = frame_size_ - frame_left_};
  if (!pending_ && !in_flight_.empty()) pending_ = in_flight_.pop();
  if (pending_) {
    fault_.api_key = pending_->api_key;
    fault_.api_version = pending_->version;
    fault_.correlation_id = pending_->correlation_id;
  }
  return Status::fault;
}

}  // namespace proxy
