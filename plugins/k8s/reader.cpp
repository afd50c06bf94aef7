// SPDX-License-Identifier: Apache-2.0
#include "k8s/reader.hpp"

#include <algorithm>

#include "k8s/helm.hpp"
#include "k8s/json_access.hpp"
#include "k8s/mapping.hpp"
#include "k8s/registration.hpp"
#include "kube/outline.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kMaxHeld = 1000;  // Jobs of one list whose CronJob was not listed before them

/// Returns true if the failure concerns one kind only; the others are still read.
bool is_of_one_kind(const sdk::Failure& failure) {
  return !failure.kind.empty() && failure.code != DRIFTD_UNAUTHENTICATED && failure.code != DRIFTD_CANCELLED &&
         failure.code != DRIFTD_DEADLINE;
}

sdk::Diagnostic diagnostic(const sdk::Failure& failure, const std::string& kind, const std::string& id = {}) {
  return {failure.code, kind, id, {}, failure.what(), failure.right, failure.retry_after_ms};
}

/// Returns why it is not known whether there are PrismBackends; empty if it is.
std::vector<sdk::Diagnostic> prism_unknown(const Catalog::Answer& types) {
  std::vector<sdk::Diagnostic> out;
  for (const auto& each : types.diagnostics) {
    if (each.kind == kPrismBackend)
      out.push_back({each.code, kRegistration, {}, {}, each.text, each.right, each.retry_after_ms});
  }
  return out;
}

/// Reports in each refresh what is wrong with an object, where the coverage of its kind is shown.
void tell_unreadable(sdk::Call& call, const sdk::Record& record) {
  if (record.unread.empty() || record.unread.front().path != "**" || record.unread.front().code != DRIFTD_CORRUPT)
    return;
  call.diag({DRIFTD_CORRUPT,
             record.kind,
             record.id,
             {},
             record.kind + "/" + record.id + ": " + record.unread.front().reason});
}

}  // namespace

std::uint64_t Reader::emit(sdk::Call& call, sdk::Record record, std::int64_t sent) {
  record.observed_ns = sent;
  api_.cluster_guard().check(cluster_);
  if (!call.emit(record) && lists_) throw FinishSoon{};
  return 1;
}

std::optional<std::uint64_t> Reader::list(sdk::Call& call, const Resource& resource) {
  bool whole = true;
  std::uint64_t count = 0;
  if (!resource.no_lists.empty()) call.diag({DRIFTD_UNSUPPORTED, resource.kind, {}, {}, resource.no_lists});
  for (const auto& space : spaces_of(resource, settings_)) {
    try {
      count += list(call, resource, space);
    } catch (const sdk::Failure& failure) {
      if (!is_of_one_kind(failure)) throw;
      call.diag(diagnostic(failure, resource.kind));
      whole = false;
    }
  }
  if (!whole) return std::nullopt;
  noted_cron_jobs_ = noted_cron_jobs_ || (resource.kind == kCronJob && resource.label_selector.empty());
  return count;
}

std::uint64_t Reader::list(sdk::Call& call, const Resource& resource, const std::string& space) {
  if (resource.kind == kHelmRelease) return list_releases(call, resource, space);
  if (resource.kind == kJob) return list_jobs(call, resource, space);
  std::uint64_t count = 0;
  const auto on_object = [&](const kube::Lister::Listed& listed) {
    if (resource.kind == kCronJob) api_.cron_jobs().note(listed.object);
    sdk::Record record = map_or_unreadable(resource, listed.object, listed.cut, settings_);
    if (!settings_.scope.wants(record.kind, record.id)) return;
    tell_unreadable(call, record);
    count += emit(call, std::move(record), listed.sent_ns);
  };
  versions_[version_key(resource, space)] = lister_.list(call, resource, space, on_object);
  return count;
}

bool Reader::note_cron_jobs(sdk::Call& call, const std::string& space) {
  const Resource& cron_jobs = cron_job_resource();
  try {
    lister_.list(call, cron_jobs, space,
                 [this](const kube::Lister::Listed& listed) { api_.cron_jobs().note(listed.object); });
    return true;
  } catch (const sdk::Failure& failure) {
    if (failure.code != DRIFTD_DENIED) throw;
    call.diag(
        {DRIFTD_DENIED,
         kJob,
         {},
         {},
         "Jobs that name a CronJob as their controller are not compared, because it is not known whether it exists: " +
             std::string(failure.what()),
         cron_jobs.right("list", space)});
    return false;
  }
}

