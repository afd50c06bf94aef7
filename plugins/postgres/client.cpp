// SPDX-License-Identifier: Apache-2.0
#include "postgres/client.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>

#include "common/utf8_text.hpp"

namespace driftd::postgres {
namespace {

using std::chrono::milliseconds;
using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

constexpr milliseconds kSlice{200};  // how often a call without a cancel descriptor looks at cancelled()
constexpr int kOldest = 120000;
// Before, statement_timeout was counted over a whole message, with the value that was set when it came.
constexpr int kTimesEachStatement = 130000;

// At the head of every message: what a database's owner or a role put before pg_catalog would run as us, and what runs
// could write. It lasts for the message's own transaction, so that a pooler may hand each message to another session,
// and it is no startup option, which poolers refuse and which would hide the server's own search_path from pg_settings.
constexpr const char* kPinned = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL transaction_read_only = on; ";
// SQL_ASCII is no encoding: any byte stands in names there, and the server would refuse to send what is not UTF-8.
constexpr const char* kPinnedBytes =
    "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL transaction_read_only = on; SET LOCAL client_encoding = "
    "'SQL_ASCII'; ";

constexpr milliseconds kMaxOfLock{1000};

std::int64_t monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// Waits on a socket until its own limit, the call's deadline or cancellation.
class Waiter {
 public:
  Waiter(sdk::Call& call, milliseconds timeout, driftd_status late, std::string doing)
      : call_(call),
        until_(monotonic_ns() + std::chrono::nanoseconds(timeout).count()),
        late_(late),
        doing_(std::move(doing)),
        timeout_(timeout) {}

  void wait(int fd, short events) {
    for (;;) {
      if (call_.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "cancelled while " + doing_);
      const std::int64_t now = monotonic_ns();
      if (call_.deadline_ns() > 0 && now >= call_.deadline_ns()) {
        throw sdk::Failure(DRIFTD_DEADLINE, "the call's deadline passed while " + doing_);
      }
      if (now >= until_) {
        throw sdk::Failure(late_, doing_ + ": no answer within " + std::to_string(timeout_.count()) + " ms");
      }
      pollfd fds[2] = {{fd, events, 0}, {call_.cancel_fd(), POLLIN, 0}};
      const int ready = ::poll(fds, 2, slice(now));
      if (ready > 0 && fds[0].revents != 0) return;
      if (ready < 0 && errno != EINTR)
        throw sdk::Failure(DRIFTD_INTERNAL, std::string("poll: ") + std::strerror(errno));
    }
  }

 private:
  int slice(std::int64_t now) const {
    std::int64_t left = until_ - now;
    if (call_.deadline_ns() > 0) left = std::min(left, call_.deadline_ns() - now);
    return static_cast<int>(std::min<std::int64_t>(left / 1'000'000 + 1, kSlice.count()));
  }

  sdk::Call& call_;
  std::int64_t until_;
  driftd_status late_;
  std::string doing_;
  milliseconds timeout_;
};

/// Asks the server to stop the statement. libpq's cancel blocks on a dead server, so it runs on a thread of its own and
/// gets half a second; the thread owns what it uses and never calls the host.
void cancel_statement(PGconn* connection) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
  };
  PGcancel* handle = PQgetCancel(connection);
  if (handle == nullptr) return;
  auto shared = std::make_shared<Shared>();
  std::thread([shared, handle] {
    char error[256];
    PQcancel(handle, error, sizeof error);
    PQfreeCancel(handle);
    const std::lock_guard lock(shared->mutex);
    shared->done = true;
    shared->ended.notify_all();
  }).detach();
  std::unique_lock lock(shared->mutex);
  shared->ended.wait_for(lock, milliseconds(500), [&] { return shared->done; });
}

/// The server's message on one line, without the source location that verbose errors carry.
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
    const bool plain = state.size() == 5 && std::all_of(state.begin(), state.end(), [](char c) {
                         return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
                       });
    if (plain && message.substr(at + 8, 1) == ":") return state;
  }
  return {};
}

