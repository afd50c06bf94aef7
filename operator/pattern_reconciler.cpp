// SPDX-License-Identifier: Apache-2.0
#include "operator/pattern_reconciler.hpp"

#include "base/escape.hpp"
#include "base/log.hpp"
#include "kube/json_access.hpp"
#include "operator/failure_text.hpp"
#include "operator/host_call.hpp"
#include "operator/pattern_deployment.hpp"
#include "operator/shared_credentials.hpp"
#include "operator/times.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kCallTime{20};
constexpr const char* kReferencePrefix = "pattern:";

std::string ready_message(const json& pattern) {
  for (const auto& each : kube::list(pattern, {"status", "conditions"})) {
    if (kube::text(each, {"type"}) == "Ready") return kube::text(each, {"message"});
  }
  return {};
}

bool is_for_people_to_mend(const Condition& deployed) {
  return deployed.reason == "NameTaken" || deployed.reason == "Refused";
}

std::chrono::steady_clock::time_point call_end(const controller::Context& context) {
  return std::min(context.deadline, std::chrono::steady_clock::now() + kCallTime);
}

}  // namespace

std::string reference_of_pattern(const controller::Key& pattern) { return kReferencePrefix + render(pattern); }

std::optional<controller::Key> pattern_of_reference(const std::string& who) {
  const std::size_t slash = who.find('/'), begin = std::string_view(kReferencePrefix).size();
  if (!who.starts_with(kReferencePrefix) || slash == who.npos) return std::nullopt;
  return controller::Key{who.substr(begin, slash - begin), who.substr(slash + 1)};
}

controller::Outcome PatternReconciler::reconcile(const controller::Key& key, controller::Context& context) {
  const Sighting seen = parts_.view.find({kPrismPatterns.object, key.name_space, key.name});
  if (seen.state == Sighting::State::missing) return controller::Success{};
  if (seen.state == Sighting::State::unknown) return controller::Requeue{"prismpatterns: " + seen.reason};
  const json& pattern = seen.object;
  const k8s::Ref deployment{kDeployments.object, key.name_space, key.name};
  Bindings bindings = bindings_of(pattern, parts_.view, limits_);
  bindings.references.push_back(deployment);
  bindings.references.push_back({kSecrets.object, key.name_space, shared_secret_name(key.name)});
  parts_.view.set_references(reference_of_pattern(key), bindings.references);
  // After a start what was not listed yet is not missing. The view calls again when it was.
  for (const auto& ref : bindings.references) {
    if (!parts_.view.is_known(ref.type)) return controller::Success{};
  }
  bindings = bindings_of(pattern, parts_.view, limits_);  // what changed before it was noted woke nobody
  json current = parts_.view.find(deployment).object;
  if (!is_owned(current, pattern)) current = nullptr;
  try {
    const Condition deployed =
        bindings.all_bound() ? deploy(pattern, bindings, current, context) : unwritten(!current.is_null());
    const Deployed what{deployed, current, is_for_people_to_mend(deployed)};
    const PatternState state = judge(pattern, bindings, what);
    const json status = pattern_status_of(state, pattern, bindings, what, time_now());
    if (!is_pattern_status_shown(status, pattern)) write(pattern, state, status, context);
    if (deployed.reason == "Denied") return controller::Requeue{deployed.message};
  } catch (const sdk::Failure& failure) {
    if (failure.code == DRIFTD_NOT_FOUND) return controller::Success{};  // deleted meanwhile
    return controller::Requeue{text_of(failure)};
  }
  return controller::Success{};
}

bool PatternReconciler::is_shared(const json& stored, const Bindings& bindings) const {
  const std::string versions = shared_versions_of(bindings);
  // Nothing is to be shared: what is there is not ours, or is emptied.
  if (versions.empty()) return kube::text(stored, {"metadata", "annotations", kSharedVersions}).empty();
  const std::lock_guard lock(mutex_);
  const auto written = shared_.find(kube::place_of(stored));
  return written != shared_.end() && written->second.versions == versions &&
         written->second.digest == kube::text(stored, {"digest"});
}

bool PatternReconciler::share(kube::ObjectClient& client, HostCall& host, const json& pattern,
                              const Bindings& bindings) {
  const auto read = [&](const k8s::Ref& ref) {
    auto stored = client.get(host.call(), kSecrets, {ref.space, ref.name});
    if (!stored) throw sdk::Failure(DRIFTD_UNAVAILABLE, "Secret " + ref.space + "/" + ref.name + " is gone");
    return std::move(*stored);
  };
  const json wanted = shared_secret_of(pattern, bindings, read);
  const auto stored = client.get(host.call(), kSecrets, kube::place_of(wanted));
  if (stored && !is_owned(*stored, pattern)) return false;
  const json written = client.apply(host.call(), kSecrets, wanted, true);
  const std::lock_guard lock(mutex_);
  shared_[kube::place_of(wanted)] = {shared_versions_of(bindings), content_digest(kube::find(written, {"data"}))};
  return true;
}

