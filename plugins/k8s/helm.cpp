// SPDX-License-Identifier: Apache-2.0
#include "k8s/helm.hpp"

#include <charconv>
#include <ctime>

#include "common/bounded_json.hpp"
#include "k8s/base64.hpp"
#include "k8s/kinds.hpp"
#include "k8s/mapping.hpp"
#include "k8s/tree.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kMostRelease = 32u << 20;  // a Secret holds 1 MiB; charts pack about 10:1

/// Helm's own: base64 in base64 of the API, gzip (optional in old ones), JSON.
common::BoundedJson unpack(const json& secret) {
  const std::string what = "release Secret " + text(secret, {"metadata", "name"});
  const auto outer = decode_base64(text(secret, {"data", "release"}));
  const auto inner = outer ? decode_base64(*outer) : std::nullopt;
  if (!inner) throw sdk::Failure(DRIFTD_CORRUPT, what + ": its `release` is no base64 in base64");
  const bool packed = inner->starts_with("\x1f\x8b\x08");
  auto out = common::parse_bounded(packed ? gunzip(*inner, kMostRelease, what) : *inner);
  if (!out.value.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, what + ": its `release` holds no JSON object");
  return out;
}

sdk::Record base_of(const json& secret, const std::string& id) {
  sdk::Record out;
  out.kind = kHelmRelease;
  out.id = id;
  out.version = text(secret, {"metadata", "resourceVersion"});
  out.origin = "helm";
  out.metadata = {{"namespace", text(secret, {"metadata", "namespace"})},
                  {"release", text(secret, {"metadata", "labels", "name"})},
                  {"revision", text(secret, {"metadata", "labels", "version"})},
                  {"secret", text(secret, {"metadata", "name"})},
                  {"resource_version", out.version}};
  return out;
}

sdk::Record record_of(const json& secret, const std::string& id) {
  const auto [release, cut] = unpack(secret);
  sdk::Record out = base_of(secret, id);
  json body = json::object(), status = json::object();
  body["chart"] = text(release, {"chart", "metadata", "name"});
  body["chart_version"] = text(release, {"chart", "metadata", "version"});
  body["app_version"] = text(release, {"chart", "metadata", "appVersion"});
  const json& values = find(release, {"config"});
  if (cut) {
    out.unread.push_back({"values", DRIFTD_CORRUPT, "the release nests deeper than " + std::to_string(common::kMaxNesting) + " levels"});
  } else {
    body["values"] = values.is_object() ? values : json::object();  // a digest when it leaves the worker
  }
  body["status"] = text(release, {"info", "status"});
  put(status, "revision", find(release, {"version"}));
  put(status, "last_deployed", find(release, {"info", "last_deployed"}));
  put(status, "description", find(release, {"info", "description"}));
  out.body = body.dump();
  out.status = status.dump();
  out.external_name = text(release, {"info", "first_deployed"});  // one that was uninstalled begins anew
  out.sensitive = {"values"};
  return out;
}

/// False also where the API server says no time, which it always does: nothing then says how long it hides.
bool is_older(const std::string& rfc3339, std::chrono::nanoseconds age, std::int64_t now_ns) {
  std::tm at{};
  if (::strptime(rfc3339.c_str(), "%Y-%m-%dT%H:%M:%S", &at) == nullptr) return false;
  return now_ns - std::int64_t{::timegm(&at)} * 1'000'000'000 > age.count();
}

bool is_pending(const std::string& status) { return status.starts_with("pending-") || status == "uninstalling"; }

}  // namespace

std::string release_of(const json& secret) {
  const std::string name = text(secret, {"metadata", "labels", "name"});
  const bool helm = text(secret, {"metadata", "labels", "owner"}) == "helm";
  return helm && !name.empty() ? text(secret, {"metadata", "namespace"}) + "/" + name : std::string();
}

void HelmReleases::show(Release& release, const Revision& revision, const json& secret) {
  release.shown = revision;
  release.error.clear();
  try {
    release.record = record_of(secret, release_of(secret));
    if (!release.record.unread.empty()) release.error = release.record.unread.front().reason;
    release.code = DRIFTD_CORRUPT;
  } catch (const sdk::Failure& failure) {
    release.record = base_of(secret, release_of(secret));
    release.record.unread.push_back({"**", failure.code, failure.what()});
    release.error = failure.what();
    release.code = failure.code;
  }
}

void HelmReleases::add(const json& secret) {
  const std::string id = release_of(secret);
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

std::vector<sdk::Record> HelmReleases::records(std::vector<sdk::Diagnostic>& diagnostics, std::int64_t now_ns) const {
  std::vector<sdk::Record> out;
  for (const auto& [id, release] : releases_) {
    sdk::Record& record = out.emplace_back(release.record);
    if (!release.error.empty()) diagnostics.push_back({release.code, kHelmRelease, id, {}, id + ": " + release.error});
    if (!is_pending(release.last.status)) continue;
    const std::string revision = "revision " + std::to_string(release.last.number);
    if (!is_older(release.last.created, kInFlight, now_ns)) {
      record.unread.push_back({"**", DRIFTD_UNAVAILABLE, revision + " is in flight (" + release.last.status + ")"});
      continue;
    }
    record.metadata["pending"] = revision + " is " + release.last.status + " since " + release.last.created;
    diagnostics.push_back({DRIFTD_CONFLICT, kHelmRelease, id, {},
                           id + ": " + record.metadata["pending"] + ": Helm was interrupted, or this Secret is not Helm's; revision " +
                               std::to_string(release.shown.number) + " is judged. Roll back or delete the pending revision"});
  }
  return out;
}

}  // namespace driftd::k8s
