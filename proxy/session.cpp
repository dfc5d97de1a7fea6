#include "proxy/session.hpp"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <cstring>

#include "codec/writer.hpp"
#include "proxy/dial.hpp"

namespace proxy {
namespace {

using namespace asio::experimental::awaitable_operators;

std::string peer_of(const tcp::socket& socket) {
  ErrorCode error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return "unknown";
  return to_string(config::HostPort{endpoint.address().to_string(), endpoint.port()});
}

// Answered by brokers at once, whatever they are busy with.
bool is_quick(std::int16_t api_key) {
  constexpr std::int16_t metadata = 3, sasl_handshake = 17, api_versions = 18;
  return api_key == metadata || api_key == sasl_handshake || api_key == api_versions;
}

std::optional<Collisions> make_collisions(const ServerContext& server, const SourceContext& source) {
  if (server.collisions == nullptr) return std::nullopt;
  return Collisions(*server.collisions, {static_cast<std::uint32_t>(source.index)});
}

Collisions* pointer_to(std::optional<Collisions>& collisions) {
  return collisions ? &*collisions : nullptr;
}

}  // namespace

Session::Session(tcp::socket client, const ListenerContext& listener, Worker& worker)
    : listener_(listener),
      worker_(worker),
      counters_(worker.counters[listener.source.index]),
      client_(std::move(client)),
      peer_(peer_of(client_.socket())),
      in_flight_(worker.server.limits.in_flight_max),
      collisions_(make_collisions(worker.server, listener.source)),
      requests_(listener.source.mapper, in_flight_, worker.server.limits.frame_size_max, *this,
                pointer_to(collisions_)),
      responses_(in_flight_, listener.source.advertise, *this, worker.server.hidden_apis, pointer_to(collisions_)),
      to_client_(client_),
      room_(worker.io, asio::steady_timer::time_point::max()) {
  counters_.connections.add();
  worker_.sessions.insert(this);
}

Session::~Session() {
  counters_.connections_closed.add();
  worker_.sessions.erase(this);
  worker_.end_session();
}

asio::awaitable<void> Session::run() {
  if (worker_.is_draining) drain();
  bool is_connected = co_await read_first_head();
  if (is_connected) is_connected = co_await dial_broker();
  if (is_connected) co_await (relay_requests() && relay_responses());
  co_await linger();
  client_.close();
}

// A port scan or a slow opener costs the cluster nothing: it is dialled for a frame that can be one.
asio::awaitable<bool> Session::read_first_head() {
  if (listener_.source.tls) {
    set_deadline(tls_timeout);
    if (const auto error = co_await client_.handshake(*listener_.source.tls, true, "")) {
      // One that looks whether the port is open is no news.
      if (error != asio::error::eof)
        worker_.client_faults.write(log::Level::warn, "TLS handshake failed",
                                    {{"source", listener_.source.name},
                                     {"peer", peer_},
                                     {"reason", client_.tls_error().empty() ? error.message() : client_.tls_error()}});
      client_ended_ = true;
      co_return false;
    }
    deadline_ = is_draining_ ? deadline_ : Clock::time_point::max();
  }
  if (deadline_ == Clock::time_point::max()) set_deadline(first_head_timeout);
  while (from_client_.size() < sizeof(codec::RequestHead)) {
    ErrorCode error;
    const auto window = read(client_, from_client_, error);
    if (error == asio::error::would_block) {
      if (is_draining_) co_return false;
      co_await client_.wait_readable();
      if (ended_) co_return false;
      continue;
    }
    if (error) {
      client_ended_ = true;
      co_return false;
    }
    keep(from_client_, window, 0);
    if (requests_.check_first_head(from_client_) == RequestFilter::Status::fault) {
      counters_.client_faults.add();
      log_fault(worker_.client_faults, "closing a connection that does not speak Kafka", requests_.fault());
      co_return false;
    }
  }
  if (!is_draining_) deadline_ = Clock::time_point::max();
  co_return true;
}

asio::awaitable<bool> Session::dial_broker() {
  auto dialled = co_await dial(worker_.server, listener_);
  if (!dialled.stream) {
    counters_.dial_failures.add();
    worker_.dial_failures.write(log::Level::warn, "closing a connection: its broker cannot be reached",
                                {{"source", listener_.source.name},
                                 {"node", listener_.node_id ? std::to_string(*listener_.node_id) : "bootstrap"},
                                 {"address", dialled.address.host.empty() ? "" : to_string(dialled.address)},
                                 {"peer", peer_},
                                 {"reason", dialled.reason}});
    co_return false;
  }
  broker_ = std::move(dialled.stream);
  broker_address_ = dialled.address;
  log::debug("connected to a broker",
             {{"source", listener_.source.name}, {"peer", peer_}, {"address", to_string(broker_address_)}});
  to_broker_.emplace(*broker_);
  const auto head = codec::load<codec::RequestHead>(from_client_);
  awaits_first_answer_ = !listener_.node_id && is_quick(head.api_key);
  co_return !ended_;
}

asio::awaitable<void> Session::relay_requests() {
  co_await pump_requests();
  requests_ended_ = true;
  requests_.forget_incomplete();
  if (deadline_ == Clock::time_point::max()) set_deadline(worker_.server.limits.drain_timeout);
  co_await flush(*to_broker_, *broker_);
  if (broker_->is_open()) broker_->shutdown_send();
  // Nobody is left to read the answers of a client that has reset its connection.
  if (is_answered() || client_is_gone_) end();
}

asio::awaitable<void> Session::pump_requests() {
  std::span<std::byte> window = from_client_;
  for (;;) {
    const auto turn = requests_.take(window, *to_broker_);
    if (requests_.may_interject()) ask_for_topic_ids();
    to_broker_->end_turn();
    counters_.request_bytes.add(turn.consumed);
    responses_.answer_local(to_client_);
    to_client_.end_turn();
    keep(from_client_, window, turn.consumed);
    if (turn.status == RequestFilter::Status::ended) co_return;
    if (turn.status == RequestFilter::Status::fault) {
      counters_.client_faults.add();
      log_fault(worker_.client_faults, "closing a connection: a request cannot be read", requests_.fault());
      co_return;
    }
    co_await flush(*to_broker_, *broker_);
    co_await flush(to_client_, client_);
    if (ended_ || to_broker_->error()) co_return;
    if (awaits_first_answer_ && requests_.is_at_frame_boundary()) {
      awaits_first_answer_ = false;
      first_answer_deadline_ = Clock::now() + first_answer_timeout;
    }
    if (turn.status == RequestFilter::Status::full) {
      co_await wait_for_room();
      if (ended_) co_return;
      window = from_client_;
      continue;
    }

    if (turn.status == RequestFilter::Status::held) {
      co_await wait_for_salt();
      if (ended_) co_return;
      window = from_client_;
      continue;
    }
    held_since_ = Clock::time_point::max();
    if (is_draining_ && drain_left_ == 0) requests_.end_after_frame();

    ErrorCode error = asio::error::would_block;
    while (error == asio::error::would_block) {
      if (is_draining_ && drain_left_ == 0 && requests_.is_at_frame_boundary()) co_return;
      co_await client_.wait_readable();
      if (ended_) co_return;
      window = read(client_, from_client_, error);
      if (error == asio::error::would_block) drain_left_ = 0;  // of encrypted bytes not all become bytes of ours
    }
    if (error) {
      client_ended_ = true;
      client_is_gone_ = error != asio::error::eof;
      co_return;
    }
    drain_left_ -= std::min(drain_left_, window.size() - from_client_.size());
  }
}

asio::awaitable<void> Session::relay_responses() {
  while (!ended_) {
    co_await broker_->wait_readable();
    if (ended_) break;
    ErrorCode error;
    const auto window = read(*broker_, from_broker_, error);
    if (error == asio::error::would_block) continue;
    if (error) {
      log_broker_end(error);
      break;
    }
    const auto turn = responses_.take(window, to_client_);
    to_client_.end_turn();
    counters_.response_bytes.add(turn.consumed);
    has_broker_spoken_ = true;
    keep(from_broker_, window, turn.consumed);
    if (turn.status == RequestFilter::Status::fault) {
      counters_.broker_faults.add();
      log_fault(worker_.broker_faults, "closing a connection: a response cannot be read", responses_.fault());
      break;
    }
    if (!in_flight_.full()) room_.cancel();
    co_await flush(to_client_, client_);
    if (is_answered()) break;
  }
  if (!ended_ && deadline_ == Clock::time_point::max()) set_deadline(worker_.server.limits.drain_timeout);
  co_await flush(to_client_, client_);
  end();
}

void Session::log_broker_end(const ErrorCode& error) {
  if (in_flight_.empty() || requests_ended_) return;
  if (in_flight_.front().is_token) {
    worker_.broker_faults.write(
        log::Level::warn, "the broker has closed a connection instead of answering a SASL token: so it refuses a login",
        {{"source", listener_.source.name}, {"broker", to_string(broker_address_)}, {"peer", peer_}});
    return;
  }
  worker_.broker_faults.write(
      log::Level::warn, "the broker has closed a connection and left requests unanswered",
      {{"source", listener_.source.name},
       {"broker", to_string(broker_address_)},
       {"peer", peer_},
       {"unanswered", std::to_string(in_flight_.size())},
       {"reason", broker_->tls_error().empty() ? error.message() : broker_->tls_error()},
       {"hint", has_broker_spoken_ ? ""
                                   : "it has not said anything: is it a Kafka listener, and is `destination.tls` right "
                                     "for it?"}});
}

// Both directions may wait for the same side: each takes what goes when its turn comes.
asio::awaitable<void> Session::flush(Outbox& outbox, Stream& stream) {
  while (!outbox.is_empty() && !ended_) {
    co_await stream.wait_writable();
    if (ended_) co_return;
    outbox.retry();
  }
}

asio::awaitable<void> Session::wait_for_room() {
  while (in_flight_.full() && !ended_) co_await room_.async_wait(no_throw);
}

// A batch that nobody would be told about waits here; this connection's other requests wait behind it.
asio::awaitable<void> Session::wait_for_salt() {
  constexpr std::chrono::milliseconds step{20};
  const auto now = Clock::now();
  held_since_ = std::min(held_since_, now);
  if (now - held_since_ > worker_.server.hold_timeout) {
    held_since_ = Clock::time_point::max();
    requests_.stop_holding();
    co_return;
  }
  asio::steady_timer timer(worker_.io, step);
  co_await timer.async_wait(no_throw);
}

void Session::ask_for_topic_ids() {
  constexpr std::int16_t metadata = 3, version = 12;  // of brokers from 2.8 on; by id from this version on
  constexpr std::int32_t correlation_id = -1;
  if (!collisions_ || collisions_->questions().is_empty() || in_flight_.has_own()) return;
  const auto now = Clock::now();
  if (now < next_question_) return;  // a topic that does not exist is asked for as long as its batch comes again
  next_question_ = now + question_interval;
  const auto begin = [&](std::size_t topics) {
    codec::Writer out(true);
    out.integer(metadata).integer(version).integer(correlation_id).classic_string("mirrorpid").no_tags();
    out.array(topics);
    return out;
  };
  const auto ask = [&](codec::Writer& out) {
    out.integer(std::int8_t{0}).integer(std::int8_t{0}).no_tags();  // create none, no authorized operations
    to_broker_->add_copy(out.frame());
    in_flight_.push({.correlation_id = correlation_id, .api_key = metadata, .version = version, .is_own = true});
  };
  // One question each: brokers leave out the names where there are ids.
  auto& questions = collisions_->questions();
  if (!questions.names.empty()) {
    auto out = begin(questions.names.size());
    for (const auto& name : questions.names) out.raw(mapping::TopicId{}.bytes).string(name).no_tags();
    ask(out);
  }
  if (!questions.ids.empty()) {
    auto out = begin(questions.ids.size());
    for (const auto& id : questions.ids) out.raw(id.bytes).null_string().no_tags();
    ask(out);
  }
  questions = {};
}

// Closing with bytes unread makes the kernel reset the connection, and what the client has not read yet of our answers
// is lost to it. So the client is told that no more comes, and its own last bytes are thrown away.
asio::awaitable<void> Session::linger() {
  if (!client_.is_open()) co_return;
  requests_ended_ = true;
  client_.shutdown_send();
  if (client_ended_) co_return;
  ended_ = false;
  deadline_ = Clock::now() + linger_timeout;
  while (!ended_) {
    co_await client_.wait_readable();
    if (ended_) co_return;
    ErrorCode error;
    read(client_, {}, error);
    if (error && error != asio::error::would_block) co_return;
  }
}

std::span<std::byte> Session::read(Stream& from, const std::vector<std::byte>& carry, ErrorCode& error) {
  auto& buffer = worker_.buffer;
  // Carried bytes are at most one turn's; where they are more than their place, less is read behind them.
  const auto room = std::min(buffer.size() - std::min(buffer.size(), carry.size()), Worker::read_size_max);
  const auto done = from.read(std::span(buffer).subspan(carry.size(), room));
  error = done.error;
  if (error) return {};
  if (done.size == 0) error = asio::error::eof;
  std::ranges::copy(carry, buffer.begin());
  return std::span(buffer).first(carry.size() + done.size);
}

void Session::keep(std::vector<std::byte>& carry, std::span<const std::byte> window, std::size_t consumed) {
  if (window.data() == carry.data()) {
    carry.erase(carry.begin(), carry.begin() + static_cast<std::ptrdiff_t>(consumed));
  } else {
    carry.assign(window.begin() + static_cast<std::ptrdiff_t>(consumed), window.end());
  }
  constexpr std::size_t kept_capacity_max = 1024;
  if (carry.empty() && carry.capacity() > kept_capacity_max) carry = {};
}

void Session::drain() {
  if (requests_ended_) return;
  is_draining_ = true;
  drain_left_ = client_.available();
  set_deadline(worker_.server.limits.drain_timeout);
  client_.interrupt();
}

void Session::check_deadlines(Clock::time_point now) {
  if (now >= first_answer_deadline_) {
    first_answer_deadline_ = Clock::time_point::max();
    worker_.server.cluster.bootstrap_failed(broker_address_);
    worker_.dial_failures.write(
        log::Level::warn, "closing a connection: the bootstrap server does not answer",
        {{"source", listener_.source.name}, {"address", to_string(broker_address_)}, {"peer", peer_}});
    end();
  }
  if (now < deadline_) return;
  deadline_ = Clock::time_point::max();
  requests_.forget_incomplete();
  const bool is_holding = held_since_ != Clock::time_point::max();
  if (is_draining_ && to_broker_ &&
      (is_holding || !(in_flight_.empty() && to_broker_->is_empty() && to_client_.is_empty()))) {
    worker_.was_cut_off = true;
    worker_.cut_offs.write(
        log::Level::error, "a connection was cut off: `limits.drain_timeout` has passed",
        {{"source", listener_.source.name}, {"peer", peer_}, {"unanswered", std::to_string(in_flight_.size())}});
  }
  end();
  client_.close();
}

void Session::set_deadline(std::chrono::milliseconds timeout) {
  deadline_ = Clock::now() + timeout;
}

void Session::end() {
  ended_ = true;
  room_.cancel();
  if (broker_) broker_->close();
  client_.interrupt();
}

void Session::log_fault(log::Limit& limit, const char* message, const Fault& fault) {
  const auto* api = codec::find_api(fault.api_key);
  limit.write(log::Level::warn, message,
              {{"reason", fault.reason},
               {"source", listener_.source.name},
               {"listener", to_string(listener_.bound)},
               {"peer", peer_},
               {"api", api ? std::string(api->name) : std::to_string(fault.api_key)},
               {"version", std::to_string(fault.api_version)},
               {"correlation_id", std::to_string(fault.correlation_id)},
               {"offset", std::to_string(fault.offset)}});
}

}  // namespace proxy
