// SPDX-License-Identifier: Apache-2.0
#include "grpc/peers.hpp"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <openssl/crypto.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/digest.hpp"
#include "core/value/path.hpp"

namespace driftd::rpc {
namespace {

std::uint64_t inode_of(int socket) {
  struct stat info {};
  return ::fstat(socket, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

/// Returns the token of `authorization: Bearer …`.
std::optional<std::string> bearer(const ::grpc::ServerContextBase& context) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) return std::nullopt;
  const std::string_view text(found->second.data(), found->second.size());
  if (!text.starts_with(kScheme)) return std::nullopt;
  return std::string(text.substr(kScheme.size()));
}

Result<Caller> of_token(const std::string& token, const Settings& settings) {
  const std::string digest = sha256(token);
  const Settings::Token* found = nullptr;
  for (const auto& one : settings.tokens) {  // all of them, each in constant time
    if (CRYPTO_memcmp(one.sha256.data(), digest.data(), digest.size()) == 0) found = &one;
  }
  if (found == nullptr) {
    return fail(Code::unauthenticated, "the token is none of grpc.tokens; it may have been replaced");
  }
  Caller out{"token:" + found->name, found->rights};
  out.token = found->name;
  return out;
}

/// Returns the first name of the certificate that has rights, with the highest of them.
Caller of_certificate(const ::grpc::AuthContext& peer, const Settings& settings) {
  Caller out;
  for (const char* property : {"x509_subject_alternative_name", "x509_common_name"}) {
    for (const auto& value : peer.FindPropertyValues(property)) {
      const std::string name(value.data(), value.size());
      out.certificates.push_back(name);
      if (out.name.empty()) out.name = "cert:" + name;
      for (const auto& [glob, rights] : settings.clients) {
        if (rights <= out.rights || !core::Glob::of_name(glob).matches(std::string_view(name))) continue;
        out.name = "cert:" + name;
        out.rights = rights;
      }
    }
  }
  return out;
}

Result<sockaddr_un> address_of(const std::string& setting, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(Code::invalid, setting + " is '" + path + "'; expected a path of 1 to 107 bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Removes the socket file of a dead process.
Status clear(const std::string& setting, const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) {
    return fail(Code::conflict, setting + ": " + path + " exists and is not a socket; remove it or name another path");
  }
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool alive = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  if (alive) return fail(Code::conflict, setting + ": a server answers on " + path + " already; name another path");
  ::unlink(path.c_str());
  return {};
}

}  // namespace

int Peers::renumber(int socket) {
  constexpr int kFirst = 384, kCount = 512;  // below 1,024, which may be the limit of the process
  const int out = ::fcntl(socket, F_DUPFD_CLOEXEC, kFirst + next_);
  if (out < 0) return socket;
  next_ = (out - kFirst + 1) % kCount;
  ::close(socket);
  return out;
}

void Peers::add(int socket, Caller caller) { entries_[socket] = {std::move(caller), inode_of(socket)}; }

std::size_t Peers::open() {
  std::erase_if(entries_, [](const auto& entry) { return inode_of(entry.first) != entry.second.inode; });
  return entries_.size();
}

const Caller* Peers::find(const std::string& peer) const {
  constexpr std::string_view kFd = "fd:";
  int socket = -1;
  if (!peer.starts_with(kFd)) return nullptr;
  std::from_chars(peer.data() + kFd.size(), peer.data() + peer.size(), socket);
  const auto found = entries_.find(socket);
  return found == entries_.end() ? nullptr : &found->second.caller;
}

Result<Caller> identify(const ::grpc::ServerContextBase& context, const Settings& settings, const Peers& peers) {
  if (const Caller* process = peers.find(context.peer())) return *process;
  const bool tls = !settings.cert.empty();  // the TCP listener has TLS for everybody or for nobody
  if (const auto token = bearer(context)) {
    DRIFTD_TRY(Caller caller, of_token(*token, settings));
    caller.confidential = tls;
    return caller;
  }
  const auto peer = context.auth_context();
  if (peer && peer->IsPeerAuthenticated()) {
    Caller caller = of_certificate(*peer, settings);
    caller.confidential = tls;
    if (caller.rights != Rights::none) return caller;
    return fail(Code::denied, "certificate " + caller.name + " matches no entry of grpc.clients");
  }
  return fail(Code::unauthenticated,
              "the call has neither a client certificate nor a token of grpc.tokens; send the "
              "metadata `authorization: Bearer TOKEN`");
}

Result<int> listen_at(const std::string& setting, const std::string& path, unsigned mode) {
  DRIFTD_TRY(const sockaddr_un address, address_of(setting, path));
  std::error_code ignored;  // bind() gives the better error
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  DRIFTD_CHECK(clear(setting, path, address));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool good = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::chmod(path.c_str(), mode) == 0 && ::listen(fd, 64) == 0;
  if (good) return fd;
  const std::string why = std::strerror(errno);
  if (fd >= 0) ::close(fd);
  return fail(Code::unavailable, setting + ": cannot listen on " + path + ": " + why);
}

}  // namespace driftd::rpc
