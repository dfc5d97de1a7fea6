#include "proxy/sasl_tokens.hpp"

#include <algorithm>
#include <array>

#include "codec/frame.hpp"

namespace proxy {
namespace {

// What a token of GSSAPI begins with: a DER tag (RFC 2743), or a wrap token of Kerberos (RFC 4121). As API keys these
// would be 24576 and more, and 1284, which are far from any that exists.
constexpr std::byte der_tag{0x60};
constexpr std::array wrap_token{std::byte{0x05}, std::byte{0x04}};

}  // namespace

void SaslTokens::expect_answer() {
  *this = {};
  phase_ = Phase::handshake;
}

void SaslTokens::choose(std::string_view mechanism) {
  if (mechanism == "PLAIN") mechanism_ = Mechanism::plain;
  if (mechanism == "OAUTHBEARER") mechanism_ = Mechanism::oauthbearer;
  if (mechanism == "GSSAPI") mechanism_ = Mechanism::gssapi;
  if (mechanism.starts_with("SCRAM-")) mechanism_ = Mechanism::scram;
  left_ = mechanism_ == Mechanism::scram ? 2 : 1;
}

void SaslTokens::handshake_answered(std::int16_t error_code) {
  if (phase_ == Phase::handshake) phase_ = error_code == 0 ? Phase::tokens : Phase::none;
}

SaslTokens::Next SaslTokens::next(std::span<const std::byte> frame) {
  if (phase_ == Phase::none) return Next::request;
  if (mechanism_ == Mechanism::unknown) return Next::unknown;
  if (mechanism_ == Mechanism::gssapi) {
    const std::int32_t size = codec::load<boost::endian::big_int32_t>(frame);
    const auto token = frame.subspan(codec::frame_prefix_size);
    if (size == 0) return Next::token;
    if (token.empty()) return Next::more;
    if (token.front() == der_tag) return Next::token;
    if (size > 1 && token.front() == wrap_token.front() && token.size() == 1) return Next::more;
    if (token.size() > 1 && std::ranges::equal(token.first(2), wrap_token)) return Next::token;
  } else if (left_ > 0) {
    --left_;
    return Next::token;
  }
  phase_ = Phase::none;
  return Next::request;
}

void SaslTokens::broker_sent(std::size_t token_size) {
  // With an error the client is told why, and must send one more token before the broker ends the connection.
  if (phase_ == Phase::tokens && mechanism_ == Mechanism::oauthbearer && token_size > 0) left_ = 1;
}

}  // namespace proxy
