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
// `tls` must outlive the context.
TlsContext make_listener_tls(const config::ListenerTls& tls, std::string& error);
TlsContext make_destination_tls(const config::DestinationTls& tls, std::string& error);
// For the health check: the proxy's own listener, whose certificate is not judged.
TlsContext make_unverified_tls();

// Of a handshake that a client has begun at such a listener: whether it asked for a name that is not served there, what
// it asked for, and what there is. Empty: it did not.
std::string explain_server_name(const SSL* ssl);

}  // namespace proxy
