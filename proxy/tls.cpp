#include "proxy/tls.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <string_view>
#include <vector>

namespace proxy {
namespace {

std::string because(const std::string& what, const std::string& file) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return what + " " + file + ": " + (reason ? reason : "unreadable");
}

TlsContext make(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // Clients that close without a goodbye are Kafka's custom; no answer of ours depends on its end.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
  return context;
}

bool use_certificate(SSL_CTX* context, const std::string& cert_file, const std::string& key_file, std::string& error) {
  if (SSL_CTX_use_certificate_chain_file(context, cert_file.c_str()) != 1) {
    error = because("certificate", cert_file);
  } else if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    error = because("key", key_file);
  } else if (SSL_CTX_check_private_key(context) != 1) {
    error = because("the key does not belong to the certificate:", key_file);
  }
  return error.empty();
}

using Names = std::vector<std::string>;

// Where a context keeps the names that it serves.
int names_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

bool is_meant(const std::string& name, std::string_view asked) {
  if (!name.starts_with("*.")) return boost::algorithm::iequals(name, asked);
  const auto dot = asked.find('.');
  return dot != std::string_view::npos && dot > 0 && boost::algorithm::iequals(name.substr(2), asked.substr(dot + 1));
}

int judge_server_name(SSL* ssl, int* alert, void*) {
  if (explain_server_name(ssl).empty()) return SSL_TLSEXT_ERR_OK;
  *alert = SSL_AD_UNRECOGNIZED_NAME;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

// OpenSSL's callback is called also where no name is asked for.
std::string explain_server_name(const SSL* ssl) {
  const auto* names = static_cast<const Names*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), names_index()));
  if (names == nullptr) return {};
  const char* asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (asked && std::ranges::any_of(*names, [&](const std::string& name) { return is_meant(name, asked); })) return {};
  return fmt::format("the client asks for {}, and this listener serves {}",
                     asked ? fmt::format("the server name '{}'", asked) : "no server name (SNI)",
                     fmt::join(*names, ", "));
}

TlsContext make_listener_tls(const config::ListenerTls& tls, std::string& error) {
  auto context = make(TLS_server_method());
  if (!use_certificate(context.get(), tls.cert_file, tls.key_file, error)) return nullptr;
  if (!tls.client_ca_file.empty()) {
    if (SSL_CTX_load_verify_locations(context.get(), tls.client_ca_file.c_str(), nullptr) != 1) {
      error = because("client CA", tls.client_ca_file);
      return nullptr;
    }
    SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(tls.client_ca_file.c_str()));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  if (!tls.server_names.empty()) {
    SSL_CTX_set_ex_data(context.get(), names_index(), const_cast<Names*>(&tls.server_names));
    SSL_CTX_set_tlsext_servername_callback(context.get(), judge_server_name);
  }
  return context;
}

TlsContext make_destination_tls(const config::DestinationTls& tls, std::string& error) {
  auto context = make(TLS_client_method());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const int loaded = tls.ca_file.empty() ? SSL_CTX_set_default_verify_paths(context.get())
                                         : SSL_CTX_load_verify_locations(context.get(), tls.ca_file.c_str(), nullptr);
  if (loaded != 1) {
    error = because("CA", tls.ca_file);
    return nullptr;
  }
  if (!tls.cert_file.empty() && !use_certificate(context.get(), tls.cert_file, tls.key_file, error)) return nullptr;
  return context;
}

TlsContext make_unverified_tls() {
  return make(TLS_client_method());
}

}  // namespace proxy
