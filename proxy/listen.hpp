#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <optional>

#include "config/host_port.hpp"

namespace proxy {

// Binds an address, its name resolved, and listens; `[::]` takes IPv4 too. Nothing: see `error`. Does not block on
// accept.
std::optional<boost::asio::ip::tcp::acceptor> listen_on(boost::asio::io_context& io, const config::HostPort& address,
                                                        boost::system::error_code& error);

}  // namespace proxy
