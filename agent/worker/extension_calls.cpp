// SPDX-License-Identifier: Apache-2.0
// Calls of the extensions: from a frame's payload to the plugin's function and back.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/scope.hpp"
#include "core/value/parse_limits.hpp"
#include "core/value/value.hpp"
#include "ipc/apply_check.hpp"
#include "ipc/ext_messages.hpp"
#include "ipc/limits.hpp"
#include "worker/abi_input.hpp"
#include "worker/provider_host.hpp"

namespace driftd::worker {
namespace {

constexpr std::size_t kMaxBackends = 4096, kMaxPerNamespace = 250;  // backends of one discovery, and of one namespace
constexpr std::size_t kMaxBytes = 6u << 20, kMaxBytesPerNamespace = 1u << 20;  // the same in bytes; a frame holds 8 MiB

struct DiscoverPush {
  ActiveCall* call;
  std::set<std::pair<std::string, std::string>> pushed;  ///< name and place of definition
  struct Namespace {
    std::size_t count = 0, bytes = 0;
    bool full = false;
  };
  std::map<std::string, Namespace> namespaces;  ///< by the place where the provider says that backends are defined
  std::size_t bytes = 0;
  bool refused = false;  ///< a backend was rejected, so the discovery is not complete
  ipc::DiscoverAnswer answer;
};

/// Sends a diagnostic. If `place` is known, the agent treats unknown backends that are defined there as unread, and
/// those of other places as usual.
driftd_status report(DiscoverPush& to, std::string fault, Code code = Code::corrupt, std::string place = {}) {
  if (code == Code::corrupt) to.call->instance.misuse(fault);
  core::Diagnostic diagnostic;
  diagnostic.code = code;
  if (!place.empty()) diagnostic.kind = core::kRegistration;
  diagnostic.path = std::move(place);
  diagnostic.text = std::move(fault);
  return to.call->diagnose(std::move(diagnostic));
}

/// Rejects one backend and reports it. The others stay known and no backend counts as gone.
driftd_status skip_backend(DiscoverPush& to, std::string fault, std::string place) {
  to.refused = to.refused || place.empty();
  return report(to, std::move(fault), Code::corrupt, std::move(place));
}

/// Accepts no more backends of a namespace. With `keep` the accepted ones stay, without it they are dropped.
driftd_status close_namespace(DiscoverPush& to, const std::string& place, bool keep, const std::string& why) {
  auto& closed = to.namespaces[place];
  closed.full = true;
  if (!keep) {
    std::erase_if(to.answer.backends, [&](const auto& each) { return core::defined_in(each.metadata) == place; });
    to.bytes -= closed.bytes;
    closed.count = closed.bytes = 0;
  }
  return report(to, "discover: namespace " + place + ": " + why, Code::budget, place);
}

/// Enforces the limits, so that whoever writes in one namespace cannot use up the room of the others. Each namespace
/// has its share; if all together are too many, the largest one is dropped.
driftd_status enforce_limits(DiscoverPush& to, const std::string& place) {
  auto& here = to.namespaces[place];
  if (!place.empty() && (here.count > kMaxPerNamespace || here.bytes > kMaxBytesPerNamespace)) {
    const std::size_t last = ipc::encode(to.answer.backends.back()).size();
    to.answer.backends.pop_back();
    --here.count;
    here.bytes -= last;
    to.bytes -= last;
    return close_namespace(
        to, place, true,
        fmt::format("at most {} backends or 1 MiB of them are taken of one; what is more is passed over",
                    kMaxPerNamespace));
  }
  while (to.answer.backends.size() > kMaxBackends || to.bytes > kMaxBytes) {
    const auto less = [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; };
    const std::string largest = std::max_element(to.namespaces.begin(), to.namespaces.end(), less)->first;
    if (largest.empty()) return DRIFTD_BUDGET;
    const auto status = close_namespace(
        to, largest, false, "all together are more than 4096 backends or 6 MiB, and it has most; it is passed over");
    if (status != DRIFTD_OK) return status;
  }
  return DRIFTD_OK;
}

driftd_status accept_backend(DiscoverPush& to, const driftd_discovered& given) {
  auto taken = read_discovered(to.call->instance, given);
  const std::string what = "discover: backend " + to.call->instance.scrubber.printable(view(given.name), 128);
  const auto text = [&](const std::string& fault) { return to.call->instance.scrubber.text(what + ": " + fault); };
  if (!taken) return skip_backend(to, text(taken.error().message), read_defined_in(to.call->instance, given));
  auto& [backend, fault] = *taken;
  const std::string place = core::defined_in(backend.metadata);
  if (to.namespaces[place].full) return DRIFTD_OK;
  // The same name in two namespaces makes two backends here; the agent decides which one counts.
  if (!to.pushed.insert({backend.name, place}).second) return skip_backend(to, what + " was pushed twice", place);
  if (!fault.empty()) {
    if (const auto status = report(to, text(fault)); status != DRIFTD_OK) return status;
  }
  const std::size_t bytes = ipc::encode(backend).size();
  auto& here = to.namespaces[place];
  ++here.count;
  here.bytes += bytes;
  to.bytes += bytes;
  to.answer.backends.push_back(std::move(backend));
  if (const auto status = enforce_limits(to, place); status != DRIFTD_OK) return status;
  return to.call->cancelled() ? DRIFTD_CANCELLED : to.call->ending() ? DRIFTD_DEADLINE : DRIFTD_OK;
}

driftd_status push_backend(void* user, const driftd_discovered* backend) {
  auto& to = *static_cast<DiscoverPush*>(user);
  const driftd_status status =
      backend == nullptr ? DRIFTD_INVALID : accept_backend(to, adopt<driftd_discovered>(backend));
  to.refused = to.refused || status != DRIFTD_OK;
  return status;
}

struct TextPush {
  std::string text;
  int times = 0;
};
void push_text(void* user, driftd_str text) {
  auto& to = *static_cast<TextPush*>(user);
  ++to.times;
  if (text.len <= ipc::kMaxBody) to.text = std::string(view(text));
}

struct AppliedPush {
  const LoadedInstance* instance = nullptr;
  ipc::ApplyAnswer answer;
  int times = 0;
  std::size_t bytes = 0;  ///< of the commands
  std::string fault;      ///< what is wrong with the details; empty if nothing is
};

/// Copies one detail. A command above the limit is a fault: one that is cut could not be run as it is shown.
void take_detail(AppliedPush& to, const driftd_kv& kv) {
  const auto& scrubber = to.instance->scrubber;
  const std::string key = scrubber.printable(view(kv.key), ipc::kMaxName);
  const std::map<std::string_view, std::vector<std::string>*> lists{{DRIFTD_APPLY_COMMAND, &to.answer.commands},
                                                                    {DRIFTD_APPLY_UNDO, &to.answer.undo},
                                                                    {DRIFTD_APPLY_LEFT, &to.answer.left}};
  const auto list = lists.find(key);
  if (list == lists.end()) {
    to.answer.details[key] = scrubber.printable(view(kv.value), ipc::kMaxText);
    return;
  }
  to.bytes += kv.value.len;
  if (kv.value.len > ipc::kMaxCommand || to.bytes > ipc::kMaxCommandBytes) {
    to.fault = "apply: a detail `" + key + "` is longer than 64 KiB, or all are longer than 4 MiB";
    return;
  }
  list->second->push_back(scrubber.printable(view(kv.value), ipc::kMaxCommand));
}

void push_applied(void* user, const driftd_applied* given) {
  auto& to = *static_cast<AppliedPush*>(user);
  ++to.times;
  if (given == nullptr) return;
  const auto applied = adopt<driftd_applied>(given);
  const auto clean = [&](driftd_str s) { return to.instance->scrubber.printable(view(s), ipc::kMaxText); };
  to.answer = {applied.outcome,
               applied.changed != 0,
               applied.requeue_after_ms,
               clean(applied.version),
               clean(applied.text),
               {},
               {},
               {},
               {}};
  const char* at = reinterpret_cast<const char*>(applied.details);
  const bool readable = applied.details != nullptr && applied.detail_stride >= sizeof(std::uint32_t);
  if (applied.detail_count > ipc::kMaxApplyDetails) {
    to.fault = "apply: " + std::to_string(applied.detail_count) + " details, the maximum is 1024";
    return;
  }
  for (std::uint32_t i = 0; readable && i < applied.detail_count; ++i, at += applied.detail_stride) {
    take_detail(to, adopt<driftd_kv>(at));
  }
}

/// Returns what is wrong with an outcome; empty if nothing is.
std::string find_fault(const AppliedPush& push, bool dry_run) {
  const auto& [instance, answer, times, bytes, fault] = push;
  if (times != 1) return "apply: answered OK and pushed " + std::to_string(times) + " outcomes, expected one";
  if (answer.outcome < DRIFTD_APPLY_SUCCESS || answer.outcome > DRIFTD_APPLY_REQUEUE_AFTER)
    return "apply: outcome " + std::to_string(answer.outcome) + " is unknown";
  if (dry_run && answer.changed) return "apply: a dry run says that it changed the system";
  if (answer.outcome != DRIFTD_APPLY_SUCCESS && answer.text.empty()) return "apply: not a success, and no text why";
  if (answer.outcome == DRIFTD_APPLY_REQUEUE_AFTER && answer.requeue_after_ms < 1)
    return "apply: REQUEUE_AFTER without a time";
  if (answer.left.empty() == (answer.outcome == DRIFTD_APPLY_FAILED && answer.changed))
    return "apply: `left` is for FAILED with `changed`, and required there";
  return fault;
}

}  // namespace

driftd_status ProviderHost::do_discover(ActiveCall& call, const std::string&, driftd_call handle, std::string& body) {
  const auto discover = loaded_.extensions.discover.discover;
  if (discover == nullptr) return DRIFTD_UNSUPPORTED;
  const driftd_discover_args args{sizeof args, 0, nullptr, 0};
  driftd_discover_result result{};
  result.size = sizeof result;
  DiscoverPush push;
  push.call = &call;
  const driftd_status status = discover(instance_, handle, &args, &push_backend, &push, &result);
  push.answer.complete = status == DRIFTD_OK && result.complete != 0 && !push.refused;
  push.answer.next_ms = result.next_ms;
  body = ipc::encode(push.answer);
  return status;
}

driftd_status ProviderHost::do_upgrade(ActiveCall&, const std::string& payload, driftd_call, std::string& body) {
  const auto call = ipc::decode<ipc::UpgradeCall>(payload);
  if (!call) return DRIFTD_INVALID;
  const auto upgrade = loaded_.extensions.upgrade.upgrade;
  if (upgrade == nullptr) return DRIFTD_UNSUPPORTED;
  const driftd_upgrade_args args{sizeof args, call->from_revision, str(call->kind), str(call->body)};
  TextPush push;
  const driftd_status status = upgrade(&args, &push_text, &push);
  if (status != DRIFTD_OK) return status;
  const auto parsed = core::parse(push.text, core::kBodyLimits);
  if (push.times != 1 || !parsed || parsed->object() == nullptr) {
    loaded_.misuse("upgrade: answered OK and pushed no JSON object, or not just one");
    return DRIFTD_CORRUPT;
  }
  body = core::render(*parsed);
  return DRIFTD_OK;
}

driftd_status ProviderHost::do_apply(ActiveCall&, const std::string& payload, driftd_call handle, std::string& body) {
  const auto call = ipc::decode<ipc::ApplyCall>(payload);
  if (!call || !ipc::check(*call)) return DRIFTD_INVALID;
  const auto apply = loaded_.extensions.apply.apply;
  if (apply == nullptr) return DRIFTD_UNSUPPORTED;
  const auto changes = borrowed(call->changes);
  driftd_apply_args args{};
  args.size = sizeof args;
  args.flags = call->dry_run ? DRIFTD_APPLY_DRY_RUN : 0;
  args.kind = str(call->id.kind);
  args.id = str(call->id.id);
  args.expected_version = str(call->expected_version);
  args.idempotency_key = str(call->idempotency_key);
  args.changes = changes.data();
  args.change_count = static_cast<std::uint32_t>(changes.size());
  args.change_stride = sizeof(driftd_change);
  AppliedPush push;
  push.instance = &loaded_;
  const driftd_status status = apply(instance_, handle, &args, &push_applied, &push);
  if (status != DRIFTD_OK) return status;
  if (const std::string fault = find_fault(push, call->dry_run); !fault.empty()) {
    loaded_.misuse(fault);
    return DRIFTD_INTERNAL;
  }
  body = ipc::encode(push.answer);
  return DRIFTD_OK;
}

}  // namespace driftd::worker
