// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace driftd::rpc {

enum class Rights { none, read, decide };  ///< each one includes the one before it

/// What the definition of a backend may name that a caller registers (`grpc.register`).
struct ManualLimits {
  std::vector<std::string> providers{"*"};  ///< globs of ids and types; never a path
  std::vector<std::string> references;      ///< globs of `file:/run/secrets/redis`; empty: no reference at all
  friend bool operator==(const ManualLimits&, const ManualLimits&) = default;
};

/// The section `grpc` of the configuration (docs/grpc.md). It holds no secret: tokens are digests.
struct Settings {
  bool present = false;         ///< the configuration has the section
  std::string socket;           ///< path of a Unix socket; empty: none
  unsigned socket_mode = 0660;  ///< its mode; whoever connects is also checked as on admin.socket
  std::string listen;           ///< HOST:PORT; empty: no TCP
  std::string cert, key;        ///< PEM files of the server; empty: plain TCP, to loopback only
  std::string client_ca;        ///< PEM file; empty: clients show no certificate, and need a token
  bool allow_plain_loopback = false;
  std::map<std::string, Rights> clients;  ///< name of a client's certificate, or a glob of it → rights
  struct Token {
    std::string name, sha256;  ///< who has it; 32 raw bytes
    Rights rights = Rights::read;
    friend bool operator==(const Token&, const Token&) = default;
  };
  std::vector<Token> tokens;
  std::vector<std::string> callback_allow;  ///< globs of HOST:PORT that callbacks may go to; empty: callbacks are off
  std::string callback_ca, callback_cert, callback_key;  ///< PEM files; empty: the system's CAs, no certificate of ours
  bool manual_on = false;  ///< the section `register` is there: callers may register backends
  ManualLimits manual;
  int max_streams = 128;                        ///< open Subscribe calls
  std::chrono::milliseconds heartbeat{30'000};  ///< the longest silence of a stream
  friend bool operator==(const Settings&, const Settings&) = default;
};

}  // namespace driftd::rpc
