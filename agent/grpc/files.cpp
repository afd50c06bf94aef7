// SPDX-License-Identifier: Apache-2.0
#include "grpc/files.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <memory>

namespace driftd::rpc {
namespace {

Status check_readable(const std::string& setting, const std::string& file) {
  if (::access(file.c_str(), R_OK) == 0) return {};
  return fail(errno == EACCES ? Code::denied : Code::invalid,
              setting + ": " + file + " cannot be read: " + std::strerror(errno) +
                  "; expected a PEM file that the agent's user may read");
}

Status wrong(const std::string& setting, const std::string& file, const std::string& expected) {
  char text[256] = {};
  ERR_error_string_n(ERR_peek_last_error(), text, sizeof text);
  ERR_clear_error();
  return fail(Code::invalid, setting + ": " + file + " is not " + expected + ": " + text);
}

}  // namespace

bool is_loopback(const std::string& host_and_port) {
  const std::string host = host_and_port.substr(0, host_and_port.rfind(':'));
  in_addr address{};  // a name may begin like an address: 127.example.com
  const bool v4 = ::inet_pton(AF_INET, host.c_str(), &address) == 1;
  return host == "localhost" || host == "[::1]" || (v4 && host.starts_with("127."));
}

Status check_files(const std::string& prefix, const std::string& cert, const std::string& key, const std::string& ca,
                   const std::string& ca_name) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  if (!context) return fail(Code::internal, "OpenSSL gives no context");
  const std::string at_cert = prefix + "cert", at_key = prefix + "key", at_ca = prefix + ca_name;
  if (!cert.empty()) {
    DRIFTD_CHECK(check_readable(at_cert, cert));
    DRIFTD_CHECK(check_readable(at_key, key));
    if (SSL_CTX_use_certificate_chain_file(context.get(), cert.c_str()) != 1) {
      return wrong(at_cert, cert, "a PEM chain of certificates");
    }
    if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
      return wrong(at_key, key, "the PEM key, without a passphrase, of the certificate " + cert);
    }
  }
  if (ca.empty()) return {};
  DRIFTD_CHECK(check_readable(at_ca, ca));
  if (SSL_CTX_load_verify_locations(context.get(), ca.c_str(), nullptr) == 1) return {};
  return wrong(at_ca, ca, "a PEM file of CA certificates");
}

}  // namespace driftd::rpc