std::uint64_t Reader::list_jobs(sdk::Call& call, const Resource& resource, const std::string& space) {
  bool known = noted_cron_jobs_ || note_cron_jobs(call, space);
  std::uint64_t count = 0;
  struct Held {
    sdk::Record record;
    CronJobRef owner;
    std::int64_t sent;
  };
  std::vector<Held> held;  // by a CronJob that is newer than the list of them, or by none
  const auto take = [&](sdk::Record record, std::int64_t sent) {
    tell_unreadable(call, record);
    count += emit(call, std::move(record), sent);
  };
  versions_[version_key(resource, space)] =
      lister_.list(call, resource, space, [&](const kube::Lister::Listed& listed) {
        const auto owner = cron_job_of(resource, listed.object);
        if (owner && (!known || api_.cron_jobs().knows(*owner))) return;
        sdk::Record record = map_or_unreadable(resource, listed.object, listed.cut, settings_);
        if (!settings_.scope.wants(record.kind, record.id)) return;
        if (owner && held.size() < kMaxHeld) return held.push_back({std::move(record), *owner, listed.sent_ns});
        take(std::move(record), listed.sent_ns);
      });
  if (!held.empty()) known = note_cron_jobs(call, space);
  for (auto& each : held) {
    if (known && !api_.cron_jobs().knows(each.owner)) take(std::move(each.record), each.sent);
  }
  return count;
}

std::uint64_t Reader::list_releases(sdk::Call& call, const Resource& resource, const std::string& space) {
  HelmReleases releases;
  const std::int64_t sent = call.now_ns();
  const auto on_object = [&](const kube::Lister::Listed& listed) {
    if (!release_id(listed.object).empty()) return releases.add(listed.object);
    const std::string id =
        text(listed.object, {"metadata", "namespace"}) + "/" + text(listed.object, {"metadata", "name"});
    call.diag({DRIFTD_CORRUPT,
               kHelmRelease,
               id,
               {},
               "the Secret " + id +
                   " has the type of a Helm release, but not its labels: it is compared neither as one "
                   "nor as a Secret"});
  };
  versions_[version_key(resource, space)] = lister_.list(call, resource, space, on_object);
  std::vector<sdk::Diagnostic> diagnostics;
  std::uint64_t count = 0;
  for (auto& record : releases.records(diagnostics, sent)) {
    if (settings_.scope.wants(record.kind, record.id)) count += emit(call, std::move(record), sent);
  }
  for (const auto& each : diagnostics) call.diag(each);
  return count;
}

bool Reader::refresh_kind(sdk::Call& call, const std::string& kind, const Catalog::Answer& types) {
  bool whole = types.knows_all(kind);
  std::uint64_t count = 0;
  for (const auto& resource : types.resources) {
    if (resource.kind != kind) continue;
    const auto listed = list(call, resource);
    whole = whole && listed;
    count += listed.value_or(0);
  }
  if (whole) call.complete(kind, count);
  return whole;
}

bool Reader::refresh_backends(sdk::Call& call, const Catalog::Answer& types) {
  try {
    const std::int64_t sent = call.now_ns();
    std::vector<sdk::Diagnostic> diagnostics = prism_unknown(types);
    const bool knows_prism = diagnostics.empty();
    const Objects objects = backend_objects_.collect(call, types.resources, diagnostics);
    const bool whole = knows_prism && !backend_objects_.is_partial();
    std::map<std::string, std::uint64_t> of_each;  // a name may be defined in several namespaces
    for (const auto& [place, definition] : backend_objects_.definitions_of(objects, diagnostics)) {
      emit(call, registration_or_unreadable(definition, objects, settings_, std::nullopt, diagnostics), sent);
      ++of_each[definition.name];
    }
    for (const auto& each : fold_by_namespace(diagnostics)) {
      call.diag(each);
      if (!each.backend.empty()) of_each.try_emplace(each.backend, 0);
    }
    for (const auto& [name, count] : of_each) call.complete(kRegistration, count, name);
    if (whole) call.complete(kRegistration, 0);  // of this backend itself there is none
    return whole;
  } catch (const sdk::Failure& failure) {
    if (!is_of_one_kind(failure)) throw;
    call.diag(diagnostic(failure, kRegistration));
    return false;
  }
}

bool Reader::refresh(sdk::Call& call, const sdk::Refresh& request, const Catalog::Answer& types) {
  bool whole = true;
  lists_ = true;
  try {
    refresh_all(call, request, types, whole);
  } catch (const FinishSoon&) {
    whole = false;
  }
  lists_ = false;
  return whole && !lister_.may_miss_deletions();
}

