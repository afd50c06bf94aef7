// SPDX-License-Identifier: Apache-2.0
#include "operator/pattern_status.hpp"

#include <nlohmann/json.hpp>

#include "kube/json_access.hpp"
#include "operator/pattern_deployment.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

const char* name_of(Binding::State state) {
  switch (state) {
    case Binding::State::bound:
      return "Bound";
    case Binding::State::missing:
      return "Missing";
    case Binding::State::not_ready:
      return "NotReady";
    case Binding::State::error:
      break;
  }
  return "Error";
}

std::int64_t number_at(const json& tree, std::initializer_list<const char*> path, std::int64_t otherwise) {
  const json& found = kube::find(tree, path);
  return found.is_number_integer() ? found.get<std::int64_t>() : otherwise;
}

Condition bound(const Bindings& bindings) {
  Condition out{"BackendsBound", Truth::yes, "Bound", {}};
  for (const auto& each : bindings.slots) {
    if (each.state == Binding::State::bound) continue;
    if (out.truth == Truth::yes) out.reason = name_of(each.state);
    out.truth = Truth::no;
    out.message += (out.message.empty() ? "" : "; ") + each.slot + ": " + each.message;
  }
  return out;
}

Condition running(const json& pattern, const Deployed& deployed) {
  const std::int64_t wanted =
      number_at(deployed.current, {"spec", "replicas"}, number_at(pattern, {"spec", "replicas"}, 1));
  const std::int64_t ready = number_at(deployed.current, {"status", "readyReplicas"}, 0);
  const bool is_current = number_at(deployed.current, {"status", "observedGeneration"}, 0) >=
                          number_at(deployed.current, {"metadata", "generation"}, 0);
  if (is_current && ready >= wanted) return {"Ready", Truth::yes, "Ready", {}};
  std::string why = std::to_string(ready) + " of " + std::to_string(wanted) + " replicas are ready";
  for (const auto& each : kube::list(deployed.current, {"status", "conditions"})) {
    const std::string type = kube::text(each, {"type"}), truth = kube::text(each, {"status"});
    const bool fails = (type == "Progressing" && truth == "False") || (type == "ReplicaFailure" && truth == "True");
    if (fails) why += ": " + kube::text(each, {"message"});
  }
  return {"Ready", Truth::no, "ReplicasNotReady", why};
}

}  // namespace

Condition unwritten(bool exists) {
  if (exists) return {"Deployed", Truth::yes, "Kept", "the Deployment stays as it was until all slots are bound again"};
  return {"Deployed", Truth::no, "WaitsForBackends", "the Deployment is made when all slots are bound"};
}

PatternState judge(const json& pattern, const Bindings& bindings, const Deployed& deployed) {
  const Condition backends = bound(bindings);
  bool wrong = deployed.must_be_corrected;
  for (const auto& each : bindings.slots) wrong = wrong || each.state == Binding::State::error;
  Condition ready = running(pattern, deployed);
  for (const auto* cause : {&deployed.condition, &backends}) {
    if (cause->truth != Truth::yes) ready = {"Ready", cause->truth, cause->reason, cause->message};
  }
  PatternState out;
  out.phase = wrong ? "Error" : ready.truth == Truth::yes ? "Ready" : "Pending";
  out.conditions = {ready, backends, deployed.condition};
  const json& scaling = kube::find(pattern, {"spec", "autoscaling"});
  if (scaling.is_object() && kube::find(scaling, {"enabled"}) != json(false)) {
    out.conditions.push_back({"Scaled", Truth::no, "NotBuilt",
                              "this operator makes no ScaledObject yet; write one for the Deployment by hand: "
                              "spec.replicas count only at first"});
  }
  return out;
}

json pattern_status_of(const PatternState& state, const json& pattern, const Bindings& bindings,
                       const Deployed& deployed, const std::string& now) {
  json out = {{"phase", state.phase},
              {"replicas", number_at(deployed.current, {"status", "replicas"}, 0)},
              {"readyReplicas", number_at(deployed.current, {"status", "readyReplicas"}, 0)},
              {"conditions", render_conditions(state.conditions, pattern, now)},
              {"bindings", json::array()}};
  kube::put(out, "observedGeneration", kube::find(pattern, {"metadata", "generation"}));
  const std::string in_pods =
      kube::text(deployed.current, {"spec", "template", "metadata", "annotations", kCredentials});
  for (const auto& each : bindings.slots) {
    json made = {{"slot", each.slot}, {"state", name_of(each.state)}};
    if (!each.backend.empty()) made["backend"] = each.backend;
    if (!each.endpoint.empty()) made["endpoint"] = each.endpoint;
    if (!each.message.empty()) made["message"] = each.message;
    // Only with a rollout at each rotation it is known which one the Pods have.
    const std::string version = each.slot + "=" + each.secret_version;
    if (!each.secret_version.empty() && ("," + in_pods + ",").find("," + version + ",") != std::string::npos) {
      made["secretVersion"] = each.secret_version;
    }
    out["bindings"].push_back(std::move(made));
  }
  return out;
}

bool is_pattern_status_shown(const json& status, const json& pattern) {
  const json& shown = kube::find(pattern, {"status"});
  for (const char* name : {"phase", "replicas", "readyReplicas", "observedGeneration", "conditions", "bindings"}) {
    if (kube::find(status, {name}) != kube::find(shown, {name})) return false;
  }
  return true;
}

}  // namespace driftd::op
