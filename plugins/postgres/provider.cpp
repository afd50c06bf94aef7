// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "driftd_schema_json.hpp"
#include "postgres/reader.hpp"

namespace driftd::postgres {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kHealth{900};

/// One PostgreSQL server. Any number of calls at once: each borrows a connection; one idle connection is kept for reads
/// and one for health, so a blocked refresh never delays a health report.
class Server final : public sdk::Instance {
 public:
  explicit Server(Settings settings) : settings_(std::move(settings)) {}
  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override;
  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override;
  sdk::Health health(sdk::Call& call) override;

 private:
  enum class Use { reads, health };
  /// A borrowed connection that goes back when it is still whole.
  class Borrowed {
   public:
    Borrowed(Server& from, sdk::Call& call, Use use);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Client& operator*() { return *client_; }
    Client* operator->() { return client_.get(); }
    /// True when it had been idle: a failure of it may only mean that the server closed it meanwhile.
    bool reused() const { return reused_; }

   private:
    Server& from_;
    Use use_;
    bool reused_ = false;
    std::unique_ptr<Client> client_;
  };

  sdk::RefreshResult refresh_with(sdk::Call& call, const sdk::Refresh& request, Client& client);
  bool emit_kind(sdk::Call& call, Reader& reader, const std::string& kind);
  void read_kind(sdk::Call& call, Reader& reader, const std::string& kind, const std::set<std::string>& ids);
  sdk::Health probe(sdk::Call& call);
  /// Runs `work(client)`; once more on a new connection when an idle one turned out to be dead before anything was told.
  template <class Work>
  auto with_client(sdk::Call& call, Use use, Work work);

  const Settings settings_;
  std::mutex mutex_;
  std::map<Use, std::unique_ptr<Client>> idle_;
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
  Reader reader(call, client, settings_);
  const std::string cursor = reader.cursor(kinds);  // before the rows: a change in between is seen again next time
  if (!request.full && !cursor.empty() && cursor == request.cursor) return {true, 0};
  for (const auto& kind : kinds) {
    if (!emit_kind(call, reader, kind)) return {};
  }
  call.checkpoint(cursor);
  return {};
}

bool Server::emit_kind(sdk::Call& call, Reader& reader, const std::string& kind) {
  Listing listing;
  try {
    listing = reader.list(kind);
  } catch (const sdk::Failure& e) {
    if (e.code != DRIFTD_DENIED) throw;
    call.diag({DRIFTD_DENIED, kind, {}, {}, e.what(), e.right.empty() ? e.what() : e.right, 0});
    return true;
  }
  std::uint64_t count = 0;
  for (const auto& record : listing.records) {
    if (!settings_.scope.wants(kind, record.id)) continue;
    if (!call.emit(record)) return false;
    ++count;
  }
  if (listing.missing.empty()) return call.complete(kind, count);
  call.diag({DRIFTD_DENIED, kind, {}, {},
             kind + " cannot be listed whole by role " + settings_.user + ": GRANT " + listing.missing + " TO " +
                 settings_.user,
             listing.missing, 0});
  return true;
}

void Server::read(sdk::Call& call, std::span<const sdk::Identity> ids) {
  std::map<std::string, std::set<std::string>> by_kind;
  for (const auto& id : ids) by_kind[id.kind].insert(id.id);
  with_client(call, Use::reads, [&](Client& client) {
    Reader reader(call, client, settings_);
    for (const auto& [kind, wanted] : by_kind) read_kind(call, reader, kind, wanted);
  });
}

void Server::read_kind(sdk::Call& call, Reader& reader, const std::string& kind, const std::set<std::string>& ids) {
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
    throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + kind, kind);
  }
  const Listing listing = reader.list(kind);
  std::set<std::string> left = ids;
  for (const auto& record : listing.records) {
    if (left.erase(record.id) > 0) call.emit(record);
  }
  if (left.empty()) return;
  if (listing.missing.empty()) {
    for (const auto& id : left) not_found(call, {kind, id});
    return;
  }
  for (const auto& id : left) {
    call.diag({DRIFTD_DENIED, kind, id, {}, "not visible without " + listing.missing, listing.missing, 0});
  }
  throw sdk::Failure(DRIFTD_DENIED, kind + " cannot be seen whole", kind, listing.missing);
}

sdk::Health Server::probe(sdk::Call& call) {
  return with_client(call, Use::health, [&](Client& client) {
    const std::int64_t before = call.now_ns();
    const Rows rows = client.query(call, health_query());
    const Fields row(rows, 0);
    sdk::Health out;
    out.latency_us = (call.now_ns() - before) / 1000;
    out.role = row.text("role");
    out.system_identity = row.text("identity");
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

std::unique_ptr<sdk::Instance> open(sdk::Call&, std::string_view, std::string_view settings) {
  return std::make_unique<Server>(parse_settings(settings));
}

sdk::Plugin make_plugin() {
  const auto documents = nlohmann::json::parse(driftd_schema_json);
  sdk::Plugin out;
  out.describe = nlohmann::json{{"id", "postgres"},
                                {"version", "0.1.0"},
                                {"types", {"postgres", "postgresql"}},
                                {"kinds", kKinds},
                                {"extensions", nlohmann::json::array()},
                                {"concurrency", 4},
                                {"metrics", nlohmann::json::array()}}
                     .dump();
  out.schemas["settings"] = documents.at("settings").dump();
  for (const auto& [kind, document] : documents.at("kinds").items()) out.schemas[kind] = document.dump();
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