Condition PatternReconciler::deploy(const json& pattern, const Bindings& bindings, json& current,
                                    controller::Context& context) {
  json wanted = deployment_of(pattern, bindings);
  keep_scale(wanted, pattern, current);
  const Condition applied{"Deployed", Truth::yes, "Applied", {}};
  const k8s::Ref shared{kSecrets.object, kube::text(wanted, {"metadata", "namespace"}),
                        shared_secret_name(kube::text(wanted, {"metadata", "name"}))};
  const bool has_secret = is_shared(parts_.view.find(shared).object, bindings);
  if (has_secret && is_deployed(current, wanted)) return applied;
  const std::string name =
      render(controller::Key{kube::text(wanted, {"metadata", "namespace"}), kube::text(wanted, {"metadata", "name"})});
  Condition out = applied;
  HostCall host(context.stop, call_end(context));
  try {
    parts_.clients.with(host.call(), [&](kube::ObjectClient& client) {
      if (!has_secret && !share(client, host, pattern, bindings)) {  // first: the Pods need it
        out = {"Deployed", Truth::no, "NameTaken",
               "Secret " + shared.space + "/" + shared.name +
                   " exists and belongs to somebody else; the credentials of the backends need this name: rename the "
                   "Secret or the PrismPattern"};
        return;
      }
      // Whether the name is somebody else's is asked of the server: the view has only those of the operator.
      const auto stored = client.get(host.call(), kDeployments, kube::place_of(wanted));
      if (stored && !is_owned(*stored, pattern)) {
        out = {"Deployed", Truth::no, "NameTaken",
               "Deployment " + name + " exists and belongs to somebody else; rename it or the PrismPattern"};
        return;
      }
      current = client.apply(host.call(), kDeployments, wanted, true);
    });
  } catch (const sdk::Failure& failure) {
    if (failure.code == DRIFTD_INVALID) {
      return {"Deployed", Truth::no, "Refused", "Deployment " + name + " is refused: " + failure.what()};
    }
    if (failure.code != DRIFTD_DENIED) throw;
    return {"Deployed", Truth::no, "Denied", "Deployment " + name + " cannot be written: " + text_of(failure)};
  }
  if (out.reason == "Applied") log::room("operator").info("PrismPattern {}: Deployment written", escaped(name));
  return out;
}

void PatternReconciler::write(const json& pattern, const PatternState& state, const json& status,
                              controller::Context& context) {
  json metadata = {{"name", kube::find(pattern, {"metadata", "name"})},
                   {"namespace", kube::find(pattern, {"metadata", "namespace"})},
                   {"resourceVersion", kube::find(pattern, {"metadata", "resourceVersion"})}};
  const json applied = {{"apiVersion", kPrismPatterns.api_version()},
                        {"kind", kPrismPatterns.object},
                        {"metadata", std::move(metadata)},
                        {"status", status}};
  HostCall host(context.stop, call_end(context));
  parts_.clients.with(host.call(), [&](kube::ObjectClient& client) {
    client.apply_status(host.call(), kPrismPatterns, applied, true);
    const Condition& ready = state.conditions.front();
    if (kube::text(pattern, {"status", "phase"}) == state.phase && ready_message(pattern) == ready.message) return;
    log::room("operator")
        .info("PrismPattern {}/{}: {}{}{}", escaped(kube::text(pattern, {"metadata", "namespace"})),
              escaped(kube::text(pattern, {"metadata", "name"})), state.phase, ready.message.empty() ? "" : ": ",
              escaped(ready.message));
    if (ready.reason == "ReplicasNotReady") return;  // the Deployment has Events of its own about that
    const bool good = state.phase == "Ready";
    parts_.events.write(host.call(), client, pattern,
                        {!good, ready.reason, good ? "all slots are bound and all replicas are ready" : ready.message});
  });
}

controller::Outcome PatternReconciler::finalize(const controller::Key& key, controller::Context&) {
  const Sighting seen = parts_.view.find({kPrismPatterns.object, key.name_space, key.name});
  if (seen.state != Sighting::State::missing) return controller::Success{};
  parts_.view.set_references(reference_of_pattern(key), {});
  const std::lock_guard lock(mutex_);
  shared_.erase({key.name_space, shared_secret_name(key.name)});
  return controller::Success{};
}

}  // namespace driftd::op
