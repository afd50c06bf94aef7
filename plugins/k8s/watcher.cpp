// SPDX-License-Identifier: Apache-2.0
#include "k8s/watcher.hpp"

#include <algorithm>
#include <utility>

#include "k8s/helm.hpp"
#include "k8s/json_access.hpp"
#include "k8s/mapping.hpp"
#include "k8s/outline.hpp"

namespace driftd::k8s {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMaxEvent = 16u << 20;
constexpr milliseconds kFirstBackoff{800}, kMaxBackoff{30'000};
constexpr seconds kMarkEvery{10};  // even if nothing was emitted
constexpr seconds kSoon{1};

}  // namespace

Watcher::Watcher(sdk::Call& call, Api& api, const Settings& settings, WatchTarget watched, ListCache& list_cache,
                 std::atomic<int>& streams)
    : api_(api),
      settings_(settings),
      resources_(std::move(watched.resources)),
      scope_(std::move(watched.scope)),
      uid_(api.cluster_guard().uid()),
      tls_(api.tls(call)),
      list_cache_(list_cache),
      multi_client_(api.options(call)),
      client_(api.options(call)),
      lister_(api, settings, client_, streams),
      backends_(settings, resources_, list_cache, BackendObjects(api, settings, client_, lister_)) {
  for (const auto& resource : resources_) {
    const bool emits = settings_.scope.wants_kind(resource.kind);
    const bool defines = resource.kind == kSecret || resource.kind == "service" || resource.kind == "config_map" ||
                         resource.kind == kPrismBackend;
    if (!emits && !(backends_.wanted() && defines)) continue;
    for (const auto& space : spaces_of(resource, settings_)) {
      Stream& stream = streams_.emplace_back();
      stream.resource = &resource;
      stream.space = space;
      stream.key = version_key(resource, space);
      stream.emits = emits;
    }
  }
}

Watcher::~Watcher() { list_cache_.set_watch(std::nullopt, scope_); }

void Watcher::restore_versions(const std::string& cursor) {
  const auto given = parse_cursor(cursor, scope_);
  const auto last = list_cache_.last();
  for (auto& stream : streams_) {
    if (given && given->contains(stream.key)) stream.version = given->at(stream.key);
    if (!last || !last->versions.contains(stream.key)) continue;
    const std::string& listed = last->versions.at(stream.key);
    if (!stream.version.empty() && !is_later(listed, stream.version)) continue;
    stream.version = listed;  // older changes are in the list; emitting them again would report changes that nobody
                              // made
    stream.since = last->sent;
    stream.fresh = true;
  }
}

void Watcher::run(sdk::Call& call, const std::string& cursor) {
  restore_versions(cursor);
  try {
    while (!call.cancelled() && !finish_ && !list_cache_.scope_changed(scope_)) run_once(call);
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_CANCELLED || !call.cancelled()) throw;
  }
}

void Watcher::run_once(sdk::Call& call) {
  open_due(call);
  update_list_cache();
  for (const auto& ended : multi_client_.run(call, wake_at())) on_request_end(call, ended);
  api_.cluster_guard().check(uid_);
  if (host_failure_) throw *host_failure_;
  check_expired();
  drop_silent();
  emit_dependents(call);
  bookmark(call);
}

Watcher::Clock::time_point Watcher::wake_at() const {
  auto out = Clock::now() + seconds(30);
  for (const auto& stream : streams_) {
    out = std::min(out, stream.request == 0 ? stream.retry_at : stream.received_at + settings_.silence);
  }
  return has_pending() ? std::min(out, dependents_after_) : out;
}

void Watcher::open_due(sdk::Call& call) {
  for (auto& stream : streams_) {
    if (stream.request != 0 || stream.retry_at > Clock::now()) continue;
    try {
      if (stream.version.empty()) ask_position(call, stream);
      stream.expired = is_ahead(call, stream);
      if (!stream.expired) open(call, stream);
    } catch (const sdk::Failure& failure) {
      if (failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE) throw;
      report_failure(call, stream, failure);
      schedule_retry(stream, milliseconds(failure.retry_after_ms));
    }
  }
}

void Watcher::ask_position(sdk::Call& call, Stream& stream) {
  stream.version = lister_.current_version(call, *stream.resource, stream.space);
  stream.since = Clock::now();
  stream.fresh = true;
}

bool Watcher::is_ahead(sdk::Call& call, Stream& stream) {
  if (std::exchange(stream.fresh, false)) return false;
  return is_later(stream.version, lister_.current_version(call, *stream.resource, stream.space));
}

void Watcher::open(sdk::Call& call, Stream& stream) {
  const int lasts = std::uniform_int_distribution(300, 600)(random_);  // so that not all of them end at once
  http::Request request = api_.get(
      call, stream.resource->path(stream.space) +
                query_of(*stream.resource, "watch=1&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(lasts) +
                                               "&resourceVersion=" + http::escape(stream.version)));
  request.timeout = milliseconds(0);
  request.max_body = 0;
  stream.lines =
      std::make_unique<LineSplitter>([this, &call, &stream](auto line) { on_line(call, stream, line); }, kMaxEvent);
  request.on_body = [this, &stream](std::string_view piece) {
    stream.received_at = Clock::now();
    stream.open = true;
    if (piece.empty()) return multi_client_.wake();
    stream.lines->feed(piece);
  };
  stream.request = multi_client_.start(call, std::move(request));
  stream.opened = stream.received_at = Clock::now();
  stream.open = stream.expired = false;
}

