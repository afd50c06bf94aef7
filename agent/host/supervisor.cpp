// SPDX-License-Identifier: Apache-2.0
#include "host/supervisor.hpp"

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "host/jail_path_lookup.hpp"
#include "ipc/provider_info.hpp"

namespace driftd::host {
namespace {

constexpr auto kIdlePoll = std::chrono::milliseconds(20);
constexpr auto kOpenDeadline = std::chrono::seconds(10);
constexpr auto kLongestEnd = std::chrono::seconds(2);  // for the end of a killed worker, in addition to the grace time
constexpr auto kLeftPoll = std::chrono::milliseconds(500);
constexpr auto kGoodRun = std::chrono::seconds(60);  // a worker that ran this long resets the backoff
constexpr std::size_t kLastErrors = 64u << 10;       // bytes of stderr that are read after the end of a worker

std::int64_t nanos(Steady::time_point at) { return at.time_since_epoch() / std::chrono::nanoseconds(1); }

/// Registers a timer that each change of state cancels, and removes it on every way out.
struct Waiting {
  std::set<asio::steady_timer*>& list;
  asio::steady_timer* timer;
  Waiting(std::set<asio::steady_timer*>& l, asio::steady_timer* t) : list(l), timer(t) { list.insert(timer); }
  ~Waiting() { list.erase(timer); }
};

Status no_answer_of_paths() {
  return fail(Code::unavailable,
              "the file system of a path in its settings does not answer; the worker starts when it does");
}

}  // namespace

Supervisor::Supervisor(HostOptions options, SupervisorSpec spec, OnEvent on_event)
    : options_(std::move(options)),
      spec_(std::move(spec)),
      on_event_(std::move(on_event)),
      scrubber_(ipc::Scrubber::of_instance(spec_.session.secrets, spec_.session.settings_json)),
      backoff_(options_.restart_first, options_.restart_max),
      retry_(options_.core),
      usage_(options_.core),
      stop_limit_(options_.core) {
  status_.state = "starting";
}

void Supervisor::start() { asio::co_spawn(options_.core, run(shared_from_this()), fatal); }

Task<void> Supervisor::pause(std::chrono::milliseconds timeout) {
  asio::steady_timer timer(options_.core, timeout);
  const Waiting waiting(state_waiters_, &timer);
  boost::system::error_code woken;  // a change of state cancels the timer
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

void Supervisor::set_state(std::string state) {
  status_.state = std::move(state);
  for (auto* timer : state_waiters_) timer->cancel();
}

Task<Status> Supervisor::ready(std::shared_ptr<Supervisor> self, Steady::time_point deadline) {
  for (;;) {
    if (self->stopping_) co_return fail(Code::cancelled, "the session is stopped");
    if (self->status_.state == "running" || self->status_.state == "in-process") co_return Status{};
    if (self->failure_) co_return fail(*self->failure_);
    const bool unreaped = !self->worker_ && !self->unreaped_.expired();
    if (self->finished_ || unreaped) co_return fail(Code::unavailable, "the worker " + self->status_.last_exit);
    if (self->status_.state == "parked") {
      co_return fail(
          Code::unavailable,
          fmt::format("the worker is parked after {} crashes in ten minutes; the last: {}; it is tried again at "
                      "{}, or at once by `driftd plugin resume {}`",
                      self->options_.crashes_to_park, self->status_.last_exit,
                      render_time(self->status_.parked_until_ns), self->spec_.session.backend));
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now());
    if (left.count() <= 0) {
      const std::string last = self->status_.last_exit.empty() ? "it has not started yet" : self->status_.last_exit;
      co_return fail(Code::unavailable, fmt::format("the worker is not running ({}): {}", self->status_.state, last));
    }
    co_await self->pause(left);
  }
}

Task<Result<std::shared_ptr<const core::ProviderInfo>>> Supervisor::info(std::shared_ptr<Supervisor> self) {
  const auto deadline = Steady::now() + 2 * kOpenDeadline;
  while (!self->info_ && !self->failure_ && !self->finished_ && Steady::now() < deadline) {
    if (self->status_.state == "parked") break;
    co_await self->pause(std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()));
  }
  if (self->info_) co_return self->info_;
  if (self->failure_) co_return fail(*self->failure_);
  co_return fail(Code::unavailable, fmt::format("{}: {}", self->spec_.file, self->status_.last_exit));
}

Task<void> Supervisor::run(std::shared_ptr<Supervisor> self) {
  while (!self->stopping_ && !self->retired_) {
    if (!self->unreaped_.expired()) {
      co_await self->pause(kLeftPoll);
      continue;
    }
    co_await run_worker(self);
    if (self->needs_new_jail_) continue;
    if (self->stopping_ || self->retired_ || self->spec_.describe_only || self->spec_.trial) break;
    const bool parked = self->status_.state == "parked";
    const auto wait = parked ? self->options_.parked : self->backoff_.next();
    self->retry_.expires_after(wait);
    boost::system::error_code stopped;  // stop() cancels the wait; the loop's condition checks it
    if (!self->stopping_) co_await self->retry_.async_wait(asio::redirect_error(asio::use_awaitable, stopped));
    if (parked) self->crashes_.clear();
    self->status_.parked_until_ns = 0;
    ++self->status_.restarts;
  }
  self->finished_ = true;
  self->stop_limit_.cancel();
  self->set_state("stopped");
}

Task<void> Supervisor::run_worker(std::shared_ptr<Supervisor> self) {
  const bool threads = self->spec_.session.isolation == core::SessionSpec::Isolation::in_process;
  self->set_state("starting");
  self->kill_reason_.clear();
  self->killed_ = false;
  self->idle_cpu_.reset();
  self->jail_retried_ = std::exchange(self->needs_new_jail_, false);
  const int library = self->spec_.bytes->descriptor();
  auto started = threads ? start_threads(self->options_.core, library)
                         : start_process(self->options_.core, self->options_.worker, library);
  if (!started) {
    self->failure_ = started.error();
    self->set_state("backoff");
    co_return;
  }
  self->failure_.reset();
  self->worker_ = std::move(started->worker);
  self->channel_ = std::make_shared<WorkerChannel>(self->options_.core, started->fd);
  if (self->worker_->errors() != nullptr) asio::co_spawn(self->options_.core, read_errors(self), fatal);
  asio::co_spawn(self->options_.core, open(self), fatal);
  self->watch_usage();
  const auto deliver = [raw = self.get()](ipc::Frame frame) { raw->on_frame(std::move(frame)); };
  const Status ended = co_await WorkerChannel::receive(self->channel_, deliver);
  if (!ended && self->kill_reason_.empty()) {
    ++self->status_.misuses["protocol"];
    self->status_.last_misuse = "wrote garbage to the protocol";
    self->report("misbehaved", "wrote garbage to the protocol");
    self->kill_reason_ = fmt::format("wrote garbage to the protocol: killed ({})", ended.error().message);
  }
  if (!ended) self->worker_->kill();
  const auto how = co_await wait_for_end(self->worker_, self->options_.core, self->options_.grace + kLongestEnd);
  if (!how) {
    self->unreaped_ = self->worker_;
    self->kill_reason_ += fmt::format(
        "{}its process {} was killed and does not end, most often for a file system that hangs; the next one "
        "starts when it has",
        self->kill_reason_.empty() ? "" : "; ", self->worker_->pid());
  }
  self->on_worker_exit(how.value_or(std::string()));
}

Task<void> Supervisor::open(std::shared_ptr<Supervisor> self) {
  const auto of = self->channel_;
  const Status opened = co_await open_steps(self);
  if (!of || self->channel_ != of)
    co_return;  // on_worker_exit() has handled that worker, and the next one has an open() of its own
  if (opened && self->needs_new_jail_) {
    if (self->worker_) self->worker_->kill();
    co_return;
  }
  if (opened) {
    self->running_since_ = Steady::now();
    self->set_state(self->worker_ && self->worker_->pid() == 0 ? "in-process" : "running");
    if (std::exchange(self->paths_replaced_, false) && self->spec_.jail_changed) self->spec_.jail_changed();
    co_return;
  }
  // If the worker died, on_worker_exit() reported it. What remains is a plugin that refused to open.
  if (self->stopping_ || !self->kill_reason_.empty()) co_return;
  self->failure_ = opened.error();
  self->kill_reason_ = opened.error().message;
  self->status_.last_exit = opened.error().message;
  self->channel_->send(ipc::FrameType::stop, 0, {});
  self->arm_stop_timer();
}

Task<Status> Supervisor::open_steps(std::shared_ptr<Supervisor> self) {
  auto paths = co_await find_jail_paths(self);
  if (!paths) co_return no_answer_of_paths();
  self->jail_paths_ = std::move(*paths);
  const std::string asked = encode(self->load_request());
  DRIFTD_CO_TRY(const ipc::CallResult answer, co_await simple_call(self, ipc::FrameType::load, asked));
  auto loaded = ipc::decode<ipc::LoadAnswer>(answer.body);
  if (!loaded) self->kill_misbehaving("sent an invalid answer to load");
  DRIFTD_CO_CHECK(loaded);
  loaded->file = self->spec_.file;
  DRIFTD_CO_TRY(self->info_, ipc::parse_info(*loaded));
  self->metrics_ = ipc::declared_metrics(loaded->describe);
  DRIFTD_CO_CHECK(co_await verify_jail(self, *loaded));
  if (self->spec_.describe_only || self->needs_new_jail_) co_return Status{};
  if (self->worker_)
    self->worker_->limit_files(self->spec_.session.budgets.files);  // only now, because the jail has been entered
  const std::string instance = self->open_payload();
  DRIFTD_CO_TRY(const ipc::CallResult opened, co_await simple_call(self, ipc::FrameType::open, instance));
  (void)opened;  // the answer of open is only its status
  co_return Status{};
}

ipc::Load Supervisor::load_request() {
  const bool threads = spec_.session.isolation == core::SessionSpec::Isolation::in_process;
  return {spec_.file, threads, jail_paths_.read, jail_paths_.unix_sockets, options_.jail_kills, options_.experimental};
}

Task<std::optional<JailPaths>> Supervisor::find_jail_paths(std::shared_ptr<Supervisor> self) {
  if (self->spec_.schema.empty()) co_return JailPaths();
  const auto of = self->channel_;
  JailPathLookup::Request asked{self->spec_.session.backend, self->spec_.schema, self->spec_.session.settings_json,
                                self->options_.own};
  auto found = co_await JailPathLookup::find_paths(self->options_.path_lookup, self->options_.core, std::move(asked));
  if (self->channel_ != of) co_return std::nullopt;
  co_return found;
}

/// Compares the schema that the plugin gave with the one for which this worker's jail was made, because only the schema
/// says which settings are paths. If they differ, the next worker gets other paths. A plugin whose schema differs at
/// each load is not opened.
Task<Status> Supervisor::verify_jail(std::shared_ptr<Supervisor> self, ipc::LoadAnswer loaded) {
  self->status_.jail = ipc::one_line(loaded.jail, 1024) + (self->jail_paths_.unix_sockets ? ", Unix sockets" : "");
  const bool same = loaded.settings_schema == self->spec_.schema;
  self->spec_.schema = loaded.settings_schema;
  if (loaded.jail.empty() || self->spec_.describe_only) co_return Status{};
  if (same) {
    if (!self->jail_paths_.refused.empty()) co_return fail(Code::denied, self->jail_paths_.refused.front());
    co_return Status{};
  }
  auto wanted = co_await find_jail_paths(self);
  if (!wanted) co_return no_answer_of_paths();
  if (!wanted->refused.empty()) co_return fail(Code::denied, wanted->refused.front());
  if (*wanted == self->jail_paths_) {
    self->jail_paths_ = std::move(*wanted);
    co_return Status{};
  }
  if (self->jail_retried_) {
    co_return fail(Code::invalid, self->spec_.file +
                                      ": its settings schema names other paths at each load; it must be the same "
                                      "text each time");
  }
  self->needs_new_jail_ = true;
  co_return Status{};
}

std::string Supervisor::open_payload() const {
  const auto& s = spec_.session;
  ipc::Open open{s.backend, s.settings_json, s.secrets};
  open.key_id = s.worker_key.id;
  open.key.assign(s.worker_key.key.begin(), s.worker_key.key.end());
  open.digest_seed = s.digest_seed;
  open.max_records = s.budgets.records;
  open.max_bytes = s.budgets.bytes;
  open.deadline_ns = nanos(Steady::now() + kOpenDeadline);
  open.redact = s.redact;
  return encode(open);
}

/// Makes a call that sends neither records nor marks.
Task<Result<ipc::CallResult>> Supervisor::simple_call(std::shared_ptr<Supervisor> self, ipc::FrameType type,
                                                      std::string payload) {
  const auto call = self->begin(type, std::move(payload), Steady::now() + kOpenDeadline);
  while (!call->done) {
    boost::system::error_code woken;  // on_result() and fail_calls() cancel the timer
    co_await call->wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  if (!*call->done) co_return fail(call->done->error());
  if ((*call->done)->code != Code::ok) co_return fail((*call->done)->code, (*call->done)->message);
  co_return **call->done;
}

Task<void> Supervisor::read_errors(std::shared_ptr<Supervisor> self) {
  auto* pipe = self->worker_->errors();
  const std::string backend = self->spec_.session.backend;
  self->errors_ = std::make_unique<LineLog>(
      [backend](const std::string& line) { log::room("host").info("[{}] stderr: {}", backend, line); },
      self->scrubber_);
  std::string buffer(kLastErrors, '\0');
  for (;;) {
    boost::system::error_code failed;
    const std::size_t got =
        co_await pipe->async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, failed));
    if (failed || !self->errors_) co_return;
    self->errors_->feed({buffer.data(), got}, Steady::now());
  }
}

