// SPDX-License-Identifier: Apache-2.0
#include "host/supervisor.hpp"

#include <fmt/format.h>
#include <boost/asio/redirect_error.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "host/seconds.hpp"
#include "host/untrusted_input.hpp"
#include "ipc/limits.hpp"

namespace driftd::host {
namespace {

constexpr auto kIdlePoll = std::chrono::milliseconds(20);
constexpr auto kLongestEnd = std::chrono::seconds(2);  // for the end of a killed worker, in addition to the grace time
constexpr auto kLeftPoll = std::chrono::milliseconds(500);
constexpr auto kUsagePoll = std::chrono::milliseconds(500);

}  // namespace

Supervisor::Supervisor(HostOptions options, SupervisorSpec spec, OnEvent on_event)
    : options_(std::move(options)),
      spec_(std::move(spec)),
      scrubber_(ipc::Scrubber::of_instance(spec_.session.secrets, spec_.session.settings_json)),
      state_(options_.core),
      run_(std::make_shared<WorkerRun>(options_.core, scrubber_)),
      calls_(std::make_shared<CallRouter>(options_.core, options_.grace)),
      output_(spec_.session.backend, scrubber_),
      reports_(spec_, std::move(on_event)),
      budgets_(spec_.session.budgets),
      crashes_(options_),
      jail_(options_, spec_),
      retry_(options_.core),
      usage_(options_.core),
      stop_limit_(options_.core) {}

void Supervisor::start() {
  const auto overdue = [weak = weak_from_this()](const Call& call) {
    const auto self = weak.lock();
    if (!self) return;
    if (auto exceeded = self->budgets_.check_overdue(call))
      self->reports_.record_budget_hit(exceeded->budget, std::move(exceeded->message));
  };
  const auto kill_late = [weak = weak_from_this()](std::string reason) {
    if (const auto self = weak.lock()) self->kill(std::move(reason));
  };
  calls_->on_deadline({overdue, kill_late});
  asio::co_spawn(options_.core, run(shared_from_this()), fatal);
}

Task<Status> Supervisor::ready(std::shared_ptr<Supervisor> self, Steady::time_point deadline) {
  for (;;) {
    const WorkerState state = self->state_.get();
    if (self->stopping_) co_return fail(Code::cancelled, "the session is stopped");
    if (self->state_.takes_calls()) co_return Status{};
    if (self->failure_) co_return fail(*self->failure_);
    const bool unreaped = !self->run_->alive() && !self->unreaped_.expired();
    if (state == WorkerState::stopped || unreaped) co_return fail(Code::unavailable, "the worker " + self->last_exit_);
    if (state == WorkerState::parked) {
      co_return fail(
          Code::unavailable,
          fmt::format("the worker is parked after {} crashes in ten minutes; the last: {}; it is tried again at "
                      "{}, or at once by `driftd plugin resume {}`",
                      self->options_.crashes_to_park, self->last_exit_, render_time(self->crashes_.parked_until()),
                      self->spec_.session.backend));
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now());
    if (left.count() <= 0) {
      const std::string last = self->last_exit_.empty() ? "it has not started yet" : self->last_exit_;
      co_return fail(Code::unavailable, fmt::format("the worker is not running ({}): {}", render(state), last));
    }
    co_await self->state_.wait(left);
  }
}

Task<void> Supervisor::run(std::shared_ptr<Supervisor> self) {
  while (!self->stopping_ && self->spec_.role != WorkerRole::retired) {
    if (!self->unreaped_.expired()) {
      co_await self->state_.wait(kLeftPoll);
      continue;
    }
    co_await run_worker(self);
    if (self->jail_.renewal_pending()) continue;
    if (self->stopping_ || self->spec_.role != WorkerRole::serving) break;
    self->retry_.expires_after(self->crashes_.next_wait());
    boost::system::error_code stopped;  // stop() cancels the wait; the loop's condition checks it
    if (!self->stopping_) co_await self->retry_.async_wait(asio::redirect_error(asio::use_awaitable, stopped));
    self->crashes_.note_restart();
  }
  self->stop_limit_.cancel();
  self->state_.set(WorkerState::stopped);
}

Task<void> Supervisor::run_worker(std::shared_ptr<Supervisor> self) {
  self->state_.set(WorkerState::starting);
  self->budgets_.note_start();
  self->jail_.note_start();
  const auto run = std::make_shared<WorkerRun>(self->options_.core, self->scrubber_);
  self->run_ = run;
  if (const Status started = run->start(self->spec_, self->options_.worker); !started) {
    self->failure_ = started.error();
    self->state_.set(WorkerState::backoff);
    co_return;
  }
  self->failure_.reset();
  self->calls_->connect(run->channel());
  asio::co_spawn(self->options_.core, open(self), fatal);
  self->watch_usage();
  const auto deliver = [raw = self.get()](ipc::Frame frame) { raw->on_frame(std::move(frame)); };
  const Status ended = co_await WorkerChannel::receive(run->channel(), deliver);
  if (!ended && run->end_reason().empty()) {
    self->reports_.record_misbehaviour("wrote garbage to the protocol");
    run->explain_end(fmt::format("wrote garbage to the protocol: killed ({})", ended.error().message));
  }
  if (!ended) run->worker()->kill();
  const auto how = co_await wait_for_end(run->worker(), self->options_.core, self->options_.grace + kLongestEnd);
  if (!how) {
    self->unreaped_ = run->worker();
    run->explain_hang();
  }
  self->on_worker_exit(how.value_or(std::string()));
}

std::shared_ptr<Call> Supervisor::begin(ipc::FrameType type, std::string payload, Steady::time_point deadline) {
  if (!run_->alive())
    return calls_->refuse(type,
                          Error{Code::unavailable, "worker " + (last_exit_.empty() ? "not running" : last_exit_)});
  return calls_->begin(type, std::move(payload), deadline, run_->usage().cpu);
}

void Supervisor::on_frame(ipc::Frame frame) {
  const Status allowed = handle_frame(std::move(frame));
  if (!allowed) kill_misbehaving(allowed.error().message);
}

Status Supervisor::handle_frame(ipc::Frame frame) {
  const auto call = calls_->find(frame.call);
  if (!call) return fail(Code::invalid, "sent a frame of a call that is not running");
  switch (frame.type) {
    case ipc::FrameType::result:
      return handle_result(*call, frame);
    case ipc::FrameType::log:
      return output_.take_log(frame);
    case ipc::FrameType::permit:
      return permits_.grant(call, frame, run_->channel());
    case ipc::FrameType::settled:
      return calls_->enqueue_settled(*call, std::move(frame.payload));
    case ipc::FrameType::metric:
      DRIFTD_CHECK(calls_->charge_credit(*call, frame));
      DRIFTD_CHECK(output_.take_metric(frame));
      calls_->return_credit(*call, frame);  // handled at once, so its credit does not wait for a page
      return {};
    case ipc::FrameType::records:
    case ipc::FrameType::mark:
    case ipc::FrameType::diagnostic:
      DRIFTD_CHECK(calls_->charge_credit(*call, frame));
      return calls_->enqueue(*call, std::move(frame));
    default:
      return fail(Code::invalid, "sent a frame that only the agent sends");
  }
}

Status Supervisor::handle_result(Call& call, const ipc::Frame& frame) {
  auto result = ipc::decode<ipc::CallResult>(frame.payload, ipc::kMaxReportedNames);
  if (!result)
    return fail(Code::invalid, fmt::format("sent an answer to {} that cannot be decoded", ipc::call_name(call.type)));
  clean(*result, scrubber_);
  reports_.record_result(call, *result);
  calls_->finish(call, std::move(*result));
  return {};
}

void Supervisor::kill_misbehaving(const std::string& what) {
  if (run_->killed()) return;
  reports_.record_misbehaviour(what);
  kill(what + ": killed");
}

void Supervisor::watch_usage() {
  if (!run_->is_process()) return;
  usage_.expires_after(kUsagePoll);
  usage_.async_wait([weak = weak_from_this()](const boost::system::error_code& stopped) {
    const auto self = weak.lock();
    if (stopped || !self || !self->run_->alive()) return;
    if (!self->within_budgets()) return;
    if (self->jail_.is_look_due()) asio::co_spawn(self->options_.core, look_at_jail(self), fatal);
    self->watch_usage();
  });
}

/// Returns false if a budget was exceeded; the worker is killed then.
bool Supervisor::within_budgets() {
  const auto exceeded = budgets_.check(run_->usage(), calls_->running());
  if (!exceeded) return true;
  reports_.record_budget_hit(exceeded->budget, exceeded->message);
  kill(exceeded->message);
  return false;
}

Task<void> Supervisor::look_at_jail(std::shared_ptr<Supervisor> self) {
  const auto replaced = co_await self->jail_.look();
  if (replaced) self->restart_with_new_jail(*replaced);
}

/// Starts the next worker, because the current one sees only the old files. Does nothing while a call is running.
void Supervisor::restart_with_new_jail(const std::string& why) {
  const bool ending = !run_->alive() || run_->killed() || stopping_ || spec_.role == WorkerRole::retired;
  if (ending || !calls_->only_watches()) return;
  jail_.renew();
  log::room("host").info(
      "[{}] {} was replaced since the worker started; starting another worker, which sees the new one",
      spec_.session.backend, why);
  kill("the worker is restarted with a new jail");
  state_.set(WorkerState::starting);  // callers of ready() wait for the next worker
}

Task<std::optional<Error>> Supervisor::check_replaced_paths(std::shared_ptr<Supervisor> self, Error error) {
  const bool of_files = error.code == Code::denied || error.code == Code::not_found || error.code == Code::unavailable;
  if (!of_files || !self->run_->is_process()) co_return std::nullopt;
  const std::string moved = co_await self->jail_.find_replaced_path();
  if (moved.empty()) co_return std::nullopt;
  self->restart_with_new_jail(moved);
  co_return Error{Code::unavailable,
                  fmt::format("{} was replaced since the worker started, which sees only the old one; another "
                              "worker, which sees the new one, is starting ({})",
                              moved, error.message)};
}

void Supervisor::on_worker_exit(const std::string& how) {
  usage_.cancel();
  stop_limit_.cancel();
  run_->end();
  calls_->disconnect();
  if (spec_.worker_ended) spec_.worker_ended();
  jail_.note_end();
  const bool retired = spec_.role == WorkerRole::retired;
  if (jail_.renewal_pending() && !stopping_ && !retired)
    return calls_->fail_all(Error{Code::unavailable, "the worker is restarted with a new jail"});
  if (stopping_) return calls_->fail_all(Error{Code::cancelled, "the session is stopped"});
  if (failure_) {
    calls_->fail_all(*failure_);
    return state_.set(WorkerState::backoff);
  }
  const std::string names = calls_->render_running();
  const std::string& reason = run_->end_reason();
  last_exit_ = reason.empty() ? how + (names.empty() ? "" : " in " + names) : reason;
  calls_->fail_all(Error{Code::unavailable, "worker " + last_exit_});
  if (retired) return reports_.report("crashed", last_exit_);
  after_crash();
}

void Supervisor::after_crash() {
  const bool park = crashes_.add(Steady::now());
  reports_.report("crashed", last_exit_);
  if (park) {
    crashes_.park(SystemClock().wall());
    reports_.report("parked",
                    fmt::format("{} crashes in ten minutes; the last: {}", options_.crashes_to_park, last_exit_));
  }
  state_.set(park ? WorkerState::parked : WorkerState::backoff);
}

Status Supervisor::resume() {
  if (!state_.is(WorkerState::parked))
    return fail(Code::conflict, fmt::format("the worker is not parked: it is {}", render(state_.get())));
  retry_.cancel();
  return {};
}

void Supervisor::retire() {
  spec_.role = WorkerRole::retired;
  retry_.cancel();
  calls_->cancel_watches();
}

Task<void> Supervisor::idle(std::shared_ptr<Supervisor> self, Steady::time_point deadline) {
  const auto busy = [&] { return !self->calls_->running().empty(); };
  while (busy() && !self->state_.is(WorkerState::stopped) && !self->stopping_ && Steady::now() < deadline) {
    co_await self->state_.wait(kIdlePoll);
  }
}

/// Kills a worker that does not close its instance and exit within the grace time after it was told to stop.
void Supervisor::arm_stop_timer() {
  stop_limit_.expires_after(options_.grace);
  stop_limit_.async_wait([weak = weak_from_this()](const boost::system::error_code& ended) {
    const auto self = weak.lock();
    if (ended || !self || !self->run_->alive()) return;
    const std::string calls = self->calls_->render_running();
    self->reports_.report("misbehaved",
                          fmt::format("did not return from {} within {} of being stopped: killed",
                                      calls.empty() ? "close" : calls, render_seconds(self->options_.grace)));
    self->kill("did not stop in time: killed");
  });
}

Task<void> Supervisor::stop(std::shared_ptr<Supervisor> self) {
  if (!self->stopping_) {
    self->stopping_ = true;
    self->retry_.cancel();
    self->calls_->cancel_all();
    self->run_->ask_to_stop();
    self->arm_stop_timer();
    self->state_.wake();
  }
  while (!self->state_.is(WorkerState::stopped)) co_await self->state_.wait(self->options_.grace);
}

void Supervisor::drop() {
  stopping_ = true;
  retry_.cancel();
  kill("its session is gone");
}

core::WorkerStatus Supervisor::status() const {
  core::WorkerStatus out;
  out.state = render(state_.get());
  out.last_exit = last_exit_;
  out.pid = run_->pid();
  out.rss_bytes = budgets_.rss_bytes();
  out.gauges = output_.gauges();
  out.jail = jail_.description();
  out.file = spec_.file;
  if (info_) out.version = info_->version;
  crashes_.add_to(out, Steady::now());
  reports_.add_to(out);
  return out;
}

}  // namespace driftd::host
