#include "proxy/listen.hpp"

#include <boost/asio/ip/v6_only.hpp>

namespace proxy {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

std::optional<tcp::acceptor> bind_to(asio::io_context& io, const config::HostPort& address,
                                     boost::system::error_code& error) {
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
  if (error) return std::nullopt;
  const auto endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error) return std::nullopt;
  return acceptor;
}

}  // namespace proxy
