// SPDX-License-Identifier: Apache-2.0
#include "driftd/provider.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "common/identity_guard.hpp"
#include "common/plain_transport.hpp"
#include "driftd_schema_json.hpp"
#include "kafka/apply.hpp"
#include "kafka/digest.hpp"
#include "kafka/reader.hpp"

namespace driftd::kafka {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kHealth{800};

/// `2:<cluster id>:<digest>`; a cluster id is base64url.
std::string cursor_of(const std::string& cluster, const std::string& digest) { return "2:" + cluster + ":" + digest; }
std::string cluster_of(const std::string& cursor) {
  if (!cursor.starts_with("2:")) return {};
  const auto end = cursor.find(':', 2);
  return end == std::string::npos ? std::string() : cursor.substr(2, end - 2);
}

/// One Kafka cluster. Any number of calls at once over two clients that are made when first needed: one for reads, one
/// for health, so that a refresh which waits for a large answer never delays a health report.
class Cluster final : public sdk::Instance {
 public:
  explicit Cluster(Settings settings) : settings_(std::move(settings)) {}
  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override;
  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override;
  sdk::Health health(sdk::Call& call) override;
  sdk::Applied apply(sdk::Call& call, const sdk::Apply& request) override;

 private:
  /// Runs `work` with a client that has answered at least once. A client that fails is dropped, so the next call starts
  /// with a new one.
  template <class Work>
  auto with_client(sdk::Call& call, Work work);
  /// A client that is kept between calls. Each slot has its own lock, so that a blocked call of one does not delay the
  /// other.
  struct HandleSlot {
    std::mutex mutex;
    std::shared_ptr<Handle> handle;
  };
  std::shared_ptr<Handle> handle(sdk::Call& call, HandleSlot& kept);
  void drop(HandleSlot& kept, std::shared_ptr<Handle> used);
  std::vector<std::string> wanted_kinds(const sdk::Refresh& request) const;
  /// Returns the cluster that `reader` has read once the host has accepted it (IdentityGuard). Throws UNAVAILABLE the
  /// first time another cluster than that of the last refresh or of the cursor answers. `cursor` is null for a read,
  /// which belongs to the last refresh.
  std::string judged_cluster(Reader& reader, const std::string* cursor);

  const Settings settings_;
  ScramHellos hellos_{settings_};
  HandleSlot reads_, health_;
  common::AppliedRequests applied_;  ///< only used by apply(), of which the host never runs two at once
  std::mutex mutex_;                 ///< of all below
  ReplicaHealth replica_health_;     ///< of the last refresh
  common::IdentityGuard identity_{"another cluster answers at this address (cluster id"};
};

std::shared_ptr<Handle> Cluster::handle(sdk::Call& call, HandleSlot& kept) {
  const std::lock_guard lock(kept.mutex);
  if (!kept.handle) kept.handle = Handle::open(call, settings_);
  return kept.handle;
}

void Cluster::drop(HandleSlot& kept, std::shared_ptr<Handle> used) {
  const std::lock_guard lock(kept.mutex);
  if (kept.handle == used) kept.handle.reset();  // `used` is the last one and ends outside of the lock
}

template <class Work>
auto Cluster::with_client(sdk::Call& call, Work work) {
  const auto used = handle(call, reads_);
  try {
    const Client client(used, settings_);
    client.connect(call, settings_.connect);
    return work(client);
  } catch (const sdk::Failure& e) {
    if (e.code == DRIFTD_UNAVAILABLE || e.code == DRIFTD_UNAUTHENTICATED || e.code == DRIFTD_DEADLINE)
      drop(reads_, used);
    throw;
  }
}

std::vector<std::string> Cluster::wanted_kinds(const sdk::Refresh& request) const {
  std::vector<std::string> out;
  for (const auto kind : kKinds) {
    if (request.wants(kind) && settings_.scope.wants_kind(kind)) out.emplace_back(kind);
  }
  return out;
}

/// Everything is read before anything is emitted: the digest over it decides whether there is anything to emit.
sdk::RefreshResult Cluster::refresh(sdk::Call& call, const sdk::Refresh& request) {
  std::map<std::string, Listing> seen;
  std::string cluster;
  const auto kinds = wanted_kinds(request);
  with_client(call, [&](const Client& client) {
    Reader reader(call, client, settings_, hellos_);
    for (const auto& kind : kinds) {
      Listing& listing = seen[kind] = reader.list(kind);
      std::erase_if(listing.records, [&](const auto& record) { return !settings_.scope.wants(kind, record.id); });
    }
    cluster = judged_cluster(reader, &request.cursor);
    const std::lock_guard lock(mutex_);
    replica_health_ = reader.replica_health();
  });
  bool whole = true;
  Digest digest(settings_.scope.text());
  for (const auto& kind : kinds) {
    for (const auto& one : seen[kind].diagnostics) {
      call.diag(one);
      // a right that is missing is named again in each cycle; what is too long or unknown is so until it changes
      whole = whole && (one.code == DRIFTD_UNSUPPORTED || one.code == DRIFTD_BUDGET);
    }
    for (const auto& record : seen[kind].records) digest.add(record);
  }
  const std::string cursor = whole ? cursor_of(cluster, digest.text()) : std::string();
  if (!request.full && whole && cursor == request.cursor) return {true, 0};
  for (const auto& kind : kinds) {
    for (const auto& record : seen[kind].records) {
      if (!call.emit(record)) return {};
    }
    if (seen[kind].whole && !call.complete(kind, seen[kind].records.size())) return {};
  }
  call.checkpoint(cursor);
  return {};
}

std::string Cluster::judged_cluster(Reader& reader, const std::string* cursor) {
  try {
    std::string now = reader.cluster_id();
    if (cursor != nullptr)
      identity_.check(now, cluster_of(*cursor));
    else
      identity_.check(now);
    return now;
  } catch (const sdk::Failure&) {
    hellos_.forget();  // they may have been answered by either
    throw;
  }
}

void Cluster::read(sdk::Call& call, std::span<const sdk::Identity> ids) {
  std::map<std::string, std::set<std::string>> by_kind;
  for (const auto& id : ids) by_kind[id.kind].insert(id.id);
  for (const auto& [kind, wanted] : by_kind) {
    if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
      throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + kind, kind);
    }
  }
  std::optional<sdk::Diagnostic> unsettled;
  std::vector<Listing> found;
  with_client(call, [&](const Client& client) {
    Reader reader(call, client, settings_, hellos_);
    for (const auto& [kind, wanted] : by_kind) found.push_back(reader.read(kind, wanted));
    judged_cluster(reader, nullptr);
  });
  for (const auto& listing : found) {
    for (const auto& record : listing.records) call.emit(record);
    for (const auto& one : listing.diagnostics) {
      call.diag(one);
      if (!one.id.empty() && one.code != DRIFTD_NOT_FOUND) unsettled = one;
    }
  }
  if (unsettled)
    throw sdk::Failure(unsettled->code, unsettled->id + ": " + unsettled->text, unsettled->kind, unsettled->right);
}

