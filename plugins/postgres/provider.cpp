// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/apply_steps.hpp"
#include "common/identity_guard.hpp"
#include "common/missed_changes.hpp"
#include "common/plain_transport.hpp"
#include "driftd_schema_json.hpp"
#include "postgres/apply.hpp"
#include "postgres/catalog.hpp"
#include "postgres/guc_types.hpp"
#include "postgres/reader.hpp"
#include "postgres/watch.hpp"

namespace driftd::postgres {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kHealth{900};

/// Kinds that may change without a transaction, and back. Two others may change so: `setting`, whose cursor has the
/// times of the last reload and of the start, and `instance`, which can miss that a standby lost its upstream and got
/// it back during a refresh, until the next full one.
constexpr std::array<std::string_view, 4> kOutsideTransactions{"file_setting", "hba", "ident", "slot"};

std::size_t digest_of(const Listing& listing) {
  std::size_t out = 0;
  for (const auto& record : listing.records)
    out = out * 31 + std::hash<std::string>()(record.kind + "/" + record.id + record.body);
  return out;
}

/// One PostgreSQL server. Any number of calls at once: each borrows a connection; one idle connection is kept for reads
/// and one for health, so a blocked refresh never delays a health report.
class Server final : public sdk::Instance {
 public:
  explicit Server(Settings settings) : settings_(std::move(settings)) {}
  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override;
  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override;
  sdk::Health health(sdk::Call& call) override;
  std::vector<sdk::Verdict> diff(const sdk::Identity& id, std::span<const sdk::Change> changes) override;
  void watch(sdk::Call& call, const std::string&) override { watch_ddl(call, settings_); }
  sdk::Applied apply(sdk::Call& call, const sdk::Apply& request) override;

 private:
  enum class Use { reads, health };
  /// A borrowed connection that is returned if it is still usable.
  class Borrowed {
   public:
    Borrowed(Server& from, sdk::Call& call, Use use);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Client& operator*() { return *client_; }
    Client* operator->() { return client_.get(); }
    /// True if it was idle: a failure of it may only mean that the server closed it meanwhile.
    bool reused() const { return reused_; }

   private:
    Server& from_;
    Use use_;
    bool reused_ = false;
    std::unique_ptr<Client> client_;
  };

  sdk::RefreshResult refresh_with(sdk::Call& call, const sdk::Refresh& request, Client& client);
  bool emit_kind(sdk::Call& call, const Listing& listing, const std::string& kind);
  static void answer(sdk::Call& call, Reader& reader, const std::string& kind, std::set<std::string> left);
  static bool same_outside_transactions(Reader& now, const std::map<std::string, std::size_t>& listed);
  bool listed_twice(const std::string& cursor, std::size_t digest);
  void note_guc_types(Reader& reader);
  sdk::Health probe(sdk::Call& call);
  static std::string identity_of(sdk::Call& call, Client& client);
  /// Runs `work(client)`, and once more on a new connection if an idle one turned out to be dead before anything was
  /// emitted.
  template <class Work>
  auto with_client(sdk::Call& call, Use use, Work work);

