// SPDX-License-Identifier: Apache-2.0
#include "support/postgres.hpp"

#include <libpq-fe.h>
#include <pwd.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

/// Returns the newest folder of programs from Debian's packages, for example /usr/lib/postgresql/15/bin.
std::string bin_of_debian() {
  static const fs::path bin = [] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql")) found.push_back(entry.path() / "bin");
    if (found.empty()) throw std::runtime_error("no PostgreSQL in /usr/lib/postgresql: apt install postgresql");
    return *std::max_element(found.begin(), found.end());
  }();
  return bin.string();
}
std::string program(const std::string& name) { return bin_of_debian() + "/" + name; }

/// Returns the folder of programs of another version, which the setup test has fetched. PostgreSQL does not run as
/// root, and its user may not enter root's cache folder. So a test that runs as root makes a copy for its process.
std::string bin_of(const std::string& version) {
  if (version.empty()) return bin_of_debian();
  const Output out =
      run({std::string(DRIFTD_SOURCE_DIR) + "/tests/servers/postgres/fetch.sh", version}, {}, std::chrono::minutes(10));
  if (out.code != 0) throw std::runtime_error("fetch.sh " + version + ":\n" + out.err);
  const std::string kept = out.out.substr(0, out.out.find('\n'));
  if (::getuid() != 0) return kept + "/bin";
  static const TempDir copies;
  const fs::path copy = copies.path() / version;
  if (!fs::exists(copy)) {
    fs::permissions(copies.path(), fs::perms::owner_all | fs::perms::others_exec | fs::perms::group_exec);
    const bool linked = run({"cp", "-al", kept, copy.string()}).code == 0;  // hard links fail onto another disk
    if (!linked && run({"cp", "-a", "--remove-destination", kept + "/.", copy.string()}).code != 0) {
      throw std::runtime_error("cp " + kept);
    }
  }
  return (copy / "bin").string();
}

/// Makes `folder`, owned by the user that the server will run as.
void make_folder(const fs::path& folder) {
  fs::create_directories(folder);
  if (::getuid() != 0) return;
  const passwd* entry = ::getpwnam("postgres");
  if (entry == nullptr) throw std::runtime_error("no user postgres: apt install postgresql");
  if (::chown(folder.c_str(), entry->pw_uid, entry->pw_gid) != 0) throw std::runtime_error("chown " + folder.string());
}

void must_run(const std::vector<std::string>& command, const std::string& log,
              const std::map<std::string, std::string>& env = {}) {
  Child child(command, {log, env, "postgres"});
  if (const int code = child.wait(seconds(60)); code != 0) {
    throw std::runtime_error(command[0] + " ended with " + std::to_string(code) + ":\n" + read_file(log));
  }
}

void initdb(const std::string& bin, const fs::path& data, const fs::path& folder, const std::string& password) {
  const fs::path secret = folder / "password";
  std::ofstream(secret) << password << "\n";
  fs::permissions(secret, fs::perms::owner_read | fs::perms::others_read);
  must_run({bin + "/initdb", "-D", data.string(), "-U", "postgres", "-A", "scram-sha-256", "--pwfile", secret.string(),
            "-E", "UTF8", "--no-locale", "-N"},
           (folder / "initdb.log").string());
  fs::remove(secret);
}

/// Returns the folder of a cluster that is initialised once in this process and copied for each server.
const fs::path& template_cluster(const std::string& password) {
  static const TempDir dir;
  static const fs::path data = [&] {
    make_folder(dir.path() / "template");
    initdb(bin_of_debian(), dir.path() / "template" / "data", dir.path() / "template", password);
    return dir.path() / "template" / "data";
  }();
  return data;
}

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

Connection connect(const PostgresServer& server, const std::string& user, const std::string& password,
                   const std::string& database) {
  const std::string host = server.socket_folder();
  const std::string port = std::to_string(server.port());
  const char* keys[] = {"host", "port", "user", "password", "dbname", "connect_timeout", "gssencmode", nullptr};
  const char* values[] = {host.c_str(),     port.c_str(), user.c_str(), password.c_str(),
                          database.c_str(), "5",          "disable",    nullptr};
  return {PQconnectdbParams(keys, values, 0), &PQfinish};
}

}  // namespace

