#pragma once
#include <memory>
#include <string>

#include "config/config.hpp"
#include "proxy/server.hpp"

namespace proxy {

// The admin endpoint: /livez, /readyz, /metrics and /api/v1/status over HTTP/1.1, on a thread of its own. It shows
// numbers and addresses, no records and no secrets, and changes nothing; it has no TLS, so bind it to an inner network.
class Admin {
 public:
  // The server must outlive it.
  Admin(const config::HostPort& listen, const Server& server);
  ~Admin();

  // A sentence when the address cannot be bound.
  std::string start();

 private:
  class Endpoint;
  std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace proxy
