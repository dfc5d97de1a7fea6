#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <optional>

#include "config/host_port.hpp"

namespace proxy {

// Binds an address, its name resolved; `[::]` takes IPv4 too. Nothing: see `error`. Connections are refused until it
// listens, which is the caller's; it will not block on accept.
std::optional<boost::asio::ip::tcp::acceptor> bind_to(boost::asio::io_context& io, const config::HostPort& address,
                                                      boost::system::error_code& error);

}  // namespace proxy