sdk::Failure connect_failure(PGconn* connection, const Settings& settings, const std::string& where) {
  const std::string text = one_line(PQerrorMessage(connection));
  const std::string state = state_of(text);
  const std::string what = where + ": " + text;
  if (state.starts_with("28") || PQconnectionNeedsPassword(connection) != 0) {
    return {DRIFTD_UNAUTHENTICATED, what + ". Check settings.user, settings.password and pg_hba.conf"};
  }
  if (state == "42501") {
    return {DRIFTD_DENIED, what, {}, "CONNECT ON DATABASE " + settings.database};
  }
  if (state == "3D000") return {DRIFTD_INVALID, what + ". Check settings.database"};
  return {DRIFTD_UNAVAILABLE, what};
}

driftd_status code_of(const std::string& state) {
  if (state == "42501") return DRIFTD_DENIED;
  // ended by the server itself
  if (state == "57014" || state == "55P03" || state.starts_with("54")) return DRIFTD_BUDGET;
  // a value that cannot be converted or sent
  if (state.starts_with("22") || state.starts_with("XX")) return DRIFTD_CORRUPT;
  if (state.empty() || state.starts_with("08") || state.starts_with("57") || state.starts_with("53")) {
    return DRIFTD_UNAVAILABLE;
  }
  return DRIFTD_INTERNAL;
}

class PgClient final : public Client {
 public:
  PgClient(Connection connection, std::string endpoint, milliseconds statement)
      : connection_(std::move(connection)),
        endpoint_(std::move(endpoint)),
        statement_(statement) {
    const char* encoding = PQparameterStatus(connection_.get(), "server_encoding");
    if (encoding != nullptr && std::string_view(encoding) == "SQL_ASCII") pinned_ = kPinnedBytes;
  }

  int version() const override { return PQserverVersion(connection_.get()); }
  std::string endpoint() const override { return endpoint_; }
  bool usable() const override { return usable_ && PQstatus(connection_.get()) == CONNECTION_OK; }

  Rows query(sdk::Call& call, const std::string& sql) override { return ask(call, pinned_ + sql); }
  Rows query_within(sdk::Call& call, const std::string& sql, milliseconds timeout) override {
    // so that the server ends it
    const auto ours = std::max(std::min(timeout, statement_ - statement_ / 10), milliseconds(1));
    const std::string limits = "SET LOCAL statement_timeout = " + std::to_string(ours.count()) +
                               "; SET LOCAL lock_timeout = " + std::to_string(std::min(ours, kMaxOfLock).count()) +
                               "; " + pinned_;
    return version() < kTimesEachStatement ? ask_apart(call, limits, sql) : ask(call, limits + sql);
  }

  /// Runs a message as it is, for PgWriter.
  Rows write(sdk::Call& call, const std::string& sql) { return ask(call, sql); }
  std::string quoted(const std::string& text, char* (*quote)(PGconn*, const char*, std::size_t)) {
    const std::unique_ptr<char, decltype(&PQfreemem)> out(quote(connection_.get(), text.data(), text.size()),
                                                          &PQfreemem);
    if (out == nullptr) throw sdk::Failure(DRIFTD_INVALID, one_line(PQerrorMessage(connection_.get())));
    return out.get();
  }

  bool notified(sdk::Call& call, milliseconds timeout) override {
    Waiter waiter(call, timeout, DRIFTD_THROTTLED, "waiting for a notification of " + endpoint_);
    try {
      while (true) {
        bool any = false;
        while (PGnotify* one = PQnotifies(connection_.get())) {
          any = true;
          PQfreemem(one);
        }
        if (any) return true;
        waiter.wait(PQsocket(connection_.get()), POLLIN);
        if (PQconsumeInput(connection_.get()) == 0) throw lost();
      }
    } catch (const sdk::Failure& e) {
      if (e.code == DRIFTD_THROTTLED) return false;  // only our own limit passed
      throw;
    }
  }

