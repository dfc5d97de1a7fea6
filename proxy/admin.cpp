#include "proxy/admin.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <thread>

#include "proxy/listen.hpp"
#include "proxy/metrics.hpp"

namespace proxy {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds request_timeout{10};
constexpr std::uint32_t request_size_max = 16 << 10;

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

Response answer(const Request& request, const Server& server) {
  Response response(http::status::ok, request.version());
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.set(http::field::cache_control, "no-store");
  const std::string path(request.target().substr(0, request.target().find('?')));
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    response.result(http::status::method_not_allowed);
    response.set(http::field::allow, "GET, HEAD");
    response.body() = "GET or HEAD\n";
  } else if (path == "/livez") {
    response.body() = "ok\n";
  } else if (path == "/readyz") {
    response.body() =
        server.is_ready()
            ? "ok\n"
            : "the destination has not told its nodes yet, its state topic is not loaded, or the proxy is stopping\n";
    if (!server.is_ready()) response.result(http::status::service_unavailable);
  } else if (path == "/metrics") {
    response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    response.body() = metrics_text(server);
  } else if (path == "/api/v1/status") {
    response.set(http::field::content_type, "application/json");
    response.body() = status_json(server) + "\n";
  } else {
    response.result(http::status::not_found);
    response.body() = "/livez /readyz /metrics /api/v1/status\n";
  }
  return response;
}

asio::awaitable<void> converse(tcp::socket socket, const Server& server) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer(request_size_max);
  for (;;) {
    stream.expires_after(request_timeout);
    Request request;
    const auto [read_error, received] = co_await http::async_read(stream, buffer, request, no_throw);
    if (read_error) co_return;
    auto response = answer(request, server);
    const bool keeps_alive = request.keep_alive();
    response.keep_alive(keeps_alive);
    response.prepare_payload();
    if (request.method() == http::verb::head) response.body().clear();
    const auto [write_error, sent] = co_await http::async_write(stream, response, no_throw);
    if (write_error || !keeps_alive) co_return;
  }
}

asio::awaitable<void> accept(tcp::acceptor& acceptor, const Server& server) {
  asio::steady_timer pause(acceptor.get_executor());
  for (;;) {
    auto [error, socket] = co_await acceptor.async_accept(no_throw);
    if (!error) {
      asio::co_spawn(acceptor.get_executor(), converse(std::move(socket), server), asio::detached);
      continue;
    }
    pause.expires_after(std::chrono::milliseconds(100));
    co_await pause.async_wait(no_throw);
  }
}

}  // namespace

class Admin::Endpoint {
 public:
  Endpoint(config::HostPort listen, const Server& server) : listen_(std::move(listen)), server_(server) {}
  ~Endpoint() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  std::string start() {
    boost::system::error_code error;
    acceptor_ = bind_to(io_, listen_, error);
    if (acceptor_) acceptor_->listen(asio::socket_base::max_listen_connections, error);
    if (error) return "admin cannot listen on " + to_string(listen_) + ": " + error.message();
    asio::co_spawn(io_, accept(*acceptor_, server_), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

 private:
  config::HostPort listen_;
  const Server& server_;
  asio::io_context io_{1};
  std::optional<tcp::acceptor> acceptor_;
  std::thread thread_;
};

Admin::Admin(const config::HostPort& listen, const Server& server)
    : endpoint_(std::make_unique<Endpoint>(listen, server)) {}
Admin::~Admin() = default;

std::string Admin::start() {
  return endpoint_->start();
}

}  // namespace proxy
