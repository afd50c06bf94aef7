// SPDX-License-Identifier: Apache-2.0
#include "operator/backend_reconciler.hpp"

#include "base/escape.hpp"
#include "base/log.hpp"
#include "kube/json_access.hpp"
#include "operator/failure_text.hpp"
#include "operator/host_call.hpp"
#include "operator/times.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

/// How long to wait for the agent before the object is looked at again. It normally is sooner: the registry tells.
constexpr std::chrono::seconds kLookAgain{2};
constexpr std::chrono::seconds kCallTime{20};

/// What the object says of itself so far.
std::string ready_message(const json& object) {
  for (const auto& each : kube::list(object, {"status", "conditions"})) {
    if (kube::text(each, {"type"}) == "Ready") return kube::text(each, {"message"});
  }
  return {};
}

}  // namespace

controller::Outcome BackendReconciler::reconcile(const controller::Key& key, controller::Context& context) {
  const Sighting seen = parts_.view.backend(key.name);
  if (seen.state == Sighting::State::missing) return controller::Success{};
  if (seen.state == Sighting::State::unknown) return controller::Requeue{"prismbackends: " + seen.reason};
  const Defined defined = read_definition(seen.object, limits_);
  parts_.view.set_references(key.name, defined.references());
  BackendState state = examine(seen.object, defined, parts_.view, limits_, parts_.registry.find(key.name));
  if (state.waits) {
    parts_.registry.ask_again(key.name);
    state = examine(seen.object, defined, parts_.view, limits_, parts_.registry.find(key.name));
  }
  const json status = status_of(state, seen.object, time_now());
  if (!is_shown(status, seen.object)) {
    try {
      write(seen.object, state, context);
    } catch (const sdk::Failure& failure) {
      if (failure.code == DRIFTD_NOT_FOUND) return controller::Success{};  // deleted meanwhile
      return controller::Requeue{text_of(failure)};
    }
  }
  if (state.waits) return controller::RequeueAfter{kLookAgain};
  return controller::Success{};
}

void BackendReconciler::write(const json& object, const BackendState& state, controller::Context& context) {
  const std::string name = kube::text(object, {"metadata", "name"});
  json applied = {
      {"apiVersion", kPrismBackends.api_version()},
      {"kind", kPrismBackends.object},
      {"metadata", {{"name", name}, {"resourceVersion", kube::find(object, {"metadata", "resourceVersion"})}}},
      {"status", status_of(state, object, time_now())}};
  HostCall host(context.stop, std::min(context.deadline, std::chrono::steady_clock::now() + kCallTime));
  parts_.clients.with(host.call(), [&](kube::ObjectClient& client) {
    client.apply_status(host.call(), kPrismBackends, applied, true);
    const std::string before = kube::text(object, {"status", "phase"});
    const std::string told = ready_message(object);
    if (before == state.phase && told == state.message) return;
    if (state.phase == "Pending") return;
    log::room("operator")
        .info("PrismBackend {}: {}{}{}", escaped(name), state.phase, state.message.empty() ? "" : ": ",
              escaped(state.message));
    const bool failed = state.phase == "Error";
    parts_.events.write(host.call(), client, object,
                        {failed, failed ? state.conditions.front().reason : state.phase,
                         failed ? state.message : "resolved to " + state.endpoint});
  });
}

controller::Outcome BackendReconciler::finalize(const controller::Key& key, controller::Context&) {
  // The agent unregisters it by itself; nothing in the cluster belongs to it.
  if (parts_.view.backend(key.name).state == Sighting::State::missing) parts_.view.set_references(key.name, {});
  return controller::Success{};
}

}  // namespace driftd::op