void Supervisor::on_worker_exit(const std::string& how) {
  if (auto* pipe = worker_->errors(); pipe != nullptr && errors_) {
    std::string buffer(kLastErrors, '\0');
    boost::system::error_code ended;  // an empty pipe and a closed one make no difference here
    pipe->non_blocking(true, ended);
    const std::size_t got = pipe->read_some(asio::buffer(buffer), ended);
    errors_->feed({buffer.data(), got}, Steady::now());
    errors_->finish(Steady::now());
    errors_.reset();
    pipe->close(ended);
  }
  usage_.cancel();
  stop_limit_.cancel();
  worker_.reset();
  channel_->close();
  channel_.reset();
  if (needs_new_jail_ && !stopping_ && !retired_)
    return fail_calls(Error{Code::unavailable, "the worker is restarted with a new jail"});
  if (stopping_) return fail_calls(Error{Code::cancelled, "the session is stopped"});
  if (failure_) {
    fail_calls(*failure_);
    return set_state("backoff");
  }
  const std::string names = in_flight();
  status_.last_exit = kill_reason_.empty() ? how + (names.empty() ? "" : " in " + names) : kill_reason_;
  fail_calls(Error{Code::unavailable, "worker " + status_.last_exit});
  if (retired_) return report("crashed", status_.last_exit);
  after_crash();
}