  const Settings settings_;
  common::MissedChanges missed_changes_;
  common::AppliedRequests applied_;  ///< only used by apply, which is never called twice at once
  DatabaseSchedule schedule_;
  common::IdentityGuard identity_{"another system answers at this endpoint (system_identifier"};
  std::mutex mutex_;
  std::map<Use, std::unique_ptr<Client>> idle_;
  std::pair<std::string, std::size_t> listed_;  ///< by the last refresh that could not be sure of it
  std::shared_ptr<const GucTypes> guc_types_;   ///< as last read; null before that
};

Server::Borrowed::Borrowed(Server& from, sdk::Call& call, Use use) : from_(from), use_(use) {
  {
    const std::lock_guard lock(from_.mutex_);
    client_ = std::move(from_.idle_[use]);
  }
  reused_ = client_ != nullptr;
  if (reused_) return;
  const bool health = use == Use::health;
  const milliseconds share = kHealth / static_cast<int>(from_.settings_.endpoints.size());
  client_ = connect(call, from_.settings_, health ? std::min(share, from_.settings_.connect) : from_.settings_.connect,
                    health ? kHealth : from_.settings_.statement);
}

Server::Borrowed::~Borrowed() {
  if (!client_ || !client_->usable()) return;
  const std::lock_guard lock(from_.mutex_);
  from_.idle_[use_] = std::move(client_);
}

template <class Work>
auto Server::with_client(sdk::Call& call, Use use, Work work) {
  {
    Borrowed first(*this, call, use);
    if (!first.reused()) return work(*first);
    try {
      first->query(call, "SELECT 1");
      return work(*first);
    } catch (const sdk::Failure& e) {
      if (e.code != DRIFTD_UNAVAILABLE || first->usable()) throw;
      call.log(DRIFTD_LOG_DEBUG, "an idle connection was closed, connecting again", {{"why", e.what()}});
    }
  }
  Borrowed fresh(*this, call, use);
  return work(*fresh);
}

sdk::RefreshResult Server::refresh(sdk::Call& call, const sdk::Refresh& request) {
  return with_client(call, Use::reads, [&](Client& client) { return refresh_with(call, request, client); });
}

sdk::RefreshResult Server::refresh_with(sdk::Call& call, const sdk::Refresh& request, Client& client) {
  std::vector<std::string> kinds;
  for (const auto kind : kKinds) {
    if (request.wants(kind) && settings_.scope.wants_kind(kind)) kinds.emplace_back(kind);
  }
  // The contents of databases are read last, because others may make them slow.
  std::stable_partition(kinds.begin(), kinds.end(), [](const auto& kind) { return !is_database_kind(kind); });
  Reader reader(call, client, settings_, kinds, schedule_);
  const std::string cursor = reader.cursor();
  identity_.check(reader.system(), system_of(request.cursor));
  if (!request.full && !cursor.empty() && cursor == request.cursor) return {true, 0};
  note_guc_types(reader);
  std::size_t digest = 0;
  std::map<std::string, std::size_t> listed;  // digest of each kind that changes without a transaction
  for (const auto& kind : kinds) {
    const Listing listing = reader.list(kind);
    const std::size_t of_kind = digest_of(listing);
    if (std::find(kOutsideTransactions.begin(), kOutsideTransactions.end(), kind) != kOutsideTransactions.end())
      listed[kind] = of_kind;
    digest = digest * 31 + of_kind;
    if (!emit_kind(call, listing, kind)) return {};
  }
  // The cursor hashes values. A cursor from before the rows were read would match again once a change that they show is
  // undone.
  bool stood = false;
  if (!cursor.empty()) {
    Reader after(call, client, settings_, kinds, schedule_);
    stood = after.cursor() == cursor && same_outside_transactions(after, listed) &&
            (after.snapshot() == reader.snapshot() || listed_twice(cursor, digest));
  }
  if (stood && request.kinds.empty() && missed_changes_.detect(cursor, digest)) {
    call.log(DRIFTD_LOG_WARN, "a full sweep found a change that the hashes of the catalogue had not shown");
  }
  call.metric("cursor_missed", missed_changes_.count());
  call.checkpoint(stood ? cursor : std::string());
  return {};
}

/// A change that ends no transaction, such as an edit of a file, may have come and gone between two equal cursors, with
/// the rows read in between. Then the rows are others now.
bool Server::same_outside_transactions(Reader& now, const std::map<std::string, std::size_t>& listed) {
  return std::all_of(listed.begin(), listed.end(),
                     [&](const auto& each) { return digest_of(now.list(each.first)) == each.second; });
}

/// If transactions ended meanwhile, a change may have come and gone between two equal cursors, with the rows read in
/// between. The list is trusted once a second one is equal.
bool Server::listed_twice(const std::string& cursor, std::size_t digest) {
  const std::lock_guard lock(mutex_);
  const std::pair now(cursor, digest);
  return now == std::exchange(listed_, now);
}

bool Server::emit_kind(sdk::Call& call, const Listing& listing, const std::string& kind) {
  std::uint64_t count = 0;
  for (const auto& record : listing.records) {
    if (!settings_.scope.wants(kind, record.id)) continue;
    if (!call.emit(record)) return false;
    ++count;
  }
  for (const auto& failure : listing.missing) {
    call.diag({failure.code, kind, {}, {}, failure.what(), failure.right, 0});
  }
  return !listing.missing.empty() || call.complete(kind, count);
}

void Server::read(sdk::Call& call, std::span<const sdk::Identity> ids) {
  std::map<std::string, std::set<std::string>> by_kind;
  std::vector<std::string> kinds;
  for (const auto& id : ids) {
    if (std::find(kKinds.begin(), kKinds.end(), id.kind) == kKinds.end()) {
      throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + id.kind, id.kind);
    }
    if (by_kind[id.kind].empty()) kinds.push_back(id.kind);
    by_kind[id.kind].insert(id.id);
  }
  with_client(call, Use::reads, [&](Client& client) {
    Reader reader(call, client, settings_, kinds, schedule_);
    identity_.check(reader.system());
    note_guc_types(reader);
    for (const auto& [kind, wanted] : by_kind) answer(call, reader, kind, wanted);
  });
}

sdk::Applied Server::apply(sdk::Call& call, const sdk::Apply& request) {
  const std::string& kind = request.id.kind;
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
    throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + kind, kind);
  const auto done = request.dry_run ? std::nullopt : applied_.find(request);
  if (done && done->outcome == DRIFTD_APPLY_SUCCESS) return *done;
  return with_client(call, Use::reads, [&](Client& client) {
    Reader reader(call, client, settings_, {kind}, schedule_);
    identity_.check(reader.system());
    sdk::Applied out =
        done ? settled(reader, request).value_or(*done) : postgres::apply(call, client, reader, settings_, request);
    if (!request.dry_run && out.outcome != DRIFTD_APPLY_FAILED) applied_.remember(request, out);
    return out;
  });
}

/// Reads how the server reads settings, before the host is given any: it asks diff() about them at once.
void Server::note_guc_types(Reader& reader) {
  auto types = reader.guc_types();
  if (!types) return;
  const std::lock_guard lock(mutex_);
  guc_types_ = std::make_shared<const GucTypes>(*std::move(types));
}

