// SPDX-License-Identifier: Apache-2.0
// HCP Terraform (Terraform Cloud) and Terraform Enterprise, by their API: the workspace's current state version, the
// run that made it, and the state behind it.
#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "common/bounded_json.hpp"
#include "common/settings_reader.hpp"
#include "common/shown_url.hpp"
#include "terraform/http_pool.hpp"
#include "terraform/state.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

const json& at(const json& from, std::initializer_list<const char*> path) {
  static const json kNone;
  const json* out = &from;
  for (const char* key : path) {
    const auto found = out->is_object() ? out->find(key) : out->end();
    if (found == out->end()) return kNone;
    out = &*found;
  }
  return *out;
}
std::string text_at(const json& from, std::initializer_list<const char*> path) {
  const json& found = at(from, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::string origin_of(const std::string& url) {
  const auto host = url.find("://");
  return host == std::string::npos ? "" : url.substr(0, url.find('/', host + 3));
}

class CloudSource final : public Source {
 public:
  CloudSource(const Settings& settings, common::SettingsReader& from)
      : base_(base_of(from.text("hostname", "app.terraform.io"))),
        organization_(from.required_text("organization", "the name of an organization")),
        token_(from.required_text("token", "an API token that may read state versions")),
        http_(settings, tls_of(from)) {
    common::SettingsReader workspaces = from.object("workspaces");
    workspace_ = workspaces.text("name", settings.workspace == "default" ? "" : settings.workspace);
    workspaces.finish();
    if (workspace_.empty()) {
      from.refuse("workspaces", "{ name: <the workspace> }", "no name", "add it to " + from.where());
    }
  }

  Fetched fetch(sdk::Call& call, const std::string& known) override {
    Fetched out;
    const json version = current(call, out.sent_ns);
    out.stamp = text_at(version, {"data", "id"});
    out.unchanged = !out.stamp.empty() && out.stamp == known;
    if (out.unchanged) return out;
    download(call, text_at(version, {"data", "attributes", "hosted-state-download-url"}), out.state);
    {
      const std::lock_guard lock(mutex_);
      fetched_ = out.stamp;
    }
    out.provenance["state_version"] = out.stamp;
    const std::string run = text_at(version, {"data", "relationships", "run", "data", "id"});
    if (!run.empty()) add_run(call, run, out);
    return out;
  }

  /// Reads the first bytes of the state only if its version is not the one that was fetched last.
  Probe probe(sdk::Call& call) override {
    const ProbeDeadline end = probe_deadline();
    const auto ask = [&](const std::string& url, const char* what) {
      const http::Response answer = http_.probe(call, url, headers(call), end);
      if (answer.status != 200) refuse_api(answer, what);
      return common::parse_bounded(answer.body).value;
    };
    std::string id = remembered();
    if (id.empty()) id = text_at(ask(workspace_url(), "the workspace"), {"data", "id"});
    const json version = ask(version_url(id), "the current state version");
    const std::string url = text_at(version, {"data", "attributes", "hosted-state-download-url"});
    if (url.empty() || fetched(text_at(version, {"data", "id"}))) return {};
    const http::Response answer = http_.probe(call, url, headers_for(call, url), end);
    if (answer.status != 200) refuse_api(answer, "the state's download");
    return {beginning_of(answer.body)};
  }

 private:
  static std::string base_of(const std::string& hostname) {
    return hostname.find("://") == std::string::npos ? "https://" + hostname : base_url("hostname", hostname);
  }
  static http::Tls tls_of(common::SettingsReader& from) {
    http::Tls out;
    out.ca_file = from.text("ca_file");
    return out;
  }

  std::vector<std::string> headers(sdk::Call& call) const {
    return {"Authorization: Bearer " + call.secret(token_), "Content-Type: application/vnd.api+json"};
  }
  std::string workspace_url() const {
    return base_ + "/api/v2/organizations/" + http::escape(organization_) + "/workspaces/" + http::escape(workspace_);
  }
  std::string version_url(const std::string& id) const {
    return base_ + "/api/v2/workspaces/" + http::escape(id) + "/current-state-version";
  }
  std::string name() const { return organization_ + "/" + workspace_ + " at " + common::shown_url(base_); }

  /// The API answers 404 even if a right is missing.
  [[noreturn]] void refuse_api(const http::Response& answer, const std::string& what) const {
    const std::string right = "read state versions of " + organization_ + "/" + workspace_;
    if (answer.status == 404) {
      throw sdk::Failure(DRIFTD_DENIED, name() + ": " + what + " is not there, or the token may not see it", {}, right);
    }
    refuse(answer, {"GET " + name() + ": " + what, right, "the token"});
  }
  json get(sdk::Call& call, const std::string& url, const std::string& what, std::int64_t* sent_ns = nullptr) {
    const http::Response answer = http_.get(call, url, headers(call));
    if (answer.status != 200) refuse_api(answer, what);
    if (sent_ns != nullptr) *sent_ns = answer.sent_ns;
    json out = common::parse_bounded(answer.body).value;
    if (text_at(out, {"data", "id"}).empty())
      throw sdk::Failure(DRIFTD_CORRUPT, name() + ": " + what + ": the answer has no data.id");
    return out;
  }

  bool fetched(const std::string& version) const {
    const std::lock_guard lock(mutex_);
    return fetched_ == version;
  }
  std::string remembered() const {
    const std::lock_guard lock(mutex_);
    return workspace_id_;
  }
  std::string workspace_id(sdk::Call& call) {
    std::string id = remembered();
    if (!id.empty()) return id;
    id = text_at(get(call, workspace_url(), "the workspace"), {"data", "id"});
    const std::lock_guard lock(mutex_);
    return workspace_id_ = id;
  }

  json current(sdk::Call& call, std::int64_t& sent_ns) {
    try {
      return get(call, version_url(workspace_id(call)), "the current state version", &sent_ns);
    } catch (const sdk::Failure&) {
      const std::lock_guard lock(mutex_);
      workspace_id_.clear();  // it may have been created again under the same name
      throw;
    }
  }

  /// The state is behind a signed URL, often on another host, which must not get the token.
  std::vector<std::string> headers_for(sdk::Call& call, const std::string& url) const {
    const bool ours = origin_of(url) == base_;
    if (!ours && url.rfind("https://", 0) != 0)
      throw sdk::Failure(DRIFTD_CORRUPT, name() + ": the state's download address is no https URL");
    return ours ? headers(call) : std::vector<std::string>{};
  }
  void download(sdk::Call& call, const std::string& url, Spool& to) {
    if (url.empty()) no_state(name());
    const http::Response answer = http_.get_into(call, url, headers_for(call, url), to);
    if (answer.status == 404) no_state(name());
    if (answer.status != 200) refuse_api(answer, "the state's download");
    to.finish();
    if (to.size() == 0) no_state(name());
  }

  void add_run(sdk::Call& call, const std::string& id, Fetched& out) {
    out.provenance["run_id"] = id;
    try {
      const json run = get(call, base_ + "/api/v2/runs/" + http::escape(id), "run " + id);
      const std::string status = text_at(run, {"data", "attributes", "status"}),
                        source = text_at(run, {"data", "attributes", "source"});
      if (!status.empty()) out.provenance["run_status"] = status;
      if (!source.empty()) out.provenance["run_source"] = source;
    } catch (const sdk::Failure& failure) {  // only provenance: the state is usable without it
      if (failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE || failure.code == DRIFTD_THROTTLED)
        throw;
      call.log(DRIFTD_LOG_INFO, "the run of a state version could not be read", {{"run", id}, {"why", failure.what()}});
    }
  }

  const std::string base_, organization_, token_;
  std::string workspace_;
  mutable std::mutex mutex_;
  std::string workspace_id_, fetched_;  ///< the workspace's id; of the version that was fetched last
  HttpPool http_;
};

}  // namespace

std::unique_ptr<Source> open_cloud(const Settings& settings) {
  common::SettingsReader from(settings.backend, "settings.backend");
  from.text("type");
  auto out = std::make_unique<CloudSource>(settings, from);
  from.finish();
  return out;
}

}  // namespace driftd::terraform