void Watcher::on_line(sdk::Call& call, Stream& stream, std::string_view line) {
  const auto [event, cut, why] = parse_object(line);
  if (!event.is_object()) {
    throw sdk::Failure(DRIFTD_CORRUPT, "watch " + stream.resource->plural + ": an event is not a JSON object");
  }
  try {
    on_event(call, stream, event, why);
  } catch (const json::exception&) {  // the text of the exception could quote a value
    call.diag({DRIFTD_CORRUPT, stream.resource->kind, {}, {}, "an object of the watch is not of the form of its type"});
    list_cache_.forget();  // it was not emitted, so the next refresh must list
    stream.version = text(event, {"object", "metadata", "resourceVersion"});
  }
}

void Watcher::on_event(sdk::Call& call, Stream& stream, const json& event, const std::string& cut) {
  const std::string type = text(event, {"type"});
  const json& object = find(event, {"object"});
  multi_client_.wake();
  if (type == "ERROR") {
    const json& code = find(object, {"code"});
    stream.expired = code == json(410) || text(object, {"reason"}) == "Expired" || text(object, {"reason"}) == "Gone";
    return;
  }
  stream.backoff = {};
  stream.reported = false;
  const std::string version = text(object, {"metadata", "resourceVersion"});
  if (type != "BOOKMARK") on_object(call, stream, {object, call.now_ns(), cut}, type == "DELETED");
  if (!version.empty()) stream.version = version;
}

void Watcher::on_object(sdk::Call& call, Stream& stream, const Lister::Listed& listed, bool gone) {
  const Resource& resource = *stream.resource;
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
  if (unsure && !gone && stream.emits) jobs_.emplace(owner->space, text(object, {"metadata", "name"}));
  if (stream.emits && (!owner || (unsure && gone))) {
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
  } catch (const sdk::Failure& failure) {
    host_failure_ = failure;
    throw;
  }
}

void Watcher::on_request_end(sdk::Call& call, const http::MultiClient::Completion& ended) {
  const auto of_it = [&](const Stream& stream) { return stream.request == ended.id; };
  const auto found = std::find_if(streams_.begin(), streams_.end(), of_it);
  if (found == streams_.end() || host_failure_) return;
  Stream& stream = *found;
  stream.request = 0;
  stream.open = false;
  const std::string what = "watch " + stream.resource->plural;
  if (ended.failure) {
    const driftd_status code = ended.failure->code;
    if (code == DRIFTD_CANCELLED || code == DRIFTD_DEADLINE) throw *ended.failure;
    report_failure(call, stream, *ended.failure);
    return schedule_retry(stream, milliseconds(ended.failure->retry_after_ms));
  }
  const http::Response& response = ended.response;
  stream.expired = stream.expired || response.status == 410;
  if (response.status == 401 && api_.reread_credential(call, response.sent_ns)) {  // again at once, with the new
                                                                                   // credential
    finish_ = finish_ || api_.tls(call) != tls_;  // a certificate: over other connections
    if (Clock::now() - stream.opened < kSoon) schedule_retry(stream);
    return;
  }
  if (!response.ok() && response.status != 410) {
    report_failure(call, stream,
                   refusal(response, what, stream.resource->kind, stream.resource->right("watch", stream.space)));
    return schedule_retry(stream, milliseconds(response.retry_after_ms));
  }
  if (Clock::now() - stream.opened < kSoon) schedule_retry(stream);
}

void Watcher::report_failure(sdk::Call& call, Stream& stream, const sdk::Failure& failure) {
  if (stream.reported) return;
  stream.reported = true;
  call.diag({failure.code, stream.resource->kind, {}, {}, failure.what(), failure.right, failure.retry_after_ms});
}

void Watcher::schedule_retry(Stream& stream, milliseconds at_least) {
  stream.backoff = std::clamp(stream.backoff * 2, kFirstBackoff, kMaxBackoff);
  const double jitter = std::uniform_real_distribution(1.0, 2.0)(random_);
  const auto wait = std::chrono::duration_cast<milliseconds>(stream.backoff * jitter);
  stream.retry_at = Clock::now() + std::max(wait, at_least);
}

/// A dead connection blocks all its watches, and new ones would use it too, so all connections are closed.
void Watcher::drop_silent() {
  const auto silent = [this](const Stream& stream) {
    return stream.request != 0 && Clock::now() - stream.received_at >= settings_.silence;
  };
  if (std::none_of(streams_.begin(), streams_.end(), silent)) return;
  multi_client_.reset();
  for (auto& stream : streams_) {
    if (stream.request == 0) continue;
    const bool was = silent(stream);
    stream.request = 0;
    stream.open = false;
    if (was) schedule_retry(stream);
  }
}

void Watcher::check_expired() {
  for (const auto& stream : streams_) {
    if (!stream.expired) continue;
    list_cache_.forget();
    throw sdk::Failure(DRIFTD_CURSOR_EXPIRED,
                       "watch " + stream.resource->plural +
                           ": the API server no longer knows where this watch was, or was restored to before that; "
                           "everything is listed again",
                       stream.resource->kind);
  }
}

void Watcher::update_list_cache() {
  auto since = Clock::time_point::min();
  for (const auto& stream : streams_) {
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
  for (const auto& stream : streams_) {
    if (!stream.version.empty()) versions[stream.key] = stream.version;
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