std::vector<sdk::Verdict> Server::diff(const sdk::Identity& id, std::span<const sdk::Change> changes) {
  std::shared_ptr<const GucTypes> types;
  {
    const std::lock_guard lock(mutex_);
    types = guc_types_;
  }
  std::vector<sdk::Verdict> out;
  for (const auto& change : changes) {
    const std::string name = guc_of_attribute(id.kind, id.id, change.path);
    if (name.empty()) continue;
    const auto before = nlohmann::json::parse(change.old_value, nullptr, false);
    const auto after = nlohmann::json::parse(change.new_value, nullptr, false);
    if (!before.is_string() || !after.is_string()) continue;  // added, removed, or a digest
    if (!types) {                                             // the worker that listed them has ended since
      out.push_back({change.index, DRIFTD_VERDICT_UNSETTLED, "how the server reads its settings is not known yet"});
      continue;
    }
    if (!types->same(name, before.get<std::string>(), after.get<std::string>())) continue;
    out.push_back({change.index, DRIFTD_VERDICT_EQUIVALENT, "both texts mean the same value of " + name});
  }
  return out;
}

void Server::answer(sdk::Call& call, Reader& reader, const std::string& kind, std::set<std::string> left) {
  const Listing listing = reader.list(kind);
  for (const auto& record : listing.records) {
    if (left.erase(record.id) > 0) call.emit(record);
  }
  if (left.empty()) return;
  if (listing.missing.empty()) {
    for (const auto& id : left) {
      const std::string unseen_reason = reader.unseen_reason(kind, id);
      if (unseen_reason.empty())
        not_found(call, {kind, id});
      else
        call.diag({DRIFTD_UNAVAILABLE, kind, id, {}, unseen_reason, {}, 0});
    }
    return;
  }
  const sdk::Failure& why = listing.missing.front();  // not seen is not gone
  for (const auto& id : left) {
    call.diag({why.code, kind, id, {}, std::string("not visible: ") + why.what(), why.right, 0});
  }
  throw sdk::Failure(why.code, kind + " cannot be seen whole", kind, why.right);
}

std::string Server::identity_of(sdk::Call& call, Client& client) {
  const Rows rows = client.query(call, identity_query());
  return Fields(rows, 0).text("identity");
}

sdk::Health Server::probe(sdk::Call& call) {
  return with_client(call, Use::health, [&](Client& client) {
    const std::int64_t before = call.now_ns();
    const Rows rows = client.query(call, health_query());
    const Fields row(rows, 0);
    sdk::Health out;
    out.latency_us = (call.now_ns() - before) / 1000;
    out.role = row.text("role");
    if (row.flag("identity"))
      out.system_identity = identity_of(call, client);
    else
      out.reason = "the right EXECUTE on pg_control_system() is missing, so another server is not noticed";
    identity_.on_health(out.system_identity);
    out.server_version = row.text("version");
    return out;
  });
}

sdk::Health Server::health(sdk::Call& call) {
  try {
    return probe(call);
  } catch (const sdk::Failure& e) {
    if (e.code == DRIFTD_CANCELLED || e.code == DRIFTD_INTERNAL) throw;
    sdk::Health out;
    out.state = DRIFTD_HEALTH_DOWN;
    out.reason = e.what();
    return out;
  }
}

std::unique_ptr<sdk::Instance> open(sdk::Call& call, std::string_view, std::string_view text) {
  Settings settings = parse_settings(text);
  const bool may_be_plain =
      settings.sslmode == "disable" || settings.sslmode == "allow" || settings.sslmode == "prefer";
  for (const auto& endpoint : settings.endpoints) {
    if (!may_be_plain || common::is_local_host(endpoint.host)) continue;
    common::warn_of_plain_transport(call, "with sslmode " + settings.sslmode + " the login and all that is read may",
                                    endpoint.text(), "set settings.sslmode: verify-full");
    break;
  }
  return std::make_unique<Server>(std::move(settings));
}

sdk::Plugin make_plugin() {
  const auto documents = nlohmann::json::parse(driftd_schema_json);
  sdk::Plugin out;
  out.describe =
      nlohmann::json{
          {"id", "postgres"},
          {"version", "0.3.0"},
          {"types", {"postgres", "postgresql"}},
          {"kinds", kKinds},
          {"extensions", {{{"id", "driftd.watch"}, {"revision", 1}}, {{"id", "driftd.apply"}, {"revision", 1}}}},
          {"concurrency", 4},
          {"diff", true},
          {"metrics", {{{"name", "cursor_missed"}, {"unit", "sweeps"}}}},
          {"free_form", documents.at("free_form")}}
          .dump();
  out.schemas["settings"] = documents.at("settings").dump();
  for (const auto& [kind, document] : documents.at("kinds").items()) out.schemas[kind] = document.dump();
  out.has_watch = out.has_diff = out.has_apply = true;
  out.open = &open;
  return out;
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin made = make_plugin();
  return made;
}

}  // namespace
}  // namespace driftd::postgres

DRIFTD_PROVIDER(driftd::postgres::plugin)
