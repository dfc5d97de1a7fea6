#pragma once
#include <openssl/ssl.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace proxy {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

// Operations return their error instead of throwing it.
inline constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

// One TCP connection, plain or TLS, that never blocks: wait until it is ready, then read or write what goes at once.
// That costs one call a turn and no buffer of its own. A Stream stays on the thread of its socket.
class Stream {
 public:
  struct Transfer {
    std::size_t size = 0;
    ErrorCode error = {};  // would_block: nothing could be done now; eof: the peer has ended its side
  };

  explicit Stream(tcp::socket socket);

  // Afterwards all bytes travel encrypted. `server_name`: of the peer, whose certificate must be valid for it; empty on
  // the accepting side. The context must outlive the stream.
  asio::awaitable<ErrorCode> handshake(SSL_CTX& context, bool is_server, std::string server_name);

  Transfer read(std::span<std::byte> bytes);
  Transfer write(std::span<const std::byte> bytes);

  // operation_aborted: the wait was interrupted, see interrupt() and close().
  asio::awaitable<ErrorCode> wait_readable();
  asio::awaitable<ErrorCode> wait_writable();

  // Bytes that lie in the socket now, as the kernel counts them (of TLS: encrypted).
  std::size_t available() const;

  // Ends all waits, so that those who wait look again at what they wait for.
  void interrupt();
  void shutdown_send();
  void close();
  bool is_open() const { return socket_.is_open(); }

  tcp::socket& socket() { return socket_; }

  // Why the last TLS operation failed, in OpenSSL's words; empty when it did not.
  const std::string& tls_error() const { return tls_error_; }

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  Transfer tls_result(int result, std::size_t size);

  tcp::socket socket_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string tls_error_;
};

}  // namespace proxy
