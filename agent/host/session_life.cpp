// SPDX-License-Identifier: Apache-2.0
// The states of a session: waiting for its plugin, in use, upgraded, stopped.
#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "host/session.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::host {
namespace {

constexpr auto kTrial = std::chrono::seconds(30);  // within this a new version must load and open
constexpr auto kDrain = std::chrono::minutes(70);  // longer than any deadline: calls of the old version end within it
constexpr int kFailuresToRevert = 3;               // failures of a version that has not finished a refresh

}  // namespace

SupervisedSession::SupervisedSession(HostOptions options, core::SessionSpec spec, Supervisor::OnEvent on_event,
                                     std::function<void()> request_rescan)
    : options_(std::move(options)),
      spec_(std::move(spec)),
      on_event_(std::move(on_event)),
      request_rescan_(std::move(request_rescan)) {}

SupervisedSession::~SupervisedSession() {
  if (supervisor_) supervisor_->drop();
  for (const auto& other : other_supervisors_) other->drop();
}

std::shared_ptr<Supervisor> SupervisedSession::make(const Plugin& plugin, bool trial) {
  SupervisorSpec supervised;
  supervised.session = spec_;
  supervised.file = plugin.file;
  supervised.bytes = plugin.bytes;
  supervised.role = trial ? WorkerRole::trial : WorkerRole::serving;
  if (plugin.info) supervised.schema = plugin.info->settings_schema;
  if (plugin.info) {  // a schema that cannot be read was refused by the scan
    const Status revealed = ipc::resolve_plain_settings(supervised.session.settings_json, supervised.session.secrets,
                                                        plugin.info->settings_schema);
    if (!revealed) log::room("host").error("[{}] settings: {}", spec_.backend, revealed.error().message);
  }
  const auto weak = weak_from_this();
  supervised.jail_changed = [weak] {
    const auto self = weak.lock();
    if (self && self->changed_) self->changed_();
  };
  const auto handle_event = [weak, on_event = on_event_, bytes = plugin.bytes](core::SessionEvent event) {
    const auto self = weak.lock();
    const bool serves = self && event.what == "crashed" && self->plugin_.bytes == bytes;
    const std::string how = event.message;
    if (on_event) on_event(std::move(event));
    if (serves) self->count_upgrade_failure(how);
  };
  return std::make_shared<Supervisor>(options_, std::move(supervised), handle_event);
}

void SupervisedSession::count_upgrade_failure(const std::string& how) {
  if (!fallback_ || stopping_ || ++failures_since_upgrade_ < kFailuresToRevert) return;
  asio::co_spawn(options_.core, revert_upgrade(shared_from_this(), how), fatal);
}

/// Goes back to the bytes of the version before, which the agent still holds. The file is not tried again as it is.
Task<void> SupervisedSession::revert_upgrade(std::shared_ptr<SupervisedSession> self, std::string how) {
  if (!self->fallback_ || self->stopping_) co_return;
  const Plugin bad = std::exchange(self->plugin_, *self->fallback_);
  self->fallback_.reset();
  const auto failed = std::exchange(self->supervisor_, self->make(self->plugin_, false));
  const std::string version = failed->status().version;
  self->supervisor_->start();
  self->tried_ = bad;
  self->upgrade_refused_ = fmt::format(
      "{} (version {}) failed {} times before it finished a refresh, last: {}; the "
      "version before it is in use again; `touch` the file to try it again",
      bad.file, version, kFailuresToRevert, how);
  log::room("host").warn("[{}] upgrade reverted: {}", self->spec_.backend, self->upgrade_refused_);
  if (self->on_event_) self->on_event_({self->spec_.backend, "upgrade_reverted", self->upgrade_refused_});
  if (self->changed_) self->changed_();
  co_await retire(self, failed);
}

void SupervisedSession::attach(Plugin plugin) {
  if (stopping_) return;
  const bool late = missing_.has_value();
  plugin_ = std::move(plugin);
  missing_.reset();
  supervisor_ = make(plugin_, false);
  supervisor_->start();
  if (late) log::room("host").info("[{}] {} was found; starting its worker", spec_.backend, plugin_.file);
  if (late && changed_) changed_();
}

void SupervisedSession::wait_for_plugin(Error why) {
  if (!missing_ || missing_->message != why.message) log::room("host").warn("[{}] {}", spec_.backend, why.message);
  missing_ = std::move(why);
}

core::WorkerStatus SupervisedSession::status() const {
  core::WorkerStatus out;
  if (supervisor_) {
    out = supervisor_->status();
  } else {
    out.state = stopping_ ? "stopped" : "no plugin";
    out.last_exit = missing_ ? missing_->message : std::string();
  }
  out.upgrade_refused = upgrade_refused_;
  return out;
}

