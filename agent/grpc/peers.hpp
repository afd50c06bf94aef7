// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/audit.hpp"
#include "grpc/settings.hpp"

namespace grpc {
class ServerContextBase;
}

namespace driftd::rpc {

/// Who calls, and what it may do.
struct Caller {
  std::string name;  ///< user, certificate `cert:order-runner` or token `token:ci`
  Rights rights = Rights::none;
  core::Caller process{};                   ///< on the Unix socket, by the kernel
  std::vector<std::uint32_t> gids{};        ///< of the process, its primary group too
  std::vector<std::string> certificates{};  ///< every name of its certificate
  std::string token{};                      ///< name of its token
  bool confidential = false;                ///< on the Unix socket or TLS
};

/// Identifies the process behind a Unix socket; `denied` with the reason if it may not use the agent at all.
using IdentifyPeer = std::function<Result<Caller>(int socket)>;

/// The connections of the Unix socket, by descriptor, which gRPC owns and closes. Core thread.
class Peers {
 public:
  /// Gives a connection a descriptor that none of the last some hundred had, and returns it; `socket` is closed.
  /// Returns `socket` if there is no other. gRPC names a connection by its descriptor, and a call may be judged when
  /// its connection is closed already: it must not be taken for one of whoever connected next.
  int renumber(int socket);
  void add(int socket, Caller caller);
  /// Returns how many are open still.
  std::size_t open();
  /// Returns the caller of a connection by gRPC's name for it, such as `fd:12`; null if it is none of these.
  const Caller* find(const std::string& peer) const;

 private:
  struct Entry {
    Caller caller;
    std::uint64_t inode = 0;  ///< of the socket: another one under the same descriptor has another
  };
  std::map<int, Entry> entries_;
  int next_ = 0;  ///< where renumber() looks first
};

/// Returns who makes a call: a process of the Unix socket, else the owner of a token, else that of a verified
/// certificate. Returns `unauthenticated` with what is missing. Core thread, while the call lives.
Result<Caller> identify(const ::grpc::ServerContextBase& context, const Settings& settings, const Peers& peers);

/// Returns a listening Unix socket with this mode; replaces the file of a dead process. `conflict` if somebody answers
/// there or it is something else, `invalid` for a path of more than 107 bytes. `setting` names it in the messages. The
/// caller owns the descriptor.
Result<int> listen_at(const std::string& setting, const std::string& path, unsigned mode);

}  // namespace driftd::rpc