PostgresServer::PostgresServer(const Options& options) : bin_(bin_of(options.version)), port_(free_port()) {
  make_folder(socket_folder());
  if (options.standby_of != nullptr) {
    const PostgresServer& primary = *options.standby_of;
    must_run({program("pg_basebackup"), "-h", primary.host(), "-p", std::to_string(primary.port()), "-U",
              primary.user(), "-D", data_folder(), "-R", "-X", "stream", "-c", "fast", "--no-sync"},
             dir_.file("pg_basebackup.log"), {{"PGPASSWORD", primary.password()}});
  } else if (options.own_identity || !options.version.empty()) {
    initdb(bin_, data_folder(), socket_folder(), password());
  } else {
    must_run({"cp", "-a", "--reflink=auto", template_cluster(password()).string(), data_folder()}, dir_.file("cp.log"));
  }
  write_conf(options.conf);
  start();
}

PostgresServer::~PostgresServer() {
  if (child_.running()) child_.signal(SIGQUIT);  // ends its children too
  child_.wait(seconds(5));
}

void PostgresServer::write_conf(const std::vector<std::string>& extra) const {
  std::ofstream out(data_folder() + "/postgresql.conf", std::ios::app);
  out << "\nlisten_addresses = '127.0.0.1'\nport = " << port_ << "\nunix_socket_directories = '" << socket_folder()
      << "'\nfsync = off\nfull_page_writes = off\nsynchronous_commit = off\nshared_buffers = 16MB\n"
      << "max_connections = 40\nautovacuum = off\n";
  for (const auto& line : extra) out << line << "\n";
}

void PostgresServer::start() {
  child_ = Child({bin_ + "/postgres", "-D", data_folder()}, {dir_.file("server.log"), {}, "postgres"});
  const bool up = eventually([this] {
    if (!child_.running()) throw std::runtime_error("postgres ended:\n" + read_file(dir_.file("server.log")));
    return PQstatus(connect(*this, user(), password(), "postgres").get()) == CONNECTION_OK;
  });
  if (!up) throw std::runtime_error("postgres accepts no connection:\n" + read_file(dir_.file("server.log")));
}

void PostgresServer::stop() {
  child_.signal(SIGINT);
  if (child_.wait(seconds(20)) < 0) child_.kill();
}

void PostgresServer::kill() {
  child_.signal(SIGKILL);
  child_.wait(seconds(10));
}

void PostgresServer::restart() {
  stop();
  start();
}

PostgresServer::Rows PostgresServer::sql(const std::string& text, const std::string& database) const {
  return sql_as(user(), password(), text, database);
}

PostgresServer::Rows PostgresServer::sql_as(const std::string& user, const std::string& password,
                                            const std::string& text, const std::string& database) const {
  const Connection connection = connect(*this, user, password, database);
  if (PQstatus(connection.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection.get()));
  const Answer answer(PQexec(connection.get(), text.c_str()), &PQclear);
  const ExecStatusType status = PQresultStatus(answer.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw std::runtime_error(PQerrorMessage(connection.get()));
  Rows rows;
  for (int r = 0; r < PQntuples(answer.get()); ++r) {
    auto& row = rows.emplace_back();
    for (int c = 0; c < PQnfields(answer.get()); ++c) {
      if (PQgetisnull(answer.get(), r, c) != 0)
        row.emplace_back();
      else
        row.emplace_back(PQgetvalue(answer.get(), r, c));
    }
  }
  return rows;
}

std::string PostgresServer::value(const std::string& text, const std::string& database) const {
  const Rows rows = sql(text, database);
  return rows.empty() || rows[0].empty() ? std::string() : rows[0][0].value_or("");
}

}  // namespace driftd::test