Status SupervisedSession::resume() {
  if (!supervisor_ && request_rescan_ && missing_) {
    request_rescan_();
    return {};
  }
  if (!supervisor_) return fail(Code::conflict, missing_ ? missing_->message : "there is no worker");
  return supervisor_->resume();
}

/// Returns the current supervisor once calls can be made. It may be replaced while this waits.
Task<Result<std::shared_ptr<Supervisor>>> SupervisedSession::ready(Steady::time_point deadline) {
  const auto self = shared_from_this();
  for (;;) {
    const auto supervisor = supervisor_;
    if (!supervisor && stopping_) co_return fail(Code::cancelled, "the session is stopped");
    if (!supervisor) co_return fail(missing_ ? *missing_ : Error{Code::unavailable, "there is no plugin"});
    const Status ready = co_await Supervisor::ready(supervisor, deadline);
    if (supervisor != supervisor_ && !stopping_) continue;
    if (!ready) co_return fail(ready.error());
    co_return supervisor;
  }
}

/// Checks what can be checked before a worker of the new version is started.
Status SupervisedSession::check_upgrade(const Plugin& next) const {
  if (spec_.isolation == core::SessionSpec::Isolation::in_process) {
    return fail(Code::unsupported, "in-process code stays loaded: restart the agent");
  }
  if (!next.info) return {};
  core::SessionSpec plain = spec_;
  DRIFTD_CHECK(ipc::resolve_plain_settings(plain.settings_json, plain.secrets, next.info->settings_schema));
  DRIFTD_TRY(const auto mistakes, ipc::validate_settings(next.info->settings_schema, plain.settings_json));
  if (mistakes.empty()) return {};
  return fail(Code::invalid, mistakes.front().path + ": " + mistakes.front().message);
}

Task<void> SupervisedSession::try_upgrade(std::shared_ptr<SupervisedSession> self, Plugin next) {
  if (self->stopping_) co_return;
  self->tried_ = next;
  if (const Status fit = self->check_upgrade(next); !fit) {
    self->refuse(next, fit.error().message);
    co_return;
  }
  const auto candidate = self->make(next, true);
  self->other_supervisors_.push_back(candidate);
  candidate->start();
  const Status opened = co_await Supervisor::ready(candidate, Steady::now() + kTrial);
  const bool wanted = !self->stopping_ && self->was_tried(next);
  if (!opened || !wanted) {
    if (wanted) self->refuse(next, opened.error().message);
    co_await Supervisor::stop(candidate);
    std::erase(self->other_supervisors_, candidate);
    co_return;
  }
  std::erase(self->other_supervisors_, candidate);
  const auto old = self->supervisor_;
  const std::string before = old->status().version;
  candidate->adopt();
  self->supervisor_ = candidate;
  if (!self->fallback_) self->fallback_ = self->plugin_;
  self->failures_since_upgrade_ = 0;
  self->plugin_ = std::move(next);
  self->upgrade_refused_.clear();
  const std::string after = candidate->status().version;
  log::room("host").info("[{}] upgraded: {} {} serves instead of {}", self->spec_.backend, self->plugin_.file, after,
                         before);
  if (self->on_event_) self->on_event_({self->spec_.backend, "upgraded", before + " → " + after});
  if (self->changed_) self->changed_();
  co_await retire(self, old);
}

/// Lets the old version finish its calls, then stops it. Its watch is started again on the new version.
Task<void> SupervisedSession::retire(std::shared_ptr<SupervisedSession> self, std::shared_ptr<Supervisor> old) {
  self->other_supervisors_.push_back(old);
  old->retire();
  co_await Supervisor::idle(old, Steady::now() + kDrain);
  co_await Supervisor::stop(old);
  std::erase(self->other_supervisors_, old);
}

void SupervisedSession::refuse(const Plugin& next, const std::string& why) {
  tried_ = next;
  upgrade_refused_ = fmt::format("{} was refused: {}; version {} stays in use; `touch` the file to try it again",
                                 next.file, why, status().version);
  log::room("host").warn("[{}] upgrade refused: {}", spec_.backend, upgrade_refused_);
  if (on_event_) on_event_({spec_.backend, "upgrade_refused", upgrade_refused_});
}

void SupervisedSession::forget_refused_upgrade() {
  tried_ = {};
  upgrade_refused_.clear();
}

Task<void> SupervisedSession::stop() {
  const auto self = shared_from_this();
  stopping_ = true;
  std::vector<std::shared_ptr<Supervisor>> all = other_supervisors_;
  if (supervisor_) all.push_back(supervisor_);
  for (const auto& supervisor : all) co_await Supervisor::stop(supervisor);
}

}  // namespace driftd::host