void Supervisor::after_crash() {
  const auto now = Steady::now();
  if (running_since_ != Steady::time_point{} && now - running_since_ >= kGoodRun) backoff_.reset();
  running_since_ = {};
  crashes_.push_back(now);
  while (now - crashes_.front() > kCrashWindow) crashes_.pop_front();
  report("crashed", status_.last_exit);
  const bool park = static_cast<int>(crashes_.size()) >= options_.crashes_to_park;
  if (park) {
    status_.parked_until_ns = SystemClock().wall() + std::chrono::nanoseconds(options_.parked).count();
    report("parked",
           fmt::format("{} crashes in ten minutes; the last: {}", options_.crashes_to_park, status_.last_exit));
  }
  set_state(park ? "parked" : "backoff");
}

void Supervisor::retire() {
  retired_ = true;
  retry_.cancel();
  for (const auto& [id, call] : calls_) {
    if (call->type == ipc::FrameType::watch) cancel(*call);
  }
}

Task<void> Supervisor::idle(std::shared_ptr<Supervisor> self, Steady::time_point deadline) {
  while (!self->calls_.empty() && !self->finished_ && !self->stopping_ && Steady::now() < deadline) {
    co_await self->pause(kIdlePoll);
  }
}

/// Kills a worker that does not close its instance and exit within the grace time after it was told to stop.
void Supervisor::arm_stop_timer() {
  stop_limit_.expires_after(options_.grace);
  stop_limit_.async_wait([weak = weak_from_this()](const boost::system::error_code& ended) {
    const auto self = weak.lock();
    if (ended || !self || !self->worker_) return;
    self->report("misbehaved",
                 fmt::format("did not return from {} within {} of being stopped: killed",
                             self->calls_.empty() ? "close" : self->in_flight(), render_seconds(self->options_.grace)));
    self->kill("did not stop in time: killed");
  });
}

Task<void> Supervisor::stop(std::shared_ptr<Supervisor> self) {
  if (!self->stopping_) {
    self->stopping_ = true;
    self->retry_.cancel();
    for (const auto& [id, call] : self->calls_) self->cancel(*call);
    if (self->channel_) self->channel_->send(ipc::FrameType::stop, 0, {});
    self->arm_stop_timer();
    self->set_state(self->status_.state);
  }
  while (!self->finished_) co_await self->pause(self->options_.grace);
}

void Supervisor::drop() {
  stopping_ = true;
  retry_.cancel();
  kill("its session is gone");
}

}  // namespace driftd::host
