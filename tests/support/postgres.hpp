// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real PostgreSQL cluster of its own: data in a temporary folder, free loopback port, Unix socket in the same
/// folder, SCRAM for everybody, fsync off. Runs as `postgres` when we are root. Ends with the object. One thread.
class PostgresServer {
 public:
  struct Options {
    std::vector<std::string> conf;  ///< lines appended to postgresql.conf
    bool own_identity = false;  ///< initdb of its own; else a copy of this process's template (same system identifier)
    const PostgresServer* standby_of = nullptr;  ///< a streaming standby of this one, made by pg_basebackup
    /// `12.22.0`: by tests/servers/postgres/fetch.sh, of an identity of its own; empty: Debian's
    std::string version = {};
  };
  using Rows = std::vector<std::vector<std::optional<std::string>>>;

  PostgresServer() : PostgresServer(Options{}) {}
  explicit PostgresServer(const Options& options);  ///< started and accepting, or throws
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  std::string host() const { return "127.0.0.1"; }
  int port() const { return port_; }
  std::string endpoint() const { return host() + ":" + std::to_string(port_); }
  std::string socket_folder() const { return (dir_.path() / "pg").string(); }
  std::string socket_file() const { return socket_folder() + "/.s.PGSQL." + std::to_string(port_); }
  std::string data_folder() const { return socket_folder() + "/data"; }
  std::string log() const { return read_file(dir_.file("server.log")); }
  std::string user() const { return "postgres"; }  ///< the superuser
  std::string password() const { return "superuser-of-the-test"; }
  pid_t pid() const { return child_.pid(); }

  void start();
  void stop();  ///< fast shutdown, waits for the end
  void kill();  ///< SIGKILL to the postmaster, as a crash
  void restart();
  void signal(int number) const { child_.signal(number); }

  /// Runs statements as superuser over the socket; rows of the last one. Throws with the server's message.
  Rows sql(const std::string& text, const std::string& database = "postgres") const;
  Rows sql_as(const std::string& user, const std::string& password, const std::string& text,
              const std::string& database = "postgres") const;
  /// First column of the first row of sql(); empty for NULL or no row.
  std::string value(const std::string& text, const std::string& database = "postgres") const;

 private:
  void write_conf(const std::vector<std::string>& extra) const;

  TempDir dir_;
  std::string bin_;  ///< folder of its programs
  int port_ = 0;
  Child child_;
};

}  // namespace driftd::test
