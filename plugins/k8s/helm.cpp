// SPDX-License-Identifier: Apache-2.0
#include "k8s/helm.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include "common/bounded_json.hpp"
#include "k8s/json_access.hpp"
#include "k8s/kinds.hpp"
#include "k8s/mapping.hpp"
#include "kube/base64.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kMaxRelease = 32u << 20;  // a Secret holds 1 MiB; charts pack about 10:1

/// Unpacks a release: base64 inside the API's base64, gzip (optional in old releases), JSON.
std::string unpacked(const std::string& packed, std::size_t max_bytes, const std::string& what) {
  const auto outer = kube::decode_base64(packed);
  auto inner = outer ? kube::decode_base64(*outer) : std::nullopt;
  if (!inner) throw sdk::Failure(DRIFTD_CORRUPT, what + ": its `release` is no base64 in base64");
  return inner->starts_with("\x1f\x8b\x08") ? kube::gunzip(*inner, max_bytes, what) : std::move(*inner);
}

sdk::Record base_of(const json& secret, const std::string& id) {
  sdk::Record out;
  out.kind = kHelmRelease;
  out.id = id;
  out.version = text(secret, {"metadata", "resourceVersion"});
  out.origin = "helm";
  out.schema_revision = revision_of(kHelmRelease);
  out.metadata = {{"namespace", text(secret, {"metadata", "namespace"})},
                  {"release", text(secret, {"metadata", "labels", "name"})},
                  {"revision", text(secret, {"metadata", "labels", "version"})},
                  {"secret", text(secret, {"metadata", "name"})},
                  {"resource_version", out.version}};
  return out;
}

/// Fills the record from `release`.
void fill(sdk::Record& out, std::string_view release_text, const std::string& what) {
  auto [release, cut, why] = common::parse_bounded(release_text);
  if (cut && release.is_discarded() && !why.empty()) throw sdk::Failure(DRIFTD_BUDGET, what + ": " + why);
  if (!release.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, what + ": its `release` holds no JSON object");
  json body = json::object(), status = json::object();
  body["chart"] = text(release, {"chart", "metadata", "name"});
  body["chart_version"] = text(release, {"chart", "metadata", "version"});
  body["app_version"] = text(release, {"chart", "metadata", "appVersion"});
  body["status"] = text(release, {"info", "status"});
  put(status, "revision", find(release, {"version"}));
  put(status, "last_deployed", find(release, {"info", "last_deployed"}));
  put(status, "description", find(release, {"info", "description"}));
  out.external_name = text(release, {"info", "first_deployed"});  // one that was uninstalled and installed again is
                                                                  // another
  if (cut) {
    out.unread.push_back({"values", DRIFTD_CORRUPT, "the release " + why.substr(3)});
  } else {
    const bool has = find(release, {"config"}).is_object();
    body["values"] = has ? std::move(release["config"]) : json::object();  // a digest when it leaves the worker
  }
  std::vector<std::string> left_out;
  out.body = common::fit_members(body, common::kMaxBody, left_out);
  for (const auto& name : left_out)
    out.unread.push_back({name, DRIFTD_BUDGET, "of the release it is more than an agent takes"});
  out.status = status.dump();
  out.sensitive = {"values"};
}

/// Also returns false if there is no creation time, although the API server always sets one: the age is then unknown.
bool is_older(const std::string& rfc3339, std::chrono::nanoseconds age, std::int64_t now_ns) {
  std::tm at{};
  if (::strptime(rfc3339.c_str(), "%Y-%m-%dT%H:%M:%S", &at) == nullptr) return false;
  return now_ns - std::int64_t{::timegm(&at)} * 1'000'000'000 > age.count();
}

bool is_pending(const std::string& status) { return status.starts_with("pending-") || status == "uninstalling"; }

}  // namespace

std::string release_id(const json& secret) {
  const std::string name = text(secret, {"metadata", "labels", "name"});
  const bool helm = text(secret, {"metadata", "labels", "owner"}) == "helm";
  return helm && !name.empty() ? text(secret, {"metadata", "namespace"}) + "/" + name : std::string();
}

void HelmReleases::show(Release& release, const Revision& revision, const json& secret) {
  waiting_ -= release.packed.size();
  keep(release, text(secret, {"metadata", "namespace"}), 0);
  release.shown = revision;
  release.error.clear();
  release.record = base_of(secret, release_id(secret));
  release.packed = text(secret, {"data", "release"});
  release.waits = true;
  waiting_ += release.packed.size();
  if (waiting_ > kMaxWaiting) unpack_all();
}

