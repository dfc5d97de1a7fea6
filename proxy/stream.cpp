#include "proxy/stream.hpp"

#include <openssl/err.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "proxy/tls.hpp"

namespace proxy {
namespace {

std::string openssl_reason() {
  const auto code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason ? reason : "TLS error";
}

}  // namespace

Stream::Stream(tcp::socket socket) : socket_(std::move(socket)) {
  ErrorCode ignored;  // a connection that the peer has reset already tells so at its first read
  socket_.non_blocking(true, ignored);
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
}

asio::awaitable<ErrorCode> Stream::handshake(SSL_CTX& context, bool is_server, std::string server_name) {
  ssl_.reset(SSL_new(&context));
  SSL_set_fd(ssl_.get(), static_cast<int>(socket_.native_handle()));
  // A partly written buffer may be given again from another place: what would block is moved aside.
  SSL_set_mode(ssl_.get(),
               SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  if (is_server) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
    ErrorCode not_an_address;
    asio::ip::make_address(server_name, not_an_address);
    if (not_an_address) {
      SSL_set_tlsext_host_name(ssl_.get(), server_name.c_str());
      SSL_set1_host(ssl_.get(), server_name.c_str());
    } else {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), server_name.c_str());
    }
  }
  for (;;) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) co_return ErrorCode{};
    const int why = SSL_get_error(ssl_.get(), result);
    ErrorCode error;
    if (why == SSL_ERROR_WANT_READ) {
      std::tie(error) = co_await socket_.async_wait(tcp::socket::wait_read, no_throw);
    } else if (why == SSL_ERROR_WANT_WRITE) {
      std::tie(error) = co_await socket_.async_wait(tcp::socket::wait_write, no_throw);
    } else {
      if (ERR_peek_error() == 0 && why != SSL_ERROR_SSL)
        co_return asio::error::make_error_code(asio::error::misc_errors::eof);
      const auto verified = SSL_get_verify_result(ssl_.get());
      tls_error_ = !is_server && verified != X509_V_OK ? X509_verify_cert_error_string(verified) : openssl_reason();
      if (auto refused = is_server ? explain_server_name(ssl_.get()) : std::string(); !refused.empty())
        tls_error_ = std::move(refused);
      error = asio::error::make_error_code(asio::error::connection_aborted);
    }
    if (error) co_return error;
  }
}

Stream::Transfer Stream::read(std::span<std::byte> bytes) {
  Transfer done;
  if (!ssl_) {
    done.size = socket_.read_some(asio::buffer(bytes.data(), bytes.size()), done.error);
    return done;
  }
  // A TLS record has 16 KiB at most; several in one go make one write to the other side.
  while (done.size < bytes.size()) {
    std::size_t count = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), bytes.data() + done.size, bytes.size() - done.size, &count);
    if (result != 1) {
      if (done.size > 0) return done;
      return tls_result(result, 0);
    }
    done.size += count;
  }
  return done;
}

Stream::Transfer Stream::write(std::span<const std::byte> bytes) {
  Transfer done;
  if (!ssl_) {
    done.size = socket_.write_some(asio::buffer(bytes.data(), bytes.size()), done.error);
    return done;
  }
  while (done.size < bytes.size()) {
    std::size_t count = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(ssl_.get(), bytes.data() + done.size, bytes.size() - done.size, &count);
    if (result != 1) {
      if (done.size > 0) return done;
      return tls_result(result, 0);
    }
    done.size += count;
  }
  return done;
}

Stream::Transfer Stream::tls_result(int result, std::size_t size) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return {size, asio::error::would_block};
    case SSL_ERROR_ZERO_RETURN: return {size, asio::error::eof};
    case SSL_ERROR_SYSCALL:
      if (errno != 0) return {size, ErrorCode(errno, boost::system::system_category())};
      return {size, asio::error::eof};
    default: tls_error_ = openssl_reason(); return {size, asio::error::connection_aborted};
  }
}

asio::awaitable<ErrorCode> Stream::wait_readable() {
  if (ssl_ && SSL_pending(ssl_.get()) > 0) co_return ErrorCode{};
  const auto [error] = co_await socket_.async_wait(tcp::socket::wait_read, no_throw);
  co_return error;
}

asio::awaitable<ErrorCode> Stream::wait_writable() {
  const auto [error] = co_await socket_.async_wait(tcp::socket::wait_write, no_throw);
  co_return error;
}

std::size_t Stream::available() const {
  ErrorCode error;
  const auto count = socket_.available(error);
  return (error ? 0 : count) + (ssl_ ? static_cast<std::size_t>(SSL_pending(ssl_.get())) : 0);
}

void Stream::interrupt() {
  ErrorCode ignored;
  socket_.cancel(ignored);
}

void Stream::shutdown_send() {
  if (ssl_) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  ErrorCode ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void Stream::close() {
  ErrorCode ignored;
  socket_.close(ignored);
}

}  // namespace proxy
