#pragma once
#include <boost/system/result.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/schema.hpp"
#include "codec/writer.hpp"
#include "tests/support/message_reader.hpp"

namespace support {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};
// "host:port" or "[::1]:port"; nothing: it is neither.
std::optional<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);

// Why it cannot go on, as a sentence.
struct Failure {
  std::string reason;
};
template <typename T>
using Result = boost::system::result<T, Failure>;

// An API as a client here speaks it.
struct Call {
  std::int16_t key;
  std::string_view name;
  codec::Versions versions;  // whose requests it can write
  codec::Version flexible_since;
  const codec::Message* response;
};

// A request on its way: what its response has to be read by.
struct Sent {
  const Call* call;
  codec::Version version;
  std::int32_t correlation_id;
};

struct Response {
  std::vector<std::byte> bytes;  // which the fields point into
  MessageValue fields;
};

// A plain connection to one broker that blocks, but for no longer than its timeout. Requests may be sent before earlier
// ones are answered; responses are received in the same order.
class KafkaConnection {
 public:
  // Connects, and asks what the broker speaks.
  static Result<KafkaConnection> open(const Address& address, std::chrono::milliseconds timeout);
  ~KafkaConnection();
  KafkaConnection(KafkaConnection&& other) noexcept;
  KafkaConnection& operator=(KafkaConnection&&) = delete;

  // The newest version that both sides know.
  Result<codec::Version> negotiate(const Call& call) const;

  // `write_body` gets the writer behind the request's header.
  template <typename WriteBody>
  Result<Sent> send(const Call& call, codec::Version version, WriteBody write_body) {
    codec::Writer request(version >= call.flexible_since);
    request.integer(call.key).integer(version).integer(++correlation_id_).classic_string(client_id).no_tags();
    write_body(request);
    if (auto sent = write_all(request.frame()); !sent) return sent.error();
    return Sent{&call, version, correlation_id_};
  }

  Result<Response> receive(const Sent& sent);

 private:
  static constexpr std::string_view client_id = "verbatim-mirror";

  KafkaConnection(int socket, const Address& address) : socket_(socket), address_(address) {}
  static Result<KafkaConnection> connect(const Address& address, std::chrono::milliseconds timeout);
  Failure failure(std::string_view what) const;
  Result<void> write_all(std::span<const std::byte> bytes);
  Result<void> read_all(std::span<std::byte> bytes);

  int socket_;
  Address address_;
  std::int32_t correlation_id_ = 0;
  std::map<std::int16_t, codec::Versions> spoken_;  // by API key
};

}  // namespace support