 private:
  Rows ask(sdk::Call& call, const std::string& message) {
    Waiter waiter(call, statement_, DRIFTD_DEADLINE, "waiting for " + endpoint_);
    usable_ = false;  // until the whole answer is here
    try {
      if (PQsendQuery(connection_.get(), message.c_str()) == 0) throw lost();
      send(waiter);
      Answer answer = receive(waiter);
      usable_ = true;
      return rows_of(answer.get());
    } catch (const sdk::Failure& e) {
      if (e.code == DRIFTD_CANCELLED || e.code == DRIFTD_DEADLINE) cancel_statement(connection_.get());
      throw;
    }
  }

  /// The statement in a message of its own, in one transaction with the limits, so that a pooler keeps both together.
  Rows ask_apart(sdk::Call& call, const std::string& limits, const std::string& sql) {
    try {
      ask(call, "BEGIN; " + limits);
      Rows out = ask(call, sql);
      ask(call, "COMMIT");
      return out;
    } catch (const sdk::Failure&) {
      if (usable()) ask(call, "ROLLBACK");
      throw;
    }
  }

  sdk::Failure lost() const {
    return {DRIFTD_UNAVAILABLE, endpoint_ + ": " + one_line(PQerrorMessage(connection_.get()))};
  }
  void send(Waiter& waiter) {
    for (int left = PQflush(connection_.get()); left != 0; left = PQflush(connection_.get())) {
      if (left < 0) throw lost();
      waiter.wait(PQsocket(connection_.get()), POLLIN | POLLOUT);
      if (PQconsumeInput(connection_.get()) == 0) throw lost();
    }
  }
  Answer receive(Waiter& waiter) {
    Answer last(nullptr, &PQclear);
    for (;;) {
      while (PQisBusy(connection_.get()) != 0) {
        waiter.wait(PQsocket(connection_.get()), POLLIN);
        if (PQconsumeInput(connection_.get()) == 0) throw lost();
      }
      Answer next(PQgetResult(connection_.get()), &PQclear);
      if (!next) return last;
      last = std::move(next);
    }
  }
  Rows rows_of(const PGresult* answer) {
    const ExecStatusType status = PQresultStatus(answer);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      const char* state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
      throw sdk::Failure(code_of(state == nullptr ? "" : state),
                         endpoint_ + ": " + one_line(PQresultErrorMessage(answer)));
    }
    Rows out;
    const int columns = PQnfields(answer);
    for (int c = 0; c < columns; ++c) out.columns.emplace_back(PQfname(answer, c));
    out.rows.resize(static_cast<std::size_t>(PQntuples(answer)));
    for (std::size_t r = 0; r < out.rows.size(); ++r) {
      for (int c = 0; c < columns; ++c) {
        const int row = static_cast<int>(r);
        auto& cell = out.rows[r].emplace_back();
        if (PQgetisnull(answer, row, c) != 0) continue;
        cell = common::utf8_text({PQgetvalue(answer, row, c), static_cast<std::size_t>(PQgetlength(answer, row, c))});
      }
    }
    return out;
  }

  Connection connection_;
  std::string endpoint_;
  milliseconds statement_;
  std::string pinned_ = kPinned;
  bool usable_ = true;
};

class PgWriter final : public Writer {
 public:
  PgWriter(sdk::Call& call, std::unique_ptr<PgClient> client) : client_(std::move(client)) {
    execute(call, "SET search_path = pg_catalog, pg_temp");
  }
  Rows execute(sdk::Call& call, const std::string& sql) override {
    try {
      return client_->write(call, sql);
    } catch (sdk::Failure& e) {  // an error that the server answered: the statement did not run
      if (e.code == DRIFTD_INTERNAL && client_->usable()) e.code = DRIFTD_CORRUPT;
      throw;
    }
  }
  std::string identifier(const std::string& name) override { return client_->quoted(name, &PQescapeIdentifier); }
  std::string literal(const std::string& text) override { return client_->quoted(text, &PQescapeLiteral); }

