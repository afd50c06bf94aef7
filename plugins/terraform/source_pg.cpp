// SPDX-License-Identifier: Apache-2.0
// Terraform's pg backend: a table with one row for each workspace. It has no column that rises, so the server's md5
// over the text is the version.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "common/plain_transport.hpp"
#include "common/settings_reader.hpp"
#include "terraform/pg_session.hpp"
#include "terraform/source.hpp"

namespace driftd::terraform {
namespace {

constexpr std::uint64_t kPiece = 4u << 20;  // characters of the state that one query brings

std::string quoted(const std::string& identifier) {
  std::string out = "\"";
  for (const char c : identifier) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

class PgSource final : public Source {
 public:
  PgSource(const Settings& settings, common::SettingsReader& from)
      : conn_token_(from.required_text("conn_str", "postgres://user:password@host/database")),
        table_(quoted(from.text("schema_name", "terraform_remote_state")) + "." +
               quoted(from.text("table_name", "states"))),
        workspace_(settings.workspace),
        files_(files_of(from)),
        connect_(settings.connect),
        call_(settings.call) {}

  Fetched fetch(sdk::Call& call, const std::string& known) override {
    auto session = take();
    const bool reused = session != nullptr;
    if (!reused) session = std::make_unique<PgSession>(open(call, connect_));
    Fetched out;
    out.sent_ns = call.now_ns();
    std::uint64_t characters = 0;
    try {
      out.stamp = stamp(call, *session, characters);
    } catch (const sdk::Failure& failure) {
      if (!reused || failure.code != DRIFTD_UNAVAILABLE) throw;  // a server that restarted meanwhile is no failure
      session = std::make_unique<PgSession>(open(call, connect_));
      out.stamp = stamp(call, *session, characters);
    }
    out.unchanged = out.stamp == known;
    if (!out.unchanged) read(call, *session, characters, out);
    const std::lock_guard lock(mutex_);
    idle_ = std::move(session);
    return out;
  }

  Probe probe(sdk::Call& call) override {
    constexpr std::chrono::milliseconds kSoon{900};
    PgSession session = open(call, std::min(connect_, kSoon));
    const auto row = ask(call, session, "substr(data, 1, 4096)", kSoon);
    return {PQgetvalue(row.get(), 0, 0)};
  }

 private:
  static PgFiles files_of(common::SettingsReader& from) {
    PgFiles out;
    for (const auto& [setting, ours] :
         {std::pair("ca_file", "sslrootcert"), {"cert_file", "sslcert"}, {"key_file", "sslkey"}}) {
      if (const std::string path = from.text(setting); !path.empty()) out[ours] = path;
    }
    return out;
  }
  PgSession open(sdk::Call& call, std::chrono::milliseconds timeout) const {
    std::string conn_str = call.secret(conn_token_);
    PgSession out(call, conn_str, files_, timeout);
    explicit_bzero(conn_str.data(), conn_str.size());
    if (out.in_clear() && !warned_.exchange(true)) {
      common::warn_of_plain_transport(call, "the login, the state and the secrets in it", out.where(),
                                      "set sslmode=verify-full in conn_str");
    }
    return out;
  }
  std::unique_ptr<PgSession> take() {
    const std::lock_guard lock(mutex_);
    return std::move(idle_);
  }

  /// Returns these columns of this workspace's row, or throws a Failure that says why there is none.
  PgAnswer ask(sdk::Call& call, PgSession& session, const std::string& columns,
               std::chrono::milliseconds timeout) const {
    try {
      PgAnswer out = session.query(
          call,
          "SELECT " + columns + " FROM " + table_ + " WHERE name::text = " + session.literal(workspace_) + "::text",
          timeout);
      if (PQntuples(out.get()) == 0) no_state(name(session));
      return out;
    } catch (const sdk::Failure& failure) {
      if (failure.code == DRIFTD_NOT_FOUND) no_state(std::string(failure.what()));
      if (failure.code == DRIFTD_DENIED) {
        throw sdk::Failure(DRIFTD_DENIED, failure.what(), {}, "USAGE ON SCHEMA and SELECT ON " + table_);
      }
      throw;
    }
  }
  std::string stamp(sdk::Call& call, PgSession& session, std::uint64_t& characters) const {
    const auto row = ask(call, session, "md5(data), length(data)", call_);
    characters = std::stoull("0" + std::string(PQgetvalue(row.get(), 0, 1)));
    if (characters == 0) no_state(name(session));
    return PQgetvalue(row.get(), 0, 0);
  }
  std::string name(const PgSession& session) const {
    return session.where() + ": " + table_ + ", workspace " + workspace_;
  }

  /// Reads piece by piece; each piece comes with the md5 of the whole, so that two versions are never mixed.
  void read(sdk::Call& call, PgSession& session, std::uint64_t characters, Fetched& out) const {
    for (std::uint64_t at = 1; at <= characters; at += kPiece) {
      const auto row = ask(
          call, session, "substr(data, " + std::to_string(at) + ", " + std::to_string(kPiece) + "), md5(data)", call_);
      if (out.stamp != PQgetvalue(row.get(), 0, 1)) {
        throw sdk::Failure(DRIFTD_UNAVAILABLE,
                           name(session) + ": changed while it was read; it is read again in the next cycle");
      }
      out.state.write({PQgetvalue(row.get(), 0, 0), static_cast<std::size_t>(PQgetlength(row.get(), 0, 0))});
    }
    out.state.finish();
  }

  const std::string conn_token_, table_, workspace_;
  const PgFiles files_;
  const std::chrono::milliseconds connect_, call_;
  std::mutex mutex_;
  std::unique_ptr<PgSession> idle_;
  mutable std::atomic<bool> warned_{false};
};

}  // namespace

std::unique_ptr<Source> open_pg(const Settings& settings) {
  common::SettingsReader from(settings.backend, "settings.backend");
  from.text("type");
  auto out = std::make_unique<PgSource>(settings, from);
  from.finish();
  return out;
}

}  // namespace driftd::terraform
