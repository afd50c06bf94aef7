// SPDX-License-Identifier: Apache-2.0
// Hot upgrade: another plugin file, or other bytes of the same file, takes over while the agent runs. The new version
// is checked and opened on trial, the old one finishes its calls, and a new version that fails is reverted.
#include <fmt/format.h>
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

/// Checks what can be checked before a worker of the new version is started. Whether the settings fit its schema is
/// checked when it is opened on trial, as for any worker.
Status SupervisedSession::check_upgrade(const Plugin& next) const {
  if (spec_.isolation == core::SessionSpec::Isolation::in_process) {
    return fail(Code::unsupported, "in-process code stays loaded: restart the agent");
  }
  if (!next.info) return {};
  core::SessionSpec plain = spec_;
  return ipc::resolve_plain_settings(plain.settings_json, plain.secrets, next.info->settings_schema);
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
  self->worker_changed_();
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
  self->worker_changed_();
  co_await retire(self, failed);
}

}  // namespace driftd::host
