#pragma once
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "proxy/context.hpp"
#include "proxy/stream.hpp"

namespace proxy {

struct Dialled {
  std::optional<Stream> stream = {};  // nothing: `reason` says why
  config::HostPort address = {};
  std::string reason = {};
};

// Connects to `address` (a name is resolved, all its addresses are tried), and through TLS where a context is given,
// within `timeout`.
asio::awaitable<Dialled> connect(config::HostPort address, SSL_CTX* tls, std::string server_name,
                                 std::chrono::milliseconds timeout);

// For people, when the destination does not answer: what a connection to each bootstrap server comes to. Blocks, for
// `timeout` a server at most.
std::string explain_unreachable(const config::Destination& destination, std::chrono::milliseconds timeout);

// Connects to what a listener stands for: node N reaches node N or nothing, waiting at most five seconds until its
// address is known; a source's own listener reaches the first bootstrap server that can be reached.
asio::awaitable<Dialled> dial(const ServerContext& server, const ListenerContext& listener);

}  // namespace proxy
