#pragma once
#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "config/config.hpp"

namespace proxy {

struct FreeTlsContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, FreeTlsContext>;

// TLS 1.2 or newer. On failure nothing, and in `error` a sentence that names the file.
TlsContext make_listener_tls(const config::ListenerTls& tls, std::string& error);
TlsContext make_destination_tls(const config::DestinationTls& tls, std::string& error);
// For the health check: the proxy's own listener, whose certificate is not judged.
TlsContext make_unverified_tls();

}  // namespace proxy
