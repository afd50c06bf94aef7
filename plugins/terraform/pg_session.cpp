// SPDX-License-Identifier: Apache-2.0
#include "terraform/pg_session.hpp"

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "common/plain_transport.hpp"

namespace driftd::terraform {
namespace {

using std::chrono::milliseconds;

// Precedes every message and lasts for its own transaction: otherwise objects that somebody created before pg_catalog
// in the search path would run as us.
constexpr const char* kPinned = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL transaction_read_only = on; ";

std::int64_t monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::int64_t until(milliseconds timeout) { return monotonic_ns() + std::chrono::nanoseconds(timeout).count(); }

std::string one_line(std::string text) {
  text = text.substr(0, text.find("\nLOCATION:"));
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// SQLSTATE in a verbose error (`FATAL:  28P01: password …`): libpq hides it for failed connections. Empty: none.
std::string state_of(const std::string& message) {
  for (auto at = message.find(":  "); at != std::string::npos; at = message.find(":  ", at + 1)) {
    std::string state = message.substr(at + 3, 5);
    const bool plain = state.size() == 5 && std::all_of(state.begin(), state.end(), [](unsigned char c) {
                         return std::isdigit(c) != 0 || std::isupper(c) != 0;
                       });
    if (plain && message.substr(at + 8, 1) == ":") return state;
  }
  return {};
}

/// Returns the parameters of the connection, followed by ours; empty if conn_str cannot be parsed.
struct Parameters {
  std::vector<std::string> keys, values;
};
Parameters parse(const std::string& conn_str) {
  Parameters out;
  char* error = nullptr;  // it quotes the string, which holds a password
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(conn_str.c_str(), &error),
                                                                             &PQconninfoFree);
  if (error != nullptr) {
    explicit_bzero(error, std::strlen(error));
    PQfreemem(error);
  }
  for (auto* at = options.get(); at != nullptr && at->keyword != nullptr; ++at) {
    if (at->val == nullptr) continue;
    out.keys.emplace_back(at->keyword);
    out.values.emplace_back(at->val);
  }
  return out;
}

}  // namespace

PgSession::PgSession(sdk::Call& call, const std::string& conn_str, const PgFiles& files, milliseconds timeout)
    : connection_(nullptr, &PQfinish) {
  Parameters given = parse(conn_str);
  if (given.keys.empty()) {
    throw sdk::Failure(DRIFTD_INVALID,
                       "settings.backend.conn_str: expected postgres://user@host/database or key=value pairs");
  }
  const bool has_mode = std::find(given.keys.begin(), given.keys.end(), "sslmode") != given.keys.end();
  for (const auto& [key, file] : files) {
    given.keys.push_back(key);
    given.values.push_back(file);
  }
  if (!has_mode && files.contains("sslrootcert")) {
    given.keys.emplace_back("sslmode");
    given.values.emplace_back("verify-full");
  }
  for (const auto& [key, value] : {std::pair("application_name", "driftd"), std::pair("gssencmode", "disable"),
                                   std::pair("client_encoding", "UTF8")}) {
    given.keys.emplace_back(key);
    given.values.emplace_back(value);
  }
  std::vector<const char*> keys, values;
  for (std::size_t i = 0; i < given.keys.size(); ++i) {
    keys.push_back(given.keys[i].c_str());
    values.push_back(given.values[i].c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  connection_.reset(PQconnectStartParams(keys.data(), values.data(), 0));
  for (auto& value : given.values) explicit_bzero(value.data(), value.size());
  if (!connection_) throw sdk::Failure(DRIFTD_INTERNAL, "no memory for a connection");
  connect(call, timeout);
}

void PgSession::wait(sdk::Call& call, short events, std::int64_t until_ns, milliseconds timeout) const {
  for (;;) {
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "cancelled while waiting for " + where_);
    const std::int64_t now = monotonic_ns();
    const std::int64_t deadline = call.deadline_ns();
    if (deadline > 0 && now >= deadline)
      throw sdk::Failure(DRIFTD_DEADLINE, "the call's deadline passed while waiting for " + where_);
    if (now >= until_ns)
      throw sdk::Failure(DRIFTD_UNAVAILABLE, where_ + ": no answer within " + std::to_string(timeout.count()) + " ms");
    pollfd fds[2] = {{PQsocket(connection_.get()), events, 0}, {call.cancel_fd(), POLLIN, 0}};
    const int ready = ::poll(fds, 2, static_cast<int>(std::min<std::int64_t>((until_ns - now) / 1'000'000 + 1, 200)));
    if (ready > 0 && fds[0].revents != 0) return;
    if (ready < 0 && errno != EINTR) throw sdk::Failure(DRIFTD_INTERNAL, std::string("poll: ") + std::strerror(errno));
  }
}

void PgSession::connect(sdk::Call& call, milliseconds timeout) {
  PGconn* const connection = connection_.get();
  const std::int64_t end = until(timeout);
  for (PostgresPollingStatusType step = PGRES_POLLING_WRITING; step != PGRES_POLLING_OK;) {
    if (PQstatus(connection) == CONNECTION_BAD || step == PGRES_POLLING_FAILED) refuse_connection();
    const char* host = PQhost(connection);
    if (host != nullptr) where_ = "postgres at " + std::string(host) + ":" + PQport(connection);
    wait(call, step == PGRES_POLLING_READING ? POLLIN : POLLOUT, end, timeout);
    step = PQconnectPoll(connection);
  }
  PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
  PQsetnonblocking(connection, 1);
}

void PgSession::refuse_connection() const {
  const std::string text = one_line(PQerrorMessage(connection_.get()));
  const std::string state = state_of(text);
  const bool login = state.starts_with("28") || text.find("password authentication failed") != std::string::npos ||
                     text.find("no pg_hba.conf entry") != std::string::npos ||
                     text.find("is not permitted to log in") != std::string::npos ||
                     PQconnectionNeedsPassword(connection_.get()) != 0;
  if (login) throw sdk::Failure(DRIFTD_UNAUTHENTICATED, text + ". Check settings.backend.conn_str and pg_hba.conf");
  if (text.find("permission denied for database") != std::string::npos) {
    throw sdk::Failure(DRIFTD_DENIED, text, {}, "CONNECT ON DATABASE " + std::string(PQdb(connection_.get())));
  }
  const bool certificate = text.find("certificate") != std::string::npos;
  throw sdk::Failure(DRIFTD_UNAVAILABLE,
                     text + (certificate ? ". Check settings.backend.ca_file and the host of conn_str" : ""));
}

bool PgSession::in_clear() const {
  const char* host = PQhost(connection_.get());
  return PQsslInUse(connection_.get()) == 0 && host != nullptr && !common::is_local_host(host);
}

std::string PgSession::literal(const std::string& text) const {
  const std::unique_ptr<char, decltype(&PQfreemem)> out(PQescapeLiteral(connection_.get(), text.data(), text.size()),
                                                        &PQfreemem);
  if (!out) throw sdk::Failure(DRIFTD_INVALID, where_ + ": the name of the workspace is not UTF-8");
  return out.get();
}

PgAnswer PgSession::query(sdk::Call& call, const std::string& sql, milliseconds timeout) {
  PGconn* const connection = connection_.get();
  const auto lost = [&] {
    return sdk::Failure(DRIFTD_UNAVAILABLE, where_ + ": " + one_line(PQerrorMessage(connection)));
  };
  const std::int64_t end = until(timeout);
  if (PQsendQuery(connection, (kPinned + sql).c_str()) == 0) throw lost();
  for (int left = PQflush(connection); left != 0; left = PQflush(connection)) {
    if (left < 0) throw lost();
    wait(call, POLLOUT, end, timeout);
  }
  PgAnswer last(nullptr, &PQclear);
  for (;;) {
    while (PQisBusy(connection) != 0) {
      wait(call, POLLIN, end, timeout);
      if (PQconsumeInput(connection) == 0) throw lost();
    }
    PgAnswer next(PQgetResult(connection), &PQclear);
    if (!next) break;
    last = std::move(next);
  }
  const auto status = PQresultStatus(last.get());
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return last;
  const char* state_text = PQresultErrorField(last.get(), PG_DIAG_SQLSTATE);
  const std::string state = state_text == nullptr ? "" : state_text;
  const std::string text = where_ + ": " + one_line(PQresultErrorMessage(last.get()));
  if (state == "42501") throw sdk::Failure(DRIFTD_DENIED, text);
  if (state == "42P01" || state == "3F000") throw sdk::Failure(DRIFTD_NOT_FOUND, text);
  if (state == "57014") throw sdk::Failure(DRIFTD_DEADLINE, text);
  const bool gone = state.empty() || state.starts_with("08") || state.starts_with("57") || state.starts_with("53");
  throw sdk::Failure(gone ? DRIFTD_UNAVAILABLE : DRIFTD_INTERNAL, text);
}

}  // namespace driftd::terraform
