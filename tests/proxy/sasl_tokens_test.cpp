#include "proxy/sasl_tokens.hpp"

#include "codec/writer.hpp"
#include "tests/proxy/filters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/vectors.hpp"

namespace proxy {
namespace {

using codec::Writer;
using support::Bytes;
using support::Connection;
using support::from_hex;
using support::piece_sizes;
using support::to_hex;
using Status = RequestFilter::Status;

Bytes operator+(Bytes left, std::span<const std::byte> right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes token(std::string_view text) {
  Writer out(false);
  out.raw(std::as_bytes(std::span(text)));
  return out.frame();
}

const Bytes empty_token = from_hex("00000000");

Writer head(std::int16_t api_key, std::int16_t version, std::int32_t correlation_id) {
  Writer out(false);
  out.integer(api_key).integer(version).integer(correlation_id).classic_string("client");
  return out;
}

Bytes request(std::int16_t api_key, std::int16_t version, std::int32_t correlation_id) {
  return head(api_key, version, correlation_id).frame();
}

Bytes handshake(std::string_view mechanism, std::int16_t version = 0) {
  return head(17, version, 1).string(mechanism).frame();
}

Bytes response(std::int32_t correlation_id, std::string_view text = {}) {
  Writer out(false);
  return out.integer(correlation_id).raw(std::as_bytes(std::span(text))).frame();
}

Bytes handshake_answer(std::int16_t error_code) {
  Writer out(false);
  return out.integer(std::int32_t{1}).integer(error_code).array(1).string("PLAIN").frame();
}

// An opaque API: what it is taken for shows in whether it is in flight as a request.
Bytes opaque(std::int32_t correlation_id) {
  return request(999, 0, correlation_id);
}

void shake_hands(Connection& connection, std::string_view mechanism) {
  REQUIRE(connection.send(handshake(mechanism)).bytes == handshake(mechanism));
  REQUIRE(connection.receive(handshake_answer(0)).bytes == handshake_answer(0));
  REQUIRE(connection.in_flight.empty());
}

// Bytes that go through as they are, in both directions.
void pass_to_broker(Connection& connection, const Bytes& bytes, std::size_t piece) {
  const auto sent = connection.send(bytes, piece);
  REQUIRE(sent.status == Status::more);
  REQUIRE(sent.undecided == 0);
  REQUIRE(to_hex(sent.bytes) == to_hex(bytes));
  REQUIRE(connection.requests.is_at_frame_boundary());
}
void pass_to_client(Connection& connection, const Bytes& bytes, std::size_t piece) {
  const auto received = connection.receive(bytes, piece);
  REQUIRE(received.status == Status::more);
  REQUIRE(received.undecided == 0);
  REQUIRE(to_hex(received.bytes) == to_hex(bytes));
}

struct Round {
  Bytes client, broker;  // nothing: the broker does not answer
};

struct Login {
  std::string_view mechanism;
  std::vector<Round> rounds;
};

// A token may look like a request that would be rewritten, or like one that cannot be.
const Bytes like_produce = request(0, 9, 5);
const Bytes like_nothing = from_hex("00000003ffffff");
// How Kerberos does it: the context, then an empty token where the broker has the last word on it, then what to wrap.
const Bytes context_token = from_hex("00000006") + from_hex("60820001aabb");
const Bytes wrap_token = from_hex("00000008") + from_hex("050400ff00000001");

const std::vector<Login>& logins() {
  static const std::vector<Login> all = {
      {"PLAIN", {{token(std::string_view("\0user\0secret", 12)), empty_token}}},
      {"PLAIN", {{like_produce, empty_token}}},
      {"PLAIN", {{like_nothing, empty_token}}},
      {"PLAIN", {{empty_token, token("welcome")}}},
      {"OAUTHBEARER", {{token("n,,\1auth=Bearer abc\1\1"), empty_token}}},
      {"SCRAM-SHA-512", {{token("n,,n=u,r=1"), token("r=12,s=x,i=1")}, {token("c=biws,r=12,p=x"), token("v=abc")}}},
      {"SCRAM-SHA-256", {{like_produce, like_nothing}, {like_nothing, like_produce}}},
      {"GSSAPI", {{context_token, context_token}, {empty_token, wrap_token}, {wrap_token, {}}}},
      {"GSSAPI", {{context_token, wrap_token}, {context_token, empty_token}}},
      {"GSSAPI",
       {{context_token, context_token}, {context_token, context_token}, {empty_token, wrap_token}, {wrap_token, {}}}},
  };
  return all;
}

}  // namespace

TEST_CASE("tokens behind a SaslHandshake of version 0 pass both ways, and then requests are requests, cut anywhere") {
  for (const auto& login : logins()) {
    for (const auto piece : piece_sizes()) {
      INFO(login.mechanism << ", " << login.rounds.size() << " rounds, pieces of " << piece);
      Connection connection;
      shake_hands(connection, login.mechanism);
      for (const auto& round : login.rounds) {
        pass_to_broker(connection, round.client, piece);
        CHECK_FALSE(connection.requests.may_interject());
        if (!round.broker.empty()) pass_to_client(connection, round.broker, piece);
      }
      CHECK(connection.observer.requests == 1);
      CHECK(connection.observer.responses == 1);
      pass_to_broker(connection, opaque(7), piece);
      CHECK(connection.requests.may_interject());
      pass_to_client(connection, response(7, "payload"), piece);
      CHECK(connection.observer.requests == 2);
      CHECK(connection.observer.responses == 2);
      CHECK(connection.in_flight.empty());
    }
  }
}

TEST_CASE("a request that is sent without waiting for the answer to the last token gets its own answer") {
  for (const auto& login : logins()) {
    for (const auto piece : piece_sizes()) {
      INFO(login.mechanism << ", " << login.rounds.size() << " rounds, pieces of " << piece);
      Connection connection;
      shake_hands(connection, login.mechanism);
      for (const auto& round : login.rounds) {
        const bool is_last = &round == &login.rounds.back();
        pass_to_broker(connection, is_last ? round.client + opaque(7) + opaque(8) : round.client, piece);
        pass_to_client(connection, is_last ? round.broker + response(7) + response(8, "x") : round.broker, piece);
      }
      CHECK(connection.observer.responses == 3);
      CHECK(connection.in_flight.empty());
    }
  }
}

TEST_CASE("what comes behind a SaslHandshake of version 0 waits until that is answered") {
  Connection connection;
  const auto behind = token("n,,n=u");
  const auto sent = connection.send(handshake("SCRAM-SHA-512") + behind);
  CHECK(sent.status == Status::full);
  CHECK(sent.bytes == handshake("SCRAM-SHA-512"));
  CHECK(sent.undecided == behind.size());
  CHECK(connection.in_flight.full());
  connection.receive(handshake_answer(0));
  CHECK_FALSE(connection.in_flight.full());
  CHECK(connection.send(behind).bytes == behind);
}

TEST_CASE("behind a handshake that was answered with an error there are no tokens") {
  const auto error_code = GENERATE(std::int16_t{33}, std::int16_t{34}, std::int16_t{-1});
  Connection connection;
  connection.send(handshake("PLAIN"));
  pass_to_client(connection, handshake_answer(error_code), support::in_one_piece);
  pass_to_broker(connection, opaque(7), support::in_one_piece);
  pass_to_client(connection, response(7), support::in_one_piece);
  CHECK(connection.send(like_nothing).status == Status::fault);
}

TEST_CASE("a SaslHandshake of version 1 is followed by requests, which nobody waits with") {
  Connection connection;
  const auto authenticate = request(36, 2, 2);
  const auto bytes = handshake("PLAIN", 1) + authenticate;
  pass_to_broker(connection, bytes, support::in_one_piece);
  CHECK(connection.in_flight.size() == 2);
  pass_to_client(connection, handshake_answer(0) + response(2), support::in_one_piece);
  CHECK(connection.send(like_nothing).status == Status::fault);
}

TEST_CASE("a request of the proxy's own does not get between a handshake and its tokens") {
  const auto version = GENERATE(std::int16_t{0}, std::int16_t{1});
  Connection connection;
  CHECK(connection.requests.may_interject());
  connection.send(handshake("PLAIN", version));
  CHECK_FALSE(connection.requests.may_interject());
  connection.receive(handshake_answer(0));
  CHECK_FALSE(connection.requests.may_interject());
  connection.send(version == 0 ? empty_token : request(36, 1, 2));
  CHECK_FALSE(connection.requests.may_interject());
  connection.send(opaque(3));
  CHECK(connection.requests.may_interject());
}

TEST_CASE("tokens of a mechanism that is not known are a fault that tells no byte of them") {
  for (const std::string_view mechanism : {"DIGEST-MD5", "", "plain", "AWS_MSK_IAM"}) {
    Connection connection;
    shake_hands(connection, mechanism);
    const auto outcome = connection.send(token("secret"));
    CHECK(outcome.status == Status::fault);
    CHECK(outcome.bytes.empty());
    const auto& fault = connection.requests.fault();
    CHECK(fault.reason.find("SaslHandshake version 0") != std::string::npos);
    CHECK(fault.api_key == -1);
    CHECK(fault.correlation_id == 0);
  }
}

TEST_CASE("a failed OAUTHBEARER is told by the broker and takes one more token") {
  Connection connection;
  shake_hands(connection, "OAUTHBEARER");
  pass_to_broker(connection, token("n,,\1auth=Bearer abc\1\1"), support::in_one_piece);
  pass_to_client(connection, token(R"({"status":"invalid_token"})"), support::in_one_piece);
  pass_to_broker(connection, token("\1"), support::in_one_piece);
  CHECK(connection.in_flight.size() == 1);
}

TEST_CASE("a token streams, and its size has the limit of a request") {
  constexpr std::uint32_t limit = 1 << 20;
  Connection connection({.frame_size_max = limit});
  shake_hands(connection, "PLAIN");
  const auto size = from_hex("00100000");
  CHECK(connection.send(size + Bytes(1000)).bytes.size() == 1004);
  CHECK(connection.send(Bytes(limit - 1000)).bytes.size() == limit - 1000);
  CHECK(connection.requests.is_at_frame_boundary());

  const auto wrong = GENERATE("00100001", "ffffffff", "7fffffff", "80000000");
  Connection other({.frame_size_max = limit});
  shake_hands(other, "GSSAPI");
  CHECK(other.send(from_hex(wrong)).status == Status::fault);
  CHECK(other.requests.fault().reason.find("SASL token") != std::string::npos);
}

TEST_CASE("requests in flight are answered before the handshake and its tokens") {
  Connection connection;
  pass_to_broker(connection, opaque(11) + opaque(12), support::in_one_piece);
  connection.send(handshake("PLAIN"));
  pass_to_client(connection, response(11), support::in_one_piece);
  CHECK(connection.send(token("x")).status == Status::full);
  pass_to_client(connection, response(12) + handshake_answer(0), support::in_one_piece);
  pass_to_broker(connection, token("x") + opaque(13), support::in_one_piece);
  pass_to_client(connection, empty_token + response(13), support::in_one_piece);
  CHECK(connection.in_flight.empty());
}

TEST_CASE("a connection can log in again by tokens") {
  Connection connection;
  for (int i = 0; i < 3; ++i) {
    for (const auto& login : logins()) {
      shake_hands(connection, login.mechanism);
      for (const auto& round : login.rounds) {
        pass_to_broker(connection, round.client, 1);
        pass_to_client(connection, round.broker, 1);
      }
      pass_to_broker(connection, opaque(i), 1);
      pass_to_client(connection, response(i), 1);
    }
  }
}

TEST_CASE("what the proxy answers itself does not wait for an answer that a last token does not get") {
  Connection connection;
  const auto unknown = support::frame("F1");
  shake_hands(connection, "GSSAPI");
  connection.send(wrap_token + unknown);
  CHECK(connection.answer_local() == support::frame("S1"));
  CHECK(connection.in_flight.empty());

  Connection other;
  shake_hands(other, "PLAIN");
  other.send(token("x") + unknown);
  CHECK(other.answer_local().empty());
  CHECK(other.receive(empty_token).bytes == empty_token + support::frame("S1"));
}

TEST_CASE("a token that gets no answer takes no place from the requests behind it") {
  Connection connection({.in_flight_max = 1});
  shake_hands(connection, "GSSAPI");
  pass_to_broker(connection, wrap_token + opaque(7), support::in_one_piece);
  CHECK(connection.send(opaque(8)).status == Status::full);
  pass_to_client(connection, response(7), support::in_one_piece);
  pass_to_broker(connection, opaque(8), support::in_one_piece);
}

TEST_CASE("tokens of which nobody knows how many come are not sent ahead of their answers") {
  Connection connection;
  shake_hands(connection, "GSSAPI");
  pass_to_broker(connection, context_token, support::in_one_piece);
  const auto outcome = connection.send(empty_token);
  CHECK(outcome.status == Status::fault);
  CHECK(outcome.bytes.empty());
}

TEST_CASE("at the in-flight limit a token waits as a request does") {
  Connection connection({.in_flight_max = 1});
  shake_hands(connection, "SCRAM-SHA-256");
  CHECK(connection.send(token("a") + token("b")).status == Status::full);
  pass_to_client(connection, token("c"), support::in_one_piece);
  pass_to_broker(connection, token("b"), support::in_one_piece);
  CHECK(connection.send(opaque(7)).status == Status::full);
  pass_to_client(connection, token("d"), support::in_one_piece);
  pass_to_broker(connection, opaque(7), support::in_one_piece);
}

TEST_CASE("a token that the client broke off is not waited for") {
  Connection connection;
  shake_hands(connection, "PLAIN");
  connection.send(std::span(like_produce).first(9));
  CHECK(connection.in_flight.size() == 1);
  connection.requests.forget_incomplete();
  CHECK(connection.in_flight.empty());
}

TEST_CASE("a token of the broker that nobody asked for, and one of an impossible size, are faults") {
  Connection connection;
  shake_hands(connection, "PLAIN");
  CHECK(connection.receive(empty_token + response(1)).status == Status::fault);

  Connection other;
  shake_hands(other, "PLAIN");
  other.send(token("x"));
  CHECK(other.receive(from_hex("ffffffff")).status == Status::fault);
}

TEST_CASE("a handshake whose answer cannot be read is a fault") {
  Connection connection;
  connection.send(handshake("PLAIN"));
  CHECK(connection.receive(response(1)).status == Status::fault);
}

}  // namespace proxy
