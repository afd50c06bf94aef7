// SPDX-License-Identifier: Apache-2.0
// The states of a session: waiting for its plugin, in use, stopped. session_upgrade.cpp has the upgrades.
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "host/session.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::host {

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
  supervised.worker_ended = [weak] {
    if (const auto self = weak.lock()) self->worker_changed_();
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

Task<void> SupervisedSession::stop() {
  const auto self = shared_from_this();
  stopping_ = true;
  std::vector<std::shared_ptr<Supervisor>> all = other_supervisors_;
  if (supervisor_) all.push_back(supervisor_);
  for (const auto& supervisor : all) co_await Supervisor::stop(supervisor);
}

}  // namespace driftd::host
