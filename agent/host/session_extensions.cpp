// SPDX-License-Identifier: Apache-2.0
// Calls of the extensions: discover, upgrade, apply.
#include <driftd/ext/apply.h>
#include <algorithm>

#include "core/value/parse_limits.hpp"
#include "core/value/value.hpp"
#include "host/session.hpp"
#include "host/untrusted_input.hpp"
#include "ipc/apply_check.hpp"
#include "ipc/ext_messages.hpp"
#include "ipc/limits.hpp"

namespace driftd::host {
namespace {

constexpr auto kUpgradeDeadline = std::chrono::seconds(5);
const core::PageHandler kNoPages;

std::int64_t nanos(Steady::time_point at) { return at.time_since_epoch() / std::chrono::nanoseconds(1); }

Error error_of(const ipc::CallResult& result) { return Error{result.code, result.message, result.retry_after_ms}; }

/// Cleans texts on the agent's side, because a worker that a plugin has taken over may send anything.
void clean(std::string& text, const ipc::Scrubber& scrubber) { text = scrubber.printable(text, ipc::kMaxText); }
void clean(std::vector<std::string>& texts, const ipc::Scrubber& scrubber) {
  texts.resize(std::min(texts.size(), ipc::kMaxListItems));
  for (auto& text : texts) clean(text, scrubber);
}
void clean(std::map<std::string, std::string>& pairs, const ipc::Scrubber& scrubber) {
  std::map<std::string, std::string> out;
  for (auto& [key, value] : pairs) {
    if (out.size() >= ipc::kMaxListItems) break;
    clean(value, scrubber);
    out[scrubber.printable(key, ipc::kMaxName)] = std::move(value);
  }
  pairs = std::move(out);
}
/// Returns false if the config is not a JSON object or the name is empty, which our own code never sends.
bool clean(core::Discovered& b, const ipc::Scrubber& scrubber) {
  for (auto* text : {&b.name, &b.type, &b.version, &b.origin, &b.revision}) clean(*text, scrubber);
  for (auto* texts : {&b.endpoints, &b.capabilities}) clean(*texts, scrubber);
  for (auto* pairs : {&b.credentials, &b.labels, &b.metadata}) clean(*pairs, scrubber);
  const auto config = core::parse(b.config, core::kBodyLimits);
  return config && config->object() != nullptr && !b.name.empty();
}

/// Returns false above a limit, which our own code enforces before: a command that is cut is none.
bool clean_commands(ipc::ApplyAnswer& answer, const ipc::Scrubber& scrubber) {
  std::size_t bytes = 0;
  for (auto* texts : {&answer.commands, &answer.undo, &answer.left}) {
    if (texts->size() > ipc::kMaxApplyDetails) return false;
    for (auto& text : *texts) {
      bytes += text.size();
      if (text.size() > ipc::kMaxCommand || bytes > ipc::kMaxCommandBytes) return false;
      text = scrubber.printable(text, ipc::kMaxCommand);
    }
  }
  return true;
}

tl::unexpected<Error> reject_answer(Supervisor& supervisor, const char* call) {
  const std::string what = std::string("sent an invalid answer to ") + call;
  supervisor.kill_misbehaving(what);
  return fail(Code::unavailable, "worker " + what + ": killed");
}

Task<Status> keep_diagnostics(std::shared_ptr<std::vector<core::Diagnostic>> to, core::RecordPage page) {
  std::move(page.diagnostics.begin(), page.diagnostics.end(), std::back_inserter(*to));
  co_return Status{};
}

Result<ipc::ApplyCall> call_of(const core::ApplyRequest& request) {
  ipc::ApplyCall out;
  out.id = request.id;
  out.expected_version = request.expected_version;
  out.idempotency_key = request.idempotency_key;
  out.dry_run = request.dry_run;
  for (std::size_t i = 0; i < request.changes.size(); ++i) {
    const auto& change = request.changes[i];
    if (change.redacted || change.cls == core::ChangeClass::credential) {
      return fail(Code::invalid, "apply to " + core::render(request.id) + ": " + change.path +
                                     " is a credential, of which only a digest is known; it cannot be put back");
    }
    out.changes.push_back(
        {static_cast<std::uint32_t>(i), change.path, change.old_value.value_or(""), change.new_value.value_or("")});
  }
  DRIFTD_CHECK(ipc::check(out));
  return out;
}

}  // namespace

Task<Result<core::DiscoverOutcome>> SupervisedSession::discover() {
  const auto deadline = Steady::now() + spec_.budgets.call;
  DRIFTD_CO_TRY(const auto supervisor, co_await ready(deadline));
  const ipc::DiscoverCall asked{nanos(deadline)};
  const auto call = supervisor->begin(ipc::FrameType::discover, encode(asked), deadline);
  const auto diagnostics = std::make_shared<std::vector<core::Diagnostic>>();
  const core::PageHandler handler = [diagnostics](core::RecordPage page) {
    return keep_diagnostics(diagnostics, std::move(page));
  };
  DRIFTD_CO_TRY(const ipc::CallResult result, co_await run_call(supervisor, call, handler));
  if (result.code != Code::ok) co_return fail(error_of(result));
  auto answer = ipc::decode<ipc::DiscoverAnswer>(result.body);
  bool sound = answer.has_value();
  if (sound) {
    for (auto& backend : answer->backends) sound = clean(backend, supervisor->scrubber()) && sound;
  }
  if (!sound) co_return reject_answer(*supervisor, "discover");
  core::DiscoverOutcome out;
  out.backends = std::move(answer->backends);
  out.complete = answer->complete;
  out.next = std::chrono::milliseconds(clean_wait(answer->next_ms));
  out.diagnostics = std::move(*diagnostics);
  co_return out;
}

Task<Result<std::string>> SupervisedSession::upgrade(std::string kind, std::uint32_t from_revision, std::string body) {
  const auto deadline = Steady::now() + kUpgradeDeadline;
  DRIFTD_CO_TRY(const auto supervisor, co_await ready(deadline));
  const ipc::UpgradeCall asked{nanos(deadline), kind, from_revision, body};
  const auto call = supervisor->begin(ipc::FrameType::upgrade, encode(asked), deadline);
  DRIFTD_CO_TRY(ipc::CallResult result, co_await run_call(supervisor, call, kNoPages));
  if (result.code != Code::ok) co_return fail(error_of(result));
  const auto answer = core::parse(result.body, core::kBodyLimits);
  if (!answer || answer->object() == nullptr) co_return reject_answer(*supervisor, "upgrade");
  co_return std::move(result.body);
}

Task<Result<core::ApplyOutcome>> SupervisedSession::apply(core::ApplyRequest request) {
  const auto deadline = Steady::now() + spec_.budgets.call;
  DRIFTD_CO_TRY(ipc::ApplyCall asked, call_of(request));
  asked.deadline_ns = nanos(deadline);
  DRIFTD_CO_TRY(const auto supervisor, co_await ready(deadline));
  const auto call = supervisor->begin(ipc::FrameType::apply, encode(asked), deadline);
  DRIFTD_CO_TRY(const ipc::CallResult result, co_await run_call(supervisor, call, kNoPages));
  if (result.code != Code::ok) co_return fail(error_of(result));
  auto answer = ipc::decode<ipc::ApplyAnswer>(result.body);
  const bool sound = answer && answer->outcome >= DRIFTD_APPLY_SUCCESS &&
                     answer->outcome <= DRIFTD_APPLY_REQUEUE_AFTER && !(asked.dry_run && answer->changed) &&
                     clean_commands(*answer, supervisor->scrubber());
  if (!sound) co_return reject_answer(*supervisor, "apply");
  clean(answer->version, supervisor->scrubber());
  clean(answer->text, supervisor->scrubber());
  clean(answer->details, supervisor->scrubber());
  core::ApplyOutcome out;
  out.result = static_cast<core::ApplyOutcome::Result>(answer->outcome);
  out.changed = answer->changed;
  out.requeue_after = std::chrono::milliseconds(clean_wait(answer->requeue_after_ms));
  out.version = std::move(answer->version);
  out.text = std::move(answer->text);
  out.commands = std::move(answer->commands);
  out.undo = std::move(answer->undo);
  out.left = std::move(answer->left);
  out.details = std::move(answer->details);
  co_return out;
}

}  // namespace driftd::host