sdk::Applied Cluster::apply(sdk::Call& call, const sdk::Apply& request) {
  return with_client(call, [&](const Client& client) {
    Reader reader(call, client, settings_, hellos_);
    const Applier applier(call, client, settings_, reader, applied_);
    const sdk::Record now = applier.read(request.id);
    judged_cluster(reader, nullptr);
    return applier.apply(now, request);
  });
}

sdk::Health Cluster::health(sdk::Call& call) {
  const auto used = handle(call, health_);
  sdk::Health out;
  const auto begin = std::chrono::steady_clock::now();
  try {
    const auto identity = Client(used, settings_).identity(call, kHealth);
    out.system_identity = identity;
    identity_.on_health(identity);
    const std::lock_guard lock(mutex_);
    if (replica_health_.offline > 0) {
      out.state = DRIFTD_HEALTH_DEGRADED;
      out.reason = std::to_string(replica_health_.offline) + " partitions had no leader at the last refresh";
    } else if (replica_health_.under_min_isr > 0) {
      out.state = DRIFTD_HEALTH_DEGRADED;
      out.reason = std::to_string(replica_health_.under_min_isr) +
                   " partitions were below min.insync.replicas at the last refresh";
    }
  } catch (const sdk::Failure& e) {
    if (e.code == DRIFTD_UNAUTHENTICATED) drop(health_, used);  // any other one goes on trying to connect
    if (e.code == DRIFTD_CANCELLED || e.code == DRIFTD_INTERNAL) throw;
    out.state = e.code == DRIFTD_UNAUTHENTICATED ? DRIFTD_HEALTH_DEGRADED : DRIFTD_HEALTH_DOWN;
    out.reason = e.what();
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  out.latency_us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  return out;
}

std::unique_ptr<sdk::Instance> open(sdk::Call& call, std::string_view, std::string_view text) {
  Settings settings = parse_settings(text);
  for (const auto& server : settings.bootstrap) {
    if (settings.tls.on || settings.sasl.mechanism.empty() ||
        common::is_local_host(server.substr(0, server.rfind(':'))))
      continue;
    common::warn_of_plain_transport(call, "the login by SASL " + settings.sasl.mechanism + " and all that is read",
                                    server, "set settings.tls");
    break;
  }
  return std::make_unique<Cluster>(std::move(settings));
}

sdk::Plugin make_plugin() {
  const auto documents = nlohmann::json::parse(driftd_schema_json);
  sdk::Plugin out;
  out.describe = nlohmann::json{{"id", "kafka"},
                                {"version", "0.1.0"},
                                {"types", {"kafka"}},
                                {"kinds", kKinds},
                                {"extensions", {{{"id", "driftd.apply"}, {"revision", 1}}}},
                                {"concurrency", 4},
                                {"metrics", nlohmann::json::array()}}
                     .dump();
  out.schemas["settings"] = documents.at("settings").dump();
  for (const auto& [kind, document] : documents.at("kinds").items()) out.schemas[kind] = document.dump();
  out.open = &open;
  out.has_apply = true;
  return out;
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin made = make_plugin();
  return made;
}

}  // namespace
}  // namespace driftd::kafka

DRIFTD_PROVIDER(driftd::kafka::plugin)
