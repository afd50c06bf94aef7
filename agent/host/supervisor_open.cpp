// SPDX-License-Identifier: Apache-2.0
// How a worker that was started is opened: jail, load, settings, instance. What its plugin says about itself is known
// then.
#include <fmt/format.h>
#include <boost/asio/redirect_error.hpp>

#include "host/start_messages.hpp"
#include "host/supervisor.hpp"
#include "ipc/provider_info.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::host {
namespace {

constexpr auto kOpenDeadline = std::chrono::seconds(10);

/// Checks the settings against the plugin's own schema, because the ABI promises it to the plugin (driftd_open_args).
Status check_settings(const ipc::LoadAnswer& loaded, const std::string& settings_json) {
  DRIFTD_TRY(const auto mistakes, ipc::validate_settings(loaded.settings_schema, settings_json));
  if (mistakes.empty()) return {};
  std::string all;
  for (const auto& mistake : mistakes) all += (all.empty() ? "" : "; ") + mistake.path + ": " + mistake.message;
  return fail(Code::invalid, all);
}

/// Checks that a backend got a provider and a sink a sink plugin. A scan takes both.
Status check_sort(const SupervisorSpec& spec, const core::ProviderInfo& info) {
  if (spec.role == WorkerRole::scan || info.sink.has_value() == !spec.session.sink.empty()) return {};
  if (info.sink)
    return fail(Code::invalid, fmt::format("{}: is a sink plugin and no provider; name it under `sinks`, as "
                                           "`type: plugin` with `plugin: {}`",
                                           spec.file, info.id));
  return fail(Code::invalid,
              fmt::format("{}: is a provider and no sink plugin; name it as `provider` of a backend", spec.file));
}

}  // namespace

Task<void> Supervisor::open(std::shared_ptr<Supervisor> self) {
  const auto run = self->run_;
  const Status opened = co_await open_steps(self);
  if (self->run_ != run || !run->alive())
    co_return;  // on_worker_exit() has handled that worker, and the next one has an open() of its own
  if (opened && self->jail_.renewal_pending()) {
    run->worker()->kill();
    co_return;
  }
  if (opened) {
    self->crashes_.note_open(Steady::now());
    self->state_.set(run->is_process() ? WorkerState::running : WorkerState::in_process);
    if (self->jail_.note_open() && self->spec_.jail_changed) self->spec_.jail_changed();
    co_return;
  }
  // If the worker died, on_worker_exit() reported it. What remains is a plugin that refused to open.
  if (self->stopping_ || !run->end_reason().empty()) co_return;
  self->failure_ = opened.error();
  self->last_exit_ = opened.error().message;
  run->explain_end(opened.error().message);
  run->ask_to_stop();
  self->arm_stop_timer();
}

Task<Status> Supervisor::open_steps(std::shared_ptr<Supervisor> self) {
  DRIFTD_CO_CHECK(co_await self->jail_.find_paths());
  const std::string asked = encode(make_load(self->spec_, self->options_, self->jail_.paths()));
  DRIFTD_CO_TRY(const ipc::CallResult answer, co_await simple_call(self, ipc::FrameType::load, asked));
  auto loaded = ipc::decode<ipc::LoadAnswer>(answer.body);
  if (!loaded) self->kill_misbehaving("sent an invalid answer to load");
  DRIFTD_CO_CHECK(loaded);
  loaded->file = self->spec_.file;
  DRIFTD_CO_TRY(self->info_, ipc::parse_info(*loaded));
  DRIFTD_CO_CHECK(check_sort(self->spec_, *self->info_));
  self->output_.declare_metrics(ipc::declared_metrics(loaded->describe));
  DRIFTD_CO_CHECK(co_await self->jail_.verify(*loaded));
  if (self->spec_.role == WorkerRole::scan || self->jail_.renewal_pending()) co_return Status{};
  DRIFTD_CO_CHECK(check_settings(*loaded, self->spec_.session.settings_json));
  self->run_->limit_files(self->spec_.session.budgets.files);  // only now, because the jail has been entered
  const std::string instance = encode(make_open(self->spec_.session, Steady::now() + kOpenDeadline));
  DRIFTD_CO_CHECK(co_await simple_call(self, ipc::FrameType::open, instance));  // the answer is only its status
  co_return Status{};
}

/// Makes a call that sends neither records nor marks.
Task<Result<ipc::CallResult>> Supervisor::simple_call(std::shared_ptr<Supervisor> self, ipc::FrameType type,
                                                      std::string payload) {
  const auto call = self->begin(type, std::move(payload), Steady::now() + kOpenDeadline);
  while (!call->done) {
    boost::system::error_code woken;  // its result or the end of the worker cancels the timer
    co_await call->wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  if (!*call->done) co_return fail(call->done->error());
  if ((*call->done)->code != Code::ok) co_return fail((*call->done)->code, (*call->done)->message);
  co_return **call->done;
}

Task<Result<std::shared_ptr<const core::ProviderInfo>>> Supervisor::info(std::shared_ptr<Supervisor> self) {
  const auto deadline = Steady::now() + 2 * kOpenDeadline;
  const auto& state = self->state_;
  while (!self->info_ && !self->failure_ && Steady::now() < deadline) {
    if (state.is(WorkerState::stopped) || state.is(WorkerState::parked)) break;
    co_await self->state_.wait(std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()));
  }
  if (self->info_) co_return self->info_;
  if (self->failure_) co_return fail(*self->failure_);
  co_return fail(Code::unavailable, fmt::format("{}: {}", self->spec_.file, self->last_exit_));
}

}  // namespace driftd::host
