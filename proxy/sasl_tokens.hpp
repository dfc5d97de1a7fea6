#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace proxy {

// Where a connection stands with bare SASL tokens. After a SaslHandshake of version 0 that was answered without error,
// frames both ways are a size and a token, with no Kafka header, until the mechanism is through. Nothing marks the last
// one, so that follows from the mechanism; and never is a frame taken for a token which the broker takes for a request.
class SaslTokens {
 public:
  enum class Next {
    more,     // cannot be told before more of the frame is there
    request,  // there are no tokens (any more)
    token,
    unknown,  // the mechanism's tokens cannot be told from requests
  };

  // A handshake of version 0 begins: until it is answered nobody can say what the frame behind it is.
  void expect_answer();
  void choose(std::string_view mechanism);
  void handshake_answered(std::int16_t error_code);
  bool awaits_answer() const { return phase_ == Phase::handshake; }
  bool are_expected() const { return phase_ == Phase::tokens; }

  // `frame`: the first bytes of a client's frame, its size among them. After `token` it counts as sent.
  Next next(std::span<const std::byte> frame);
  void broker_sent(std::size_t token_size);

  // Of the last token: whether brokers may say nothing to it. If so, the client has sent its next request unasked.
  bool may_stay_unanswered() const { return mechanism_ == Mechanism::gssapi; }

 private:
  enum class Phase { none, handshake, tokens };
  enum class Mechanism { unknown, plain, oauthbearer, scram, gssapi };

  Phase phase_ = Phase::none;
  Mechanism mechanism_ = Mechanism::unknown;
  int left_ = 0;  // tokens that the client has still to send; of GSSAPI nobody knows
};

}  // namespace proxy
