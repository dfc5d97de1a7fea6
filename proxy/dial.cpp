#include "proxy/dial.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>

namespace proxy {
namespace {

using namespace asio::experimental::awaitable_operators;

constexpr std::chrono::seconds node_wait_max{5};
constexpr std::chrono::milliseconds node_wait_step{100};

asio::awaitable<Dialled> connect_and_handshake(config::HostPort address, SSL_CTX* tls, std::string server_name) {
  const auto executor = co_await asio::this_coro::executor;
  Dialled result{.address = address};
  std::vector<tcp::endpoint> endpoints;
  ErrorCode not_an_address;
  const auto ip = asio::ip::make_address(address.host, not_an_address);
  if (!not_an_address) {
    endpoints.emplace_back(ip, address.port);
  } else {
    tcp::resolver resolver(executor);
    const auto [error, found] = co_await resolver.async_resolve(address.host, std::to_string(address.port), no_throw);
    if (error) {
      result.reason = "cannot resolve: " + error.message();
      co_return result;
    }
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  tcp::socket socket(executor);
  const auto [error, endpoint] = co_await asio::async_connect(socket, endpoints, no_throw);
  if (error) {
    result.reason = "cannot connect: " + error.message();
    co_return result;
  }
  result.stream.emplace(std::move(socket));
  if (tls != nullptr) {
    if (server_name.empty()) server_name = address.host;
    if (const auto failed = co_await result.stream->handshake(*tls, false, server_name)) {
      const auto& why = result.stream->tls_error();
      result.reason = "TLS: " + (why.empty() ? failed.message() : why);
      result.stream.reset();
    }
  }
  co_return result;
}

}  // namespace

asio::awaitable<Dialled> connect(config::HostPort address, SSL_CTX* tls, std::string server_name,
                                 std::chrono::milliseconds timeout) {
  asio::steady_timer timer(co_await asio::this_coro::executor, timeout);
  auto first = co_await (connect_and_handshake(address, tls, server_name) || timer.async_wait(no_throw));
  if (first.index() == 0) co_return std::move(std::get<0>(first));
  co_return Dialled{.address = address, .reason = "no connection within " + std::to_string(timeout.count()) + " ms"};
}

std::string explain_unreachable(const config::Destination& destination, std::chrono::milliseconds timeout) {
  std::string error;
  const auto tls = destination.tls ? make_destination_tls(*destination.tls, error) : nullptr;
  std::string text;
  for (const auto& server : destination.bootstrap_servers) {
    asio::io_context io;
    auto dialled = asio::co_spawn(
        io, connect(server, tls.get(), destination.tls ? destination.tls->server_name : "", timeout), asio::use_future);
    io.run();
    const auto result = dialled.get();
    text += (text.empty() ? "" : "; ") + to_string(server) + ": " +
            (result.stream ? "can be connected to, but does not answer as a Kafka listener with these settings "
                             "(destination.client and destination.tls)"
                           : result.reason);
  }
  return text;
}

asio::awaitable<Dialled> dial(const ServerContext& server, const ListenerContext& listener) {
  const auto reach = [&](const config::HostPort& address) {
    return connect(address, server.destination_tls.get(), server.destination_server_name,
                   server.limits.connect_timeout);
  };
  Dialled result;
  if (!listener.node_id) {
    for (const auto& address : server.cluster.bootstrap_servers()) {
      result = co_await reach(address);
      if (result.stream) co_return result;
      server.cluster.bootstrap_failed(address);
    }
    co_return result;
  }

  auto address = server.cluster.find(*listener.node_id);
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (auto waited = node_wait_step; !address && waited < node_wait_max; waited += node_wait_step) {
    server.cluster.request_refresh();
    timer.expires_after(node_wait_step);
    co_await timer.async_wait(no_throw);
    address = server.cluster.find(*listener.node_id);
  }
  if (!address) {
    result.reason = server.cluster.nodes().empty() ? "the destination has not told its nodes yet"
                                                   : "the destination has no such node";
    co_return result;
  }
  result = co_await reach(*address);
  if (!result.stream) server.cluster.request_refresh();
  co_return result;
}

}  // namespace proxy
