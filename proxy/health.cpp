#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

#include "codec/frame.hpp"
#include "codec/writer.hpp"
#include "proxy/commands.hpp"
#include "proxy/configuration.hpp"
#include "proxy/dial.hpp"

namespace proxy {
namespace {

using namespace asio::experimental::awaitable_operators;

// Version 0, which every broker and every proxy answers.
std::vector<std::byte> api_versions_request() {
  codec::Writer out(false);
  out.integer(codec::api_versions::response.api_key).integer(std::int16_t{0}).integer(std::int32_t{1});
  out.classic_string("mirrorpid-health");
  return out.frame();
}

asio::awaitable<std::string> exchange(Stream& stream) {
  const auto request = api_versions_request();
  std::vector<std::byte> response(4096);
  for (std::size_t sent = 0; sent < request.size();) {
    const auto done = stream.write(std::span(request).subspan(sent));
    sent += done.size;
    if (done.error == asio::error::would_block) {
      co_await stream.wait_writable();
    } else if (done.error) {
      co_return done.error.message();
    }
  }
  constexpr auto wanted = sizeof(codec::ResponseHead) + sizeof(std::int16_t);
  for (std::size_t received = 0; received < wanted;) {
    const auto done = stream.read(std::span(response).subspan(received));
    received += done.size;
    if (done.error == asio::error::would_block) {
      co_await stream.wait_readable();
    } else if (done.error || done.size == 0) {
      co_return "the connection was closed; the log of `mirrorpid serve` says why";
    }
  }
  const auto error = codec::load<boost::endian::big_int16_t>(std::span(response).subspan(sizeof(codec::ResponseHead)));
  if (error != 0) co_return fmt::format("the broker answers with error {}", error.value());
  co_return "";
}

// Empty: healthy.
asio::awaitable<std::string> ask(config::HostPort address, SSL_CTX* tls, std::chrono::milliseconds timeout) {
  asio::steady_timer timer(co_await asio::this_coro::executor, timeout);
  auto dialled = co_await connect(address, tls, "", timeout);
  if (!dialled.stream) co_return dialled.reason;
  const auto answer = co_await (exchange(*dialled.stream) || timer.async_wait(no_throw));
  if (answer.index() == 0) co_return std::get<0>(answer);
  co_return fmt::format("no answer within {} ms", timeout.count());
}

// Where the proxy can be reached from its own machine.
config::HostPort own_address(const config::HostPort& listen) {
  if (!config::is_wildcard(listen.host)) return listen;
  return {listen.host.find(':') == std::string::npos ? "127.0.0.1" : "::1", listen.port};
}

}  // namespace

int health(const std::string& config_path, std::chrono::milliseconds timeout, Format format) {
  const auto config = load_configuration(config_path);
  if (!config) return exit_usage;
  boost::json::array all;
  bool is_healthy = true;
  for (const auto& source : config->sources) {
    const auto address = own_address(source.listen);
    std::string reason;
    std::string note;
    if (source.tls && !source.tls->client_ca_file.empty()) {
      // A client certificate would be needed to ask further.
      asio::io_context io;
      auto dialled = asio::co_spawn(io, connect(address, nullptr, "", timeout), asio::use_future);
      io.run();
      reason = dialled.get().reason;
      note = " (connected; clients need a certificate, so nothing was asked)";
    } else {
      asio::io_context io;
      const auto tls = source.tls ? make_unverified_tls() : nullptr;
      auto answer = asio::co_spawn(io, ask(address, tls.get(), timeout), asio::use_future);
      io.run();
      reason = answer.get();
    }
    is_healthy = is_healthy && reason.empty();
    if (format == Format::text)
      std::printf("%s %s: %s\n", source.name.c_str(), to_string(address).c_str(),
                  reason.empty() ? ("ok" + note).c_str() : reason.c_str());
    all.push_back(
        {{"source", source.name}, {"address", to_string(address)}, {"ok", reason.empty()}, {"reason", reason}});
  }
  if (format == Format::json) std::printf("%s\n", boost::json::serialize(all).c_str());
  return is_healthy ? exit_done : exit_failed;
}

}  // namespace proxy
