// SPDX-License-Identifier: Apache-2.0
#include "k8s/watcher.hpp"

#include <algorithm>

#include "k8s/helm.hpp"
#include "k8s/json_access.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

constexpr std::chrono::seconds kMarkEvery{10};  // even if nothing was emitted

}  // namespace

Watcher::Watcher(sdk::Call& call, Api& api, const Settings& settings, WatchTarget watched, ListCache& list_cache,
                 std::atomic<int>& streams)
    : api_(api),
      settings_(settings),
      resources_(std::move(watched.resources)),
      scope_(std::move(watched.scope)),
      uid_(api.cluster_guard().uid()),
      list_cache_(list_cache),
      client_(api.options(call)),
      lister_(api, client_, streams),
      backends_(settings, resources_, list_cache, BackendObjects(api, settings, client_, lister_)),
      watches_(call, api, lister_, *this) {
  add_streams();
}

Watcher::~Watcher() { list_cache_.set_watch(std::nullopt, scope_); }

void Watcher::add_streams() {
  for (const auto& resource : resources_) {
    const bool emits = settings_.scope.wants_kind(resource.kind);
    const bool defines = resource.kind == kSecret || resource.kind == "service" || resource.kind == "config_map" ||
                         resource.kind == kPrismBackend;
    if (!emits && !(backends_.wanted() && defines)) continue;
    for (const auto& space : spaces_of(resource, settings_))
      watched_[&watches_.add(resource, space)] = {&resource, version_key(resource, space), emits};
  }
}

void Watcher::restore_versions(const std::string& cursor) {
  const auto given = parse_cursor(cursor, scope_);
  const auto last = list_cache_.last();
  for (auto& stream : watches_.streams()) {
    const std::string& key = watched_.at(&stream).key;
    if (given && given->contains(key)) stream.version = given->at(key);
    if (!last || !last->versions.contains(key)) continue;
    const std::string& listed = last->versions.at(key);
    // Older changes are in the list; emitting them again would report changes that nobody made.
    if (stream.version.empty() || kube::is_later(listed, stream.version)) stream.start_at(listed, last->sent);
  }
}

void Watcher::run(sdk::Call& call, const std::string& cursor) {
  restore_versions(cursor);
  try {
    while (!call.cancelled() && !finish_ && !watches_.has_old_certificate() && !list_cache_.scope_changed(scope_))
      run_once(call);
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_CANCELLED || !call.cancelled()) throw;
  }
}

void Watcher::run_once(sdk::Call& call) {
  update_list_cache();
  watches_.run_once(call, has_pending() ? dependents_after_ : Clock::time_point::max());
  emit_dependents(call);
  bookmark(call);
}

void Watcher::start(sdk::Call& call, kube::Stream& stream) {
  std::string version = lister_.current_version(call, *stream.resource, stream.space);
  stream.start_at(std::move(version), Clock::now());
}

void Watcher::on_malformed(sdk::Call& call, kube::Stream& stream) {
  call.diag({DRIFTD_CORRUPT, stream.resource->kind, {}, {}, "an object of the watch is not of the form of its type"});
  list_cache_.forget();  // it was not emitted, so the next refresh must list
}

void Watcher::on_object(sdk::Call& call, kube::Stream& stream, const kube::Lister::Listed& listed,
                        kube::Change change) {
  const bool gone = change == kube::Change::kDeleted;
  const Watched& watched = watched_.at(&stream);
  const Resource& resource = *watched.resource;
  const json& object = listed.object;
  if (resource.kind == kHelmRelease) {
    const std::string id = release_id(object);
    if (!id.empty())
      releases_.emplace(text(object, {"metadata", "namespace"}), text(object, {"metadata", "labels", "name"}));
    return;
  }
  if (resource.kind == kCronJob && !gone) api_.cron_jobs().note(object);
  const auto owner = cron_job_of(resource, object);
  const bool unsure = owner && !api_.cron_jobs().knows(*owner);
  if (unsure && !gone && watched.emits) jobs_.emplace(owner->space, text(object, {"metadata", "name"}));
  if (watched.emits && (!owner || (unsure && gone))) {
    sdk::Record record =
        gone ? tombstone(resource, object) : map_or_unreadable(resource, object, listed.cut, settings_);
    record.observed_ns = listed.sent_ns;
    if (settings_.scope.wants(record.kind, record.id)) emit(call, record);
  }
  backends_.note(ref_of(resource, object), object, gone);
}

void Watcher::emit(sdk::Call& call, const sdk::Record& record) {
  api_.cluster_guard().check(uid_);
  try {
    finish_ = !call.emit(record) || finish_;
    emitted_ = true;
  } catch (const sdk::Failure&) {
    host_failed_ = true;
    throw;
  }
}

void Watcher::on_failure(sdk::Call& call, kube::Stream& stream, const sdk::Failure& failure) {
  if (stream.failed) return;  // reported already
  call.diag({failure.code, stream.resource->kind, {}, {}, failure.what(), failure.right, failure.retry_after_ms});
}

void Watcher::on_expired(sdk::Call&, kube::Stream& stream) {
  list_cache_.forget();
  throw sdk::Failure(DRIFTD_CURSOR_EXPIRED,
                     "watch " + stream.resource->plural +
                         ": the API server no longer knows where this watch was, or was restored to before that; "
                         "everything is listed again",
                     stream.resource->kind);
}

void Watcher::update_list_cache() {
  auto since = Clock::time_point::min();
  for (const auto& stream : watches_.streams()) {
    if (!stream.open || Clock::now() - stream.received_at > settings_.silence)
      return list_cache_.set_watch(std::nullopt, scope_);
    since = std::max(since, stream.since);
  }
  const bool blind = has_pending() || backends_.is_blind();
  list_cache_.set_watch(blind ? std::nullopt : std::optional(since), scope_);
}

void Watcher::bookmark(sdk::Call& call) {
  if (!emitted_ && (has_pending() || Clock::now() - marked_ < kMarkEvery)) return;
  ResourceVersions versions;
  for (const auto& stream : watches_.streams()) {
    if (!stream.version.empty()) versions[watched_.at(&stream).key] = stream.version;
  }
  // While something is still to be emitted the cursor stays where it is: what was already emitted comes again, but
  // nothing is missed.
  if (!has_pending() && !versions.empty()) cursor_ = render_cursor(versions, scope_);
  if (cursor_.empty()) return;
  call.bookmark(cursor_);
  emitted_ = false;
  marked_ = Clock::now();
}

}  // namespace driftd::k8s
