// SPDX-License-Identifier: Apache-2.0
#include "operator/kube_events.hpp"

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/log.hpp"
#include "kube/json_access.hpp"
#include "operator/failure_text.hpp"
#include "operator/times.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

constexpr std::chrono::minutes kRepeat{10};
constexpr std::size_t kMaxMessage = 1'024, kMaxRemembered = 10'000;

}  // namespace

KubeEvents::KubeEvents(std::string instance)
    : instance_(std::move(instance)),
      number_(static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())) {}

bool KubeEvents::is_new(const std::string& key) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  std::erase_if(written_, [&](const auto& one) { return now - one.second > kRepeat; });
  if (written_.size() >= kMaxRemembered) return false;
  return written_.emplace(key, now).second;
}

void KubeEvents::write(sdk::Call& call, kube::ObjectClient& client, const json& about, const Note& note) {
  const std::string uid = kube::text(about, {"metadata", "uid"}), name = kube::text(about, {"metadata", "name"});
  if (!is_new(uid + "/" + note.reason + "/" + note.message)) return;
  const std::string own = kube::text(about, {"metadata", "namespace"});
  json event = {{"apiVersion", kEvents.api_version()},
                {"kind", kEvents.object},
                {"metadata",
                 {{"name", fmt::format("{}.{:016x}", name, ++number_)}, {"namespace", own.empty() ? "default" : own}}},
                {"eventTime", micro_time_now()},
                {"reportingController", "driftd.io/operator"},
                {"reportingInstance", instance_},
                {"action", "Reconcile"},
                {"reason", note.reason},
                {"note", note.message.substr(0, kMaxMessage)},
                {"type", note.warning ? "Warning" : "Normal"},
                {"regarding",
                 {{"apiVersion", kube::find(about, {"apiVersion"})},
                  {"kind", kube::find(about, {"kind"})},
                  {"name", name},
                  {"uid", uid}}}};
  if (!own.empty()) event["regarding"]["namespace"] = own;
  try {
    client.create(call, kEvents, event);
  } catch (const sdk::Failure& failure) {
    log::room("operator").warn("an Event about {} could not be written: {}", escaped(name), escaped(text_of(failure)));
  }
}

}  // namespace driftd::op