void Reader::refresh_all(sdk::Call& call, const sdk::Refresh& request, const Catalog::Answer& types, bool& whole) {
  std::vector<std::string> kinds;
  for (const auto& resource : types.resources) {
    if (std::find(kinds.begin(), kinds.end(), resource.kind) == kinds.end()) kinds.push_back(resource.kind);
  }
  std::vector<std::string> complete{kObject};  // also if there is no such type, or the settings leave the cluster out
  complete.insert(complete.end(), kOptionalKinds.begin(), kOptionalKinds.end());
  for (const auto& resource : cluster_resources()) complete.push_back(resource.kind);
  for (const auto& each : complete) {
    if (std::find(kinds.begin(), kinds.end(), each) == kinds.end()) kinds.push_back(each);
  }
  for (const auto& kind : kinds) {
    if (request.wants(kind) && settings_.scope.wants_kind(kind)) whole &= refresh_kind(call, kind, types);
  }
  if (request.wants(kRegistration) && settings_.scope.wants_kind(kRegistration)) whole &= refresh_backends(call, types);
}

bool Reader::read(sdk::Call& call, const sdk::Identity& id, const Catalog::Answer& types) {
  try {
    if (id.kind == kRegistration) return read_backend(call, id, types);
    bool served = false;
    for (const auto& resource : types.resources) {
      if (resource.kind != id.kind) continue;
      served = served || id.kind != kObject;
      const Place place = place_of(resource, id.id);
      if (place.name.empty()) continue;
      if (id.kind == kHelmRelease) return read_release(call, resource, place);
      return read_object(call, id, resource, place);
    }
    // While settings.namespaces leave the cluster out, what was known of it is asked for, so that it is not gone.
    if (const Resource* cluster_wide = cluster_resource(id.kind); cluster_wide != nullptr && !served) {
      const Place place = place_of(*cluster_wide, id.id);
      return place.name.empty() || read_object(call, id, *cluster_wide, place);
    }
    const bool has_types = is_optional_kind(id.kind) || id.kind == kObject;  // that come and go
    const bool possible = has_types && !served && id.id.find('/') != std::string::npos;
    if (!possible) return true;  // nothing could have this id
    call.diag({DRIFTD_UNSUPPORTED,
               id.kind,
               id.id,
               {},
               "its type is not served by the API server, or not named in settings.objects",
               {},
               0,
               id.backend});
  } catch (const sdk::Failure& failure) {
    if (!is_of_one_kind(failure)) throw;
    call.diag(diagnostic(failure, id.kind, id.id));
  }
  return false;
}

bool Reader::read_object(sdk::Call& call, const sdk::Identity& id, const Resource& resource, const Place& place) {
  const std::string path = resource.path(place.space, place.name);
  const std::int64_t sent = call.now_ns();
  const http::Response response = send_request(call, api_, client_, path);
  if (response.status == 404 && reason_of(response.body) == "NotFound") return true;  // the object, not the type
  if (!response.ok()) throw refusal(response, "GET " + path, id.kind, resource.right("get", place.space));
  const auto [object, cut, why] = kube::parse_object(response.body);
  if (!object.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, "GET " + path + ": no JSON object", id.kind);
  // One GET sees what the list of this kind leaves out.
  if (id.kind == kSecret && text(object, {"type"}) == "helm.sh/release.v1") return true;
  if (const auto owner = cron_job_of(resource, object); owner && cron_job_exists(call, api_, client_, *owner))
    return true;
  emit(call, map_or_unreadable(resource, object, why, settings_), sent);
  return false;
}

bool Reader::read_release(sdk::Call& call, const Resource& resource, const Place& place) {
  Resource one = resource;
  one.label_selector += (one.label_selector.empty() ? "owner=helm,name=" : ",owner=helm,name=") + place.name;
  HelmReleases releases;
  const std::int64_t sent = call.now_ns();
  lister_.list(call, one, place.space, [&](const kube::Lister::Listed& listed) { releases.add(listed.object); });
  std::vector<sdk::Diagnostic> diagnostics;
  const auto records = releases.records(diagnostics, sent);
  for (const auto& each : diagnostics) call.diag(each);
  for (const auto& record : records) emit(call, record, sent);
  return records.empty() && diagnostics.empty();
}

bool Reader::read_backend(sdk::Call& call, const sdk::Identity& id, const Catalog::Answer& types) {
  const std::int64_t sent = call.now_ns();
  std::vector<sdk::Diagnostic> diagnostics = prism_unknown(types);
  const Objects objects = backend_objects_.collect(call, types.resources, diagnostics);
  bool none = true;
  for (const auto& [place, definition] : backend_objects_.definitions_of(objects, diagnostics)) {
    if (definition.name != id.id) continue;
    emit(call, registration_or_unreadable(definition, objects, settings_, std::nullopt, diagnostics), sent);
    none = false;
  }
  for (auto& each : diagnostics) {
    // The backend may be defined where nothing is seen, in a skipped namespace or by a type that is denied, so its
    // absence proves nothing.
    if (each.id.empty()) each.id = each.backend = id.id;
    if (each.backend != id.id) continue;  // it concerns another backend
    call.diag(each);
    none = false;
  }
  return none;
}

}  // namespace driftd::k8s
