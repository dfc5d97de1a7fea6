#include "tests/support/kafka_connection.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "codec/frame.hpp"

namespace support {
namespace {

constexpr Call api_versions{18, "ApiVersions", {0, 0}, codec::never_flexible, &codec::api_versions::response};
constexpr std::int32_t response_size_max = 1 << 30;

void set_blocking(int socket, std::chrono::milliseconds timeout) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  const timeval time{static_cast<time_t>(timeout.count() / 1000),
                     static_cast<suseconds_t>(timeout.count() % 1000 * 1000)};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// An errno; 0: connected.
int connect_within(int socket, const addrinfo& address, std::chrono::milliseconds timeout) {
  if (connect(socket, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wait{socket, POLLOUT, 0};
  if (poll(&wait, 1, static_cast<int>(timeout.count())) == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  auto host = text.substr(0, colon);
  const auto port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Address address{std::string(host)};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (host.empty() || error != std::errc{} || end != port.data() + port.size()) return std::nullopt;
  return address;
}

std::string to_string(const Address& address) {
  const auto port = ":" + std::to_string(address.port);
  return address.host.find(':') == std::string::npos ? address.host + port : "[" + address.host + "]" + port;
}

KafkaConnection::~KafkaConnection() {
  if (socket_ >= 0) close(socket_);
}

KafkaConnection::KafkaConnection(KafkaConnection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      address_(std::move(other.address_)),
      correlation_id_(other.correlation_id_),
      spoken_(std::move(other.spoken_)) {}

Result<KafkaConnection> KafkaConnection::connect(const Address& address, std::chrono::milliseconds timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found))
    return Failure{to_string(address) + ": " + gai_strerror(error)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  int error = 0;
  for (const auto* one = all.get(); one != nullptr; one = one->ai_next) {
    KafkaConnection connection(socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), address);
    error = connection.socket_ < 0 ? errno : connect_within(connection.socket_, *one, timeout);
    if (error != 0) continue;
    set_blocking(connection.socket_, timeout);
    return connection;
  }
  return Failure{to_string(address) + ": " + std::strerror(error)};
}

Result<KafkaConnection> KafkaConnection::open(const Address& address, std::chrono::milliseconds timeout) {
  auto connection = connect(address, timeout);
  if (!connection) return connection;
  const auto sent = connection->send(api_versions, 0, [](codec::Writer&) {});
  if (!sent) return sent.error();
  const auto response = connection->receive(*sent);
  if (!response) return response.error();
  for (const auto& api : response->fields["ApiKeys"].elements)
    connection->spoken_[static_cast<std::int16_t>(api["ApiKey"].number)] = {
        static_cast<codec::Version>(api["MinVersion"].number), static_cast<codec::Version>(api["MaxVersion"].number)};
  return connection;
}

Result<codec::Version> KafkaConnection::negotiate(const Call& call) const {
  const auto at = spoken_.find(call.key);
  if (at == spoken_.end()) return failure("does not speak " + std::string(call.name));
  const auto version = std::min(call.versions.last, at->second.last);
  if (!call.versions.contain(version) || !at->second.contain(version))
    return failure("speaks other versions of " + std::string(call.name));
  return version;
}

Result<Response> KafkaConnection::receive(const Sent& sent) {
  std::byte prefix[codec::frame_prefix_size];
  if (auto read = read_all(prefix); !read) return read.error();
  const auto size = codec::Cursor(prefix).integer<std::int32_t>();
  if (size < 4 || size > response_size_max) return failure("answered with a frame of " + std::to_string(size));

  Response response;
  response.bytes.resize(static_cast<std::size_t>(size));
  if (auto read = read_all(response.bytes); !read) return read.error();
  codec::Cursor in(response.bytes);
  if (in.integer<std::int32_t>() != sent.correlation_id) return failure("answered another request");
  if (sent.version >= sent.call->flexible_since) read_message(codec::headers::response, 1, in);
  response.fields = read_message(*sent.call->response, sent.version, in);
  if (!in.good()) return failure("answered " + std::string(sent.call->name) + " with bytes that make no sense");
  return response;
}

Failure KafkaConnection::failure(std::string_view what) const {
  return {to_string(address_) + " " + std::string(what)};
}

Result<void> KafkaConnection::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return failure(std::string("takes no request: ") + std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> KafkaConnection::read_all(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto received = recv(socket_, bytes.data(), bytes.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return failure(std::string("does not answer: ") + std::strerror(errno));
    if (received == 0) return failure("closed the connection before it answered");
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return {};
}

}  // namespace support