void HelmReleases::unpack_all() {
  for (auto& [id, release] : releases_) {
    if (std::exchange(release.waits, false)) unpack(release);
  }
  waiting_ = 0;
}

void HelmReleases::unpack(Release& release) {
  const std::string packed = std::exchange(release.packed, {});
  const std::string what = "release Secret " + release.record.metadata["secret"];
  std::size_t& used = unpacked_[release.record.metadata["namespace"]];
  sdk::Record record = release.record;
  try {
    if (used >= kMaxUnpacked)
      throw sdk::Failure(DRIFTD_BUDGET, what + ": the releases before it are more than is unpacked of one namespace");
    used += kMaxRelease;  // counts in full: unpacking it took time even if it failed
    const std::string release_text = unpacked(packed, kMaxRelease, what);
    used -= kMaxRelease - std::min(kMaxRelease, release_text.size());
    fill(record, release_text, what);
    release.record = std::move(record);
    if (!release.record.unread.empty()) {
      release.error = release.record.unread.front().reason;
      release.code = release.record.unread.front().code;
    }
  } catch (const sdk::Failure& failure) {
    release.record.unread.push_back({"**", failure.code, failure.what()});
    release.error = failure.what();
    release.code = failure.code;
  }
  keep(release, release.record.metadata["namespace"], release.record.body.size());
  make_room();
}

void HelmReleases::keep(Release& release, const std::string& name_space, std::size_t bytes) {
  kept_by_[name_space] += bytes - release.kept;
  kept_ += bytes - release.kept;
  release.kept = bytes;
}

/// Makes room so that write access in one or two namespaces cannot take the room of others.
void HelmReleases::make_room() {
  while (kept_ > kMaxKept) {
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    const std::string name_space = std::max_element(kept_by_.begin(), kept_by_.end(), less)->first;
    Release* largest = nullptr;
    for (auto one = releases_.lower_bound(name_space + "/");
         one != releases_.end() && one->first.starts_with(name_space + "/"); ++one) {
      if (largest == nullptr || one->second.kept > largest->kept) largest = &one->second;
    }
    largest->error = "release Secret " + largest->record.metadata["secret"] +
                     ": the releases of all namespaces are more than is kept, and its namespace has most";
    largest->code = DRIFTD_BUDGET;
    largest->record.unread = {{"**", DRIFTD_BUDGET, largest->error}};
    largest->record.body = "{}";
    largest->record.sensitive.clear();
    keep(*largest, name_space, 0);
  }
}

void HelmReleases::add(const json& secret) {
  const std::string id = release_id(secret);
  const std::string number = text(secret, {"metadata", "labels", "version"});
  Revision revision{0, text(secret, {"metadata", "labels", "status"}), text(secret, {"metadata", "creationTimestamp"})};
  std::from_chars(number.data(), number.data() + number.size(), revision.number);
  if (id.empty() || revision.number == 0 || revision.status == "superseded" || revision.status == "uninstalled") return;
  Release& release = releases_[id];
  if (revision.number > release.last.number) release.last = revision;
  const bool deployed = revision.status == "deployed", shown = release.shown.status == "deployed";
  const bool newer = revision.number > release.shown.number;
  if (deployed ? !shown || newer : !shown && newer) show(release, revision, secret);
}

std::vector<sdk::Record> HelmReleases::records(std::vector<sdk::Diagnostic>& diagnostics, std::int64_t now_ns) {
  unpack_all();
  std::vector<sdk::Record> out;
  for (const auto& [id, release] : releases_) {
    sdk::Record& record = out.emplace_back(release.record);
    if (!release.error.empty()) diagnostics.push_back({release.code, kHelmRelease, id, {}, id + ": " + release.error});
    if (!is_pending(release.last.status)) continue;
    const std::string revision = "revision " + std::to_string(release.last.number);
    if (!is_older(release.last.created, kInFlight, now_ns)) {
      record.unread.push_back({"**", DRIFTD_UNAVAILABLE, revision + " is in flight (" + release.last.status + ")"});
      record.body = "{}";  // its content is not known, so that nobody approves something else than what is there
      record.sensitive.clear();
      continue;
    }
    record.metadata["pending"] = revision + " is " + release.last.status + " since " + release.last.created;
    diagnostics.push_back(
        {DRIFTD_CONFLICT,
         kHelmRelease,
         id,
         {},
         id + ": " + record.metadata["pending"] + ": Helm was interrupted, or this Secret is not Helm's; revision " +
             std::to_string(release.shown.number) + " is judged. Roll back or delete the pending revision"});
  }
  return out;
}

}  // namespace driftd::k8s
