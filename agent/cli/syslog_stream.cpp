// SPDX-License-Identifier: Apache-2.0
#include "cli/syslog_stream.hpp"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace driftd::cli {
namespace {

/// Returns the first error of OpenSSL's queue, which it empties.
std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "unknown error" : text;
}

tl::unexpected<Error> bad_file(const char* option, const std::string& file) {
  return fail(Code::invalid, std::string(option) + ": " + file + " cannot be used: " + openssl_reason() +
                                 "; expected a file in PEM that this user can read");
}

/// A read, a write and, on Linux, a connect that lasts longer than this fails with EAGAIN or EINPROGRESS.
void limit_waits(int fd, std::chrono::seconds patience) {
  const timeval limit{patience.count(), 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool timed_out(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINPROGRESS; }

std::string text_of(int error) { return timed_out(error) ? "no answer in time" : std::strerror(error); }

}  // namespace

Result<SyslogServer> parse_syslog_server(const std::string& url) {
  constexpr std::string_view kScheme = "tls://";
  const auto wrong = [&] {
    return fail(Code::invalid,
                "--to is '" + url + "'; expected tls://HOST or tls://HOST:PORT, as tls://logs.example:6514");
  };
  if (!url.starts_with(kScheme)) return wrong();
  std::string rest = url.substr(kScheme.size());
  SyslogServer out;
  out.port = "6514";                             // RFC 5425
  const bool bracketed = rest.starts_with("[");  // an IPv6 address
  const auto end = bracketed ? rest.find(']') : rest.find(':');
  if (bracketed && end == std::string::npos) return wrong();
  out.host = rest.substr(bracketed ? 1 : 0, bracketed ? end - 1 : end);
  rest = end == std::string::npos ? std::string() : rest.substr(bracketed ? end + 1 : end);
  if (!rest.empty()) {
    out.port = rest.substr(1);
    const bool number = !out.port.empty() && out.port.size() <= 5 &&
                        out.port.find_first_not_of("0123456789") == std::string::npos && std::stoi(out.port) <= 65'535;
    if (rest.front() != ':' || !number) return wrong();
  }
  if (out.host.empty() || out.host.find_first_of("/@ ") != std::string::npos) return wrong();
  return out;
}

SyslogStream::Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<SyslogStream> SyslogStream::open(const SyslogServer& server) {
  SyslogStream out(server);
  DRIFTD_CHECK(out.connect(server));
  DRIFTD_CHECK(out.secure(server));
  return out;
}

Status SyslogStream::connect(const SyslogServer& server) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found);
  if (failed != 0) return fail(Code::unavailable, shown_ + ": " + ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Socket socket(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (socket.get() < 0) continue;
    limit_waits(socket.get(), server.patience);
    if (::connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0) {
      socket_ = std::move(socket);
      return {};
    }
    error = errno;
  }
  return fail(Code::unavailable, shown_ + ": connecting: " + text_of(error));
}

Status SyslogStream::use_files(const SyslogServer& server) {
  const bool trusted = server.ca.empty()
                           ? SSL_CTX_set_default_verify_paths(context_.get()) == 1
                           : SSL_CTX_load_verify_locations(context_.get(), server.ca.c_str(), nullptr) == 1;
  if (!trusted) return bad_file("--ca", server.ca);
  if (server.cert.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context_.get(), server.cert.c_str()) != 1)
    return bad_file("--cert", server.cert);
  const bool fits = SSL_CTX_use_PrivateKey_file(context_.get(), server.key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                    SSL_CTX_check_private_key(context_.get()) == 1;
  if (!fits) return bad_file("--key", server.key);
  return {};
}

Status SyslogStream::secure(const SyslogServer& server) {
  ERR_clear_error();
  context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  DRIFTD_CHECK(use_files(server));
  ssl_.reset(SSL_new(context_.get()));
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), server.host.c_str()) != 1) {
    SSL_set1_host(ssl_.get(), server.host.c_str());
    SSL_set_tlsext_host_name(ssl_.get(), server.host.c_str());  // SNI is for names only
  }
  SSL_set_fd(ssl_.get(), socket_.get());
  const int done = SSL_connect(ssl_.get());
  if (done != 1) return fail(broken("TLS", done));
  return {};
}

Status SyslogStream::send(std::string_view message) {
  DRIFTD_CHECK(write(std::to_string(message.size()) + " "));  // octet counting, RFC 5425 section 4.3
  return write(message);
}

Status SyslogStream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const int sent = SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (sent <= 0) return fail(broken("sending", sent));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Error SyslogStream::broken(const std::string& step, int result) const {
  const int saved = errno;
  const int error = SSL_get_error(ssl_.get(), result);
  const std::string what = shown_ + ": " + step + ": ";
  const long verified = SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK) return {Code::unavailable, what + X509_verify_cert_error_string(verified)};
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return {Code::unavailable, what + "no answer in time"};
  if (error != SSL_ERROR_SYSCALL) return {Code::unavailable, what + openssl_reason()};
  ERR_clear_error();
  return {Code::unavailable, what + (saved == 0 ? "the connection ended" : text_of(saved))};
}

}  // namespace driftd::cli