 private:
  std::unique_ptr<PgClient> client_;
};

Connection start(const Settings& settings, const Endpoint& endpoint, const std::string& password,
                 milliseconds timeout) {
  const std::string user_timeout = std::to_string(timeout.count());
  std::vector<const char*> keys, values;
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    keys.push_back(key);
    values.push_back(value.c_str());
  };
  static const std::string utf8 = "UTF8", name = "driftd", off = "disable", on = "1";
  add("host", endpoint.host);
  add("port", endpoint.port);
  add("dbname", settings.database);
  add("user", settings.user);
  add("password", password);
  add("sslmode", settings.sslmode);
  add("sslrootcert", settings.sslrootcert);
  add("sslcert", settings.sslcert);
  add("sslkey", settings.sslkey);
  add("target_session_attrs", settings.session_attrs);
  add("client_encoding", utf8);
  add("application_name", name);
  add("gssencmode", off);
  add("keepalives", on);
  add("tcp_user_timeout", user_timeout);
  keys.push_back(nullptr);
  values.push_back(nullptr);
  return {PQconnectStartParams(keys.data(), values.data(), 0), &PQfinish};
}

std::unique_ptr<PgClient> connect_one(sdk::Call& call, const Settings& settings, const Endpoint& endpoint,
                                      milliseconds timeout, milliseconds statement) {
  const std::string where = endpoint.text();
  std::string password = call.secret(settings.password_token);
  Connection connection = start(settings, endpoint, password, timeout);
  std::fill(password.begin(), password.end(), '\0');
  if (!connection) throw sdk::Failure(DRIFTD_INTERNAL, "libpq: out of memory");
  if (PQstatus(connection.get()) == CONNECTION_BAD) throw connect_failure(connection.get(), settings, where);
  PQsetErrorVerbosity(connection.get(), PQERRORS_VERBOSE);
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  Waiter waiter(call, timeout, DRIFTD_UNAVAILABLE, "connecting to " + where);
  auto next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK) {
    if (next == PGRES_POLLING_FAILED) throw connect_failure(connection.get(), settings, where);
    waiter.wait(PQsocket(connection.get()), next == PGRES_POLLING_READING ? POLLIN : POLLOUT);
    next = PQconnectPoll(connection.get());
  }
  PQsetnonblocking(connection.get(), 1);
  PQsetErrorVerbosity(connection.get(), PQERRORS_DEFAULT);
  if (PQserverVersion(connection.get()) < kOldest) {
    const char* version = PQparameterStatus(connection.get(), "server_version");
    throw sdk::Failure(DRIFTD_UNSUPPORTED, where + ": PostgreSQL " + (version == nullptr ? "?" : version) +
                                               " is too old, expected 12 or newer");
  }
  return std::make_unique<PgClient>(std::move(connection), where, statement);
}

}  // namespace

std::unique_ptr<Client> connect(sdk::Call& call, const Settings& settings, milliseconds timeout,
                                milliseconds statement) {
  for (std::size_t i = 0;; ++i) {
    try {
      return connect_one(call, settings, settings.endpoints[i], timeout, statement);
    } catch (const sdk::Failure& e) {
      const bool last = i + 1 == settings.endpoints.size();
      if (last || e.code == DRIFTD_CANCELLED || e.code == DRIFTD_DEADLINE) throw;
      call.log(DRIFTD_LOG_WARN, e.what(), {{"next", settings.endpoints[i + 1].text()}});
    }
  }
}

std::unique_ptr<Writer> connect_writer(sdk::Call& call, const Settings& settings, const std::string& endpoint) {
  for (const auto& one : settings.endpoints) {  // the server that was read, not the first that answers now
    if (one.text() != endpoint) continue;
    return std::make_unique<PgWriter>(call, connect_one(call, settings, one, settings.connect, settings.statement));
  }
  throw sdk::Failure(DRIFTD_INTERNAL, "no endpoint of the settings is " + endpoint);
}

}  // namespace driftd::postgres
