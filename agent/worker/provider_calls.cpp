// SPDX-License-Identifier: Apache-2.0
// The calls of the provider table: from a frame's payload to the plugin's function and back.
#include <cstddef>

#include "worker/abi_input.hpp"
#include "worker/guarded_struct.hpp"
#include "worker/provider_host.hpp"

namespace driftd::worker {
namespace {

struct HealthPush {
  LoadedInstance* instance;
  std::optional<core::HealthReport> report;
};
void push_health(void* user, const driftd_health* health) {
  auto& to = *static_cast<HealthPush*>(user);
  to.report = read_health(*to.instance, adopt<driftd_health>(health));
}

struct VerdictPush {
  const LoadedInstance* instance;
  std::vector<core::Demotion> demotions;
};
void push_verdict(void* user, const driftd_verdict* given) {
  auto& to = *static_cast<VerdictPush*>(user);
  const auto verdict = adopt<driftd_verdict>(given);
  const bool known = verdict.verdict == DRIFTD_VERDICT_EQUIVALENT || verdict.verdict == DRIFTD_VERDICT_UNSETTLED;
  if (!known || to.demotions.size() >= 65536) return;
  to.demotions.push_back({verdict.index, verdict.verdict == DRIFTD_VERDICT_UNSETTLED,
                          to.instance->scrubber.printable(view(verdict.reason), 1024)});
}

}  // namespace

driftd_status ProviderHost::do_open(ActiveCall&, const std::string&, driftd_call handle, std::string&) {
  const driftd_open_args args{sizeof args, 0, str(loaded_.open.backend), str(loaded_.open.settings_json)};
  driftd_instance made = nullptr;
  const driftd_status status =
      loaded_.library->sink ? open_sink(handle, &made) : loaded_.library->table.open(handle, &args, &made);
  if (status != DRIFTD_OK) return status;
  instance_ = made;
  opened_ = true;
  return DRIFTD_OK;
}

driftd_status ProviderHost::do_refresh(ActiveCall&, const std::string& payload, driftd_call handle, std::string& body) {
  const auto call = ipc::decode<ipc::RefreshCall>(payload);
  if (!call) return DRIFTD_INVALID;
  std::vector<driftd_str> kinds;
  for (const auto& kind : call->kinds) kinds.push_back(str(kind));
  const driftd_refresh_args args{sizeof args,
                                 call->full ? DRIFTD_REFRESH_FULL : 0,
                                 str(call->cursor),
                                 kinds.empty() ? nullptr : kinds.data(),
                                 static_cast<std::uint32_t>(kinds.size()),
                                 0};
  GuardedStruct<driftd_refresh_result> result;
  loaded_.sent.begin(loaded_.open.digest_seed, call->digests, call->whole);
  const driftd_status status = loaded_.library->table.refresh(instance_, handle, &args, &result.value);
  if (!result.intact()) loaded_.misuse("refresh: wrote behind the `size` of its result");
  body = ipc::encode(ipc::RefreshAnswer{result.value.unchanged != 0, result.value.next_ms});
  return status;
}

driftd_status ProviderHost::do_read(ActiveCall&, const std::string& payload, driftd_call handle, std::string&) {
  const auto call = ipc::decode<ipc::ReadCall>(payload);
  if (!call) return DRIFTD_INVALID;
  std::vector<driftd_identity> ids;
  for (const auto& id : call->ids) ids.push_back({sizeof(driftd_identity), 0, str(id.kind), str(id.id)});
  return loaded_.library->table.read(instance_, handle, ids.data(), static_cast<std::uint32_t>(ids.size()),
                                     sizeof(driftd_identity));
}

driftd_status ProviderHost::do_health(ActiveCall&, const std::string&, driftd_call handle, std::string& body) {
  HealthPush push{&loaded_, {}};
  const driftd_status status = loaded_.library->table.health(instance_, handle, &push_health, &push);
  if (status != DRIFTD_OK) return status;
  if (!push.report) {
    loaded_.misuse("health: answered OK without a report");
    return DRIFTD_INTERNAL;
  }
  body = ipc::encode(*push.report);
  return DRIFTD_OK;
}

driftd_status ProviderHost::do_watch(ActiveCall&, const std::string& payload, driftd_call handle, std::string&) {
  const auto call = ipc::decode<ipc::PlainCall>(payload);
  if (!call) return DRIFTD_INVALID;
  const auto watch = loaded_.extensions.watch.watch;
  if (watch == nullptr) return DRIFTD_UNSUPPORTED;
  const driftd_watch_args args{sizeof args, 0, str(call->cursor)};
  return watch(instance_, handle, &args);
}

driftd_status ProviderHost::do_demote(ActiveCall&, const std::string& payload, driftd_call, std::string& body) {
  const auto call = ipc::decode<ipc::DemoteCall>(payload);
  if (!call) return DRIFTD_INVALID;
  const auto changes = borrowed(call->changes);
  const driftd_diff_args args{sizeof args,
                              sizeof(driftd_change),
                              str(call->id.kind),
                              str(call->id.id),
                              changes.data(),
                              static_cast<std::uint32_t>(changes.size()),
                              0};
  VerdictPush push{&loaded_, {}};
  const driftd_status status = loaded_.library->table.diff(instance_, &args, &push_verdict, &push);
  body = ipc::encode(push.demotions);
  return status;
}

}  // namespace driftd::worker
