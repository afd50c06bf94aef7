// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/tls_files.hpp"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/log.hpp"

namespace driftd::sinks {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;       // bytes; the system's own list of authorities has a quarter of it
constexpr std::int64_t kYoung = 2'000'000'000;  // ns; a younger file may change again without another time
constexpr std::int64_t kNanosASecond = 1'000'000'000;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Freed<&BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<&X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

std::int64_t nanos(const timespec& time) { return time.tv_sec * kNanosASecond + time.tv_nsec; }

tl::unexpected<Error> wrong(const std::string& path, const std::string& what, const std::string& expected) {
  return fail(Code::invalid, path + " " + what + "; expected " + expected);
}

/// Reads a regular file, at most kMaxFile bytes of it.
Result<std::string> contents(const std::string& path) {
  const auto failed = [&path] {
    return wrong(path, std::string("cannot be read: ") + std::strerror(errno), "a file in PEM");
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return failed();
  const Descriptor closed{fd};
  struct stat file {};
  if (::fstat(fd, &file) != 0) return failed();
  if (!S_ISREG(file.st_mode)) return wrong(path, "is not a regular file", "a file in PEM");
  std::string out(kMaxFile + 1, '\0');
  std::size_t size = 0;
  while (size < out.size()) {
    const ssize_t got = ::read(fd, out.data() + size, out.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxFile) return wrong(path, "has more than 1 MiB", "certificates or a key in PEM");
  out.resize(size);
  return out;
}

/// Asks nobody: OpenSSL would ask on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

Bio bio_of(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

/// Returns the first certificate, after all of them were read.
Result<Certificate> first_certificate(const std::string& path, const std::string& text) {
  const Bio bio = bio_of(text);
  Certificate first;
  ERR_clear_error();
  while (true) {
    Certificate one(PEM_read_bio_X509(bio.get(), nullptr, &no_passphrase, nullptr));
    if (!one) break;
    if (!first) first = std::move(one);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!first) return wrong(path, "has no certificate", "-----BEGIN CERTIFICATE----- and what follows it");
  if (!at_end) return wrong(path, "has a certificate that cannot be read", "whole certificates in PEM");
  return first;
}

Status check_pair(const TlsPaths& paths, const TlsMaterial& material) {
  DRIFTD_TRY(const Certificate certificate, first_certificate(paths.cert, material.cert));
  const PrivateKey key(PEM_read_bio_PrivateKey(bio_of(material.key).get(), nullptr, &no_passphrase, nullptr));
  const bool matches = key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!key) return wrong(paths.key, "has no private key that can be read", "a key in PEM without a passphrase");
  if (!matches) return wrong(paths.key, "is not the key of " + paths.cert, "the key of its first certificate");
  return {};
}

}  // namespace

TlsFiles::Marks TlsFiles::marks() const {
  Marks out{};
  const std::string* paths[] = {&paths_.ca, &paths_.cert, &paths_.key};
  for (std::size_t i = 0; i < out.size(); ++i) {
    struct stat file {};
    if (paths[i]->empty() || ::stat(paths[i]->c_str(), &file) != 0) continue;
    out[i] = {static_cast<std::int64_t>(file.st_dev), static_cast<std::int64_t>(file.st_ino), file.st_size,
              nanos(file.st_mtim), nanos(file.st_ctim)};
  }
  return out;
}

Result<TlsMaterial> TlsFiles::read() const {
  TlsMaterial out;
  if (!paths_.ca.empty()) {
    DRIFTD_TRY(out.ca, contents(paths_.ca));
    const auto authority = first_certificate(paths_.ca, out.ca);
    if (!authority) return fail(authority.error());
  }
  if (paths_.cert.empty()) return out;
  DRIFTD_TRY(out.cert, contents(paths_.cert));
  DRIFTD_TRY(out.key, contents(paths_.key));
  DRIFTD_CHECK(check_pair(paths_, out));
  return out;
}

Result<std::shared_ptr<const TlsMaterial>> TlsFiles::current() {
  const Marks now = marks();
  if (material_ && settled_ && now == read_) return material_;
  auto next = read();
  if (!next) {
    settled_ = false;
    if (material_ && fault_ != next.error().message) {
      log::room("delivery").error("webhook: {}; the former content stays in use", next.error().message);
    }
    fault_ = next.error().message;
    if (!material_) return fail(next.error());
    return material_;
  }
  if (!fault_.empty() && material_) log::room("delivery").info("webhook: the TLS files can be used again");
  fault_.clear();
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  const auto young = [&time](const Mark& mark) {
    return mark[3] + kYoung > nanos(time) || mark[4] + kYoung > nanos(time);
  };
  settled_ = std::none_of(now.begin(), now.end(), young);
  read_ = now;
  const bool same =
      material_ && material_->ca == next->ca && material_->cert == next->cert && material_->key == next->key;
  if (!same) material_ = std::make_shared<const TlsMaterial>(std::move(*next));
  return material_;
}

}  // namespace driftd::sinks
