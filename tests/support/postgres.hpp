// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace driftd::test {

/// A real PostgreSQL cluster with its data and its Unix socket in a temporary folder, on a free loopback port, with
/// SCRAM for everybody and without fsync. It runs as `postgres` if the test runs as root. It ends with the object. One
/// thread.
class PostgresServer {
 public:
  struct Options {
    std::vector<std::string> conf;  ///< lines appended to postgresql.conf
    /// Makes the cluster by an initdb of its own. Otherwise it is a copy of this process's template cluster, and all
    /// copies have the same system identifier.
    bool own_identity = false;
    /// Makes a streaming standby of that server by pg_basebackup.
    const PostgresServer* standby_of = nullptr;
    /// A version like `12.22.0` from tests/servers/postgres/fetch.sh, with an identity of its own. Empty: Debian's.
    std::string version = {};
  };
  using Rows = std::vector<std::vector<std::optional<std::string>>>;

  PostgresServer() : PostgresServer(Options{}) {}
  explicit PostgresServer(const Options& options);  ///< returns when it accepts connections; throws if it does not
                                                    ///< start
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
  void stop();  ///< makes a fast shutdown and waits for its end
  void kill();  ///< sends SIGKILL to the postmaster, like a crash
  void restart();
  void signal(int number) const { child_.signal(number); }

  /// Runs statements as the superuser over the Unix socket and returns the rows of the last one. Throws with the
  /// server's message if one fails.
  Rows sql(const std::string& text, const std::string& database = "postgres") const;
  Rows sql_as(const std::string& user, const std::string& password, const std::string& text,
              const std::string& database = "postgres") const;
  /// Returns the first column of the first row of sql(). Empty if it is NULL or there is no row.
  std::string value(const std::string& text, const std::string& database = "postgres") const;

 private:
  void write_conf(const std::vector<std::string>& extra) const;

  TempDir dir_;
  std::string bin_;  ///< the folder of its programs
  int port_ = 0;
  Child child_;
};

}  // namespace driftd::test
