// SPDX-License-Identifier: Apache-2.0
// The life of a RenewedSession: first values, new values, no values any more. Its calls are in renewed_calls.cpp.
#include "secrets/renewed_session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <utility>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::secrets {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kIdlePoll{20};
constexpr milliseconds kMaxTurn{1'000};    // a look at files that takes longer hangs; others stop waiting for it
constexpr milliseconds kHangAfter{1'500};  // a hang is reported after this time
constexpr const char* kUntilThen = "; until it does, what was read before stays in use";
constexpr auto kMaxDrain = std::chrono::minutes(70);  // longer than the deadline of any call

}  // namespace

std::string FileLooks::hang() const {
  const bool hangs = since && begun && std::chrono::steady_clock::now() - *since >= kHangAfter;
  return hangs ? "secret file " + file.string() + ": its file system has not answered since " + render_time(wall)
               : std::string();
}

RenewedSession::RenewedSession(RenewalOptions options, core::SessionSpec spec)
    : options_(std::move(options)),
      spec_(std::move(spec)) {}

RenewedSession::~RenewedSession() {
  if (values_) values_->cancel();
}

Status RenewedSession::start(const std::vector<config::ProgramUse>& programs, std::vector<config::FileUse> files) {
  if (!files.empty()) files_.emplace(std::move(files), spec_.secrets);
  if (!programs.empty()) {
    run_programs(programs);
    return {};
  }
  DRIFTD_TRY(inner_, open());
  return {};
}

void RenewedSession::run_programs(const std::vector<config::ProgramUse>& uses) {
  const auto weak = weak_from_this();
  ProgramValues::Callbacks callbacks;
  callbacks.values = [weak](std::map<std::string, std::string> values) {
    if (const auto self = weak.lock()) self->use_values(std::move(values));
  };
  callbacks.missing = [weak](std::string why) {
    if (const auto self = weak.lock()) self->stop_without_value(std::move(why));
  };
  callbacks.failing = [handler = options_.on_event, backend = spec_.backend](std::string message) {
    if (handler) handler({backend, "program_failed", std::move(message)});
  };
  callbacks.ran = [handler = options_.on_program, backend = spec_.backend](bool ok) {
    if (handler) handler(backend, ok);
  };
  values_ = std::make_shared<ProgramValues>(options_.core, options_.io, *options_.clock, uses, std::move(callbacks));
  values_->start();
}

void RenewedSession::wake() {
  for (auto* timer : waiting_) timer->cancel();
}

Task<void> RenewedSession::pause(milliseconds max_wait) {
  asio::steady_timer timer(options_.core, max_wait);
  const auto at = waiting_.insert(waiting_.end(), &timer);
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  waiting_.erase(at);
}

void RenewedSession::use_values(std::map<std::string, std::string> values) {
  if (stopping_) return;
  for (auto& [token, bytes] : values) spec_.secrets[token] = std::move(bytes);
  missing_.clear();
  ++newest_version_;
  if (inner_) log::room("app").info("{}: a program returned a new secret; starting a worker with it", spec_.backend);
  ++tasks_;
  asio::co_spawn(options_.core, renew(shared_from_this()), fatal);
}

/// Starts a look unless one is under way. Only the caller may wait for it; while a file system hangs, the backend
/// misses changes and no further look starts.
void RenewedSession::look_at_files(bool refused) {
  if (!files_ || stopping_) return;
  refused_ = refused_ || refused;
  report_hang();
  if (!std::exchange(looking_, true)) asio::co_spawn(options_.core, look(shared_from_this()), fatal);
}

/// Waits for the looks of other backends whose cycles began together. Returns false behind a look that hangs: the next
/// cycle asks again.
Task<bool> RenewedSession::may_look() {
  const auto looks = options_.looks;
  const auto began = std::chrono::steady_clock::now();
  const auto passes = [&] {
    const auto now = std::chrono::steady_clock::now();
    return now - *looks->since < kMaxTurn && now - began < kMaxTurn;
  };
  while (looks->since && !stopping_ && passes()) co_await pause(kIdlePoll);
  co_return !looks->since && !stopping_;
}

Task<std::vector<FileSecrets::Found>> RenewedSession::look_at_each(std::vector<FileSecrets::FileToRead> asked,
                                                                   bool refused) {
  const auto looks = options_.looks;
  std::vector<FileSecrets::Found> out;
  looks->backend = spec_.backend;
  for (const auto& one : asked) {
    looks->since = std::chrono::steady_clock::now();
    looks->wall = options_.clock->wall();
    looks->file = one.file;
    looks->begun = false;
    std::vector<FileSecrets::FileToRead> only = {one};
    auto work = [looks, only, refused] {
      looks->begun = true;
      return looks->look(only, refused);
    };
    auto found = co_await run_on(options_.io, std::move(work));
    out.insert(out.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
    if (stopping_) break;
  }
  co_return out;
}

/// Reports a hang once, whichever session notices it. Meanwhile changes in no backend's files are noticed.
void RenewedSession::report_hang() {
  const auto& looks = options_.looks;
  const std::string hang = looks->hang();
  if (hang.empty() || std::exchange(looks->reported, true)) return;
  log::room("app").warn("{}: {}{}", looks->backend, hang, kUntilThen);
  if (options_.on_event) options_.on_event({looks->backend, "secret_file_failed", hang + kUntilThen});
}

/// Waits until a changed file can be looked at again. Other backends may look meanwhile.
Task<void> RenewedSession::wait_until_settled() {
  const auto until = std::chrono::steady_clock::now() + config::kSettleTime;
  while (std::chrono::steady_clock::now() < until && !stopping_) {
    co_await pause(std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()));
  }
}

Task<void> RenewedSession::look(std::shared_ptr<RenewedSession> self) {
  const auto looks = self->options_.looks;
  do {
    const bool mine = co_await self->may_look();
    if (!mine) break;
    auto found = co_await self->look_at_each(self->files_->files_to_read(), std::exchange(self->refused_, false));
    looks->since.reset();
    if (std::exchange(looks->reported, false))
      log::room("app").info("secret file {}: its file system answers again", looks->file.string());
    if (self->stopping_) break;
    self->use_file_changes(self->files_->apply(std::move(found)));
    if (self->files_->unsettled()) co_await self->wait_until_settled();
  } while ((self->refused_ || self->files_->unsettled()) && !self->stopping_);
  self->looking_ = false;
  self->wake();
}

void RenewedSession::use_file_changes(FileSecrets::FileChanges news) {
  for (const auto& line : news.failing) {
    log::room("app").warn("{}: {}", spec_.backend, line);
    if (options_.on_event) options_.on_event({spec_.backend, "secret_file_failed", line});
  }
  for (const auto& line : news.doubtful) log::room("app").warn("{}: {}", spec_.backend, line);
  for (const auto& line : news.recovered) log::room("app").info("{}: {}", spec_.backend, line);
  if (news.values.empty()) return;
  for (const auto& line : news.changed)
    log::room("app").info("{}: {} changed; starting a worker with the new value", spec_.backend, line);
  for (auto& [token, bytes] : news.values) spec_.secrets[token] = std::move(bytes);
  ++newest_version_;
  if (!inner_ && !renewing_) return;  // the first session is opened by the programs' answers
  if (!values_) missing_.clear();
  ++tasks_;
  asio::co_spawn(options_.core, renew(shared_from_this()), fatal);
}

void RenewedSession::stop_without_value(std::string why) {
  missing_ = std::move(why);
  takeover_error_.clear();
  calls_refused_ = true;
  ++newest_version_;
  const auto old = std::exchange(inner_, nullptr);
  if (old && !stopping_) {
    add_totals(old->session->status());
    ++tasks_;
    asio::co_spawn(options_.core, retire(shared_from_this(), old), fatal);
  }
  wake();
}

Result<std::shared_ptr<RenewedSession::Inner>> RenewedSession::open() {
  auto out = std::make_shared<Inner>();
  DRIFTD_TRY(out->session, options_.factory->open(spec_));
  out->session->on_change([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->changed_) self->changed_();
  });
  return out;
}

/// Keeps the active session after a failed takeover. If there is none, calls return the reason.
void RenewedSession::note_failed_takeover(std::string why) {
  if (!inner_) missing_ = why;
  calls_refused_ = calls_refused_ || !inner_;
  if (takeover_error_ != why)
    log::room("app").warn("{}: a worker with the new secret does not answer: {}", spec_.backend, why);
  takeover_error_ = std::move(why);
}

/// Repeats a failed takeover: the values have not changed, so nothing else would start it.
void RenewedSession::retry_takeover() {
  if (takeover_error_.empty() || renewing_ || stopping_) return;
  if (!inner_) missing_.clear();
  ++tasks_;
  asio::co_spawn(options_.core, renew(shared_from_this()), fatal);
}

/// Opens a session with the newest values and lets it take over. One runs at a time; values that arrive meanwhile are
/// noticed by their version.
Task<void> RenewedSession::renew(std::shared_ptr<RenewedSession> self) {
  const bool alone = !std::exchange(self->renewing_, true);
  while (alone && !self->stopping_ && self->missing_.empty() && self->served_version_ != self->newest_version_) {
    const std::uint64_t wanted = self->newest_version_;
    const auto opened = self->open();
    if (!opened) {
      self->note_failed_takeover(opened.error().message);
      break;
    }
    const auto next = *opened;
    self->next_ = next;
    std::optional<std::string> mute;
    if (self->inner_) {
      const auto info = co_await next->session->info();
      if (!info) mute = info.error().message;
      // its worker runs; a failure here will show in the following calls
      if (info) (void)co_await next->session->health();
    }
    self->next_.reset();
    const bool newer = self->stopping_ || wanted != self->newest_version_;
    if (!newer && !mute) {
      self->served_version_ = wanted;
      self->serve(next);
      continue;
    }
    if (!newer) self->note_failed_takeover(*mute);
    co_await next->session->stop();
    if (wanted == self->newest_version_) break;
  }
  if (alone) self->renewing_ = false;
  --self->tasks_;
  self->wake();
}

void RenewedSession::serve(std::shared_ptr<Inner> next) {
  const auto old = std::exchange(inner_, std::move(next));
  takeover_error_.clear();
  const bool failed = std::exchange(unhealthy_, false), calls_refused = std::exchange(calls_refused_, false);
  if (old) {
    add_totals(old->session->status());
    ++tasks_;
    asio::co_spawn(options_.core, retire(shared_from_this(), old), fatal);
  }
  wake();
  if ((failed || calls_refused) && changed_) changed_();  // what was missed meanwhile is read at once
}

/// Stops a replaced session after its calls have ended. Its watch would not end by itself.
Task<void> RenewedSession::retire(std::shared_ptr<RenewedSession> self, std::shared_ptr<Inner> old) {
  const auto last = std::chrono::steady_clock::now() + kMaxDrain;
  while (old->calls > 0 && !self->stopping_ && std::chrono::steady_clock::now() < last) co_await self->pause(kIdlePoll);
  co_await old->session->stop();
  --self->tasks_;
  self->wake();
}

/// Adds the totals of a replaced session, so that a backend's totals continue with a new secret.
void RenewedSession::add_totals(const core::WorkerStatus& old) {
  past_.restarts += old.restarts;
  past_.denied_secrets += old.denied_secrets;
  for (const auto& [rule, count] : old.misuses) past_.misuses[rule] += count;
  for (const auto& [budget, count] : old.budget_hits) past_.budget_hits[budget] += count;
  if (!old.last_misuse.empty()) past_.last_misuse = old.last_misuse;
  if (!old.last_budget_hit.empty()) past_.last_budget_hit = old.last_budget_hit;
}

core::WorkerStatus RenewedSession::status() const {
  core::WorkerStatus out;
  if (inner_) {
    out = inner_->session->status();
  } else {
    out.state = stopping_ ? "stopped" : missing_.empty() ? "starting" : "no secret";
    out.last_exit = missing_;
  }
  if (files_) out.secret_fault = files_->fault();
  if (const std::string hang = options_.looks->hang(); files_ && !hang.empty()) out.secret_fault = hang + kUntilThen;
  if (inner_ && !takeover_error_.empty() && out.secret_fault.empty()) {
    out.secret_fault = "a worker with the new secret does not answer: " + takeover_error_ +
                       "; what was read before stays in use until one does";
  }
  out.restarts += past_.restarts;
  out.denied_secrets += past_.denied_secrets;
  for (const auto& [rule, count] : past_.misuses) out.misuses[rule] += count;
  for (const auto& [budget, count] : past_.budget_hits) out.budget_hits[budget] += count;
  if (out.last_misuse.empty()) out.last_misuse = past_.last_misuse;
  if (out.last_budget_hit.empty()) out.last_budget_hit = past_.last_budget_hit;
  return out;
}

Task<void> RenewedSession::stop() {
  const auto self = shared_from_this();
  stopping_ = true;
  wake();
  if (values_) co_await values_->stop();
  if (next_) co_await next_->session->stop();
  if (inner_) co_await inner_->session->stop();
  while (tasks_ > 0) co_await pause(kIdlePoll);
}

namespace {

class RenewingFactory final : public core::SessionFactory {
 public:
  RenewingFactory(RenewalOptions options, std::shared_ptr<const SecretUses> uses)
      : options_(std::move(options)),
        uses_(std::move(uses)),
        handler_(std::make_shared<Handler>()) {
    options_.on_event = [handler = handler_](core::SessionEvent event) {
      if (*handler) (*handler)(std::move(event));
    };
  }
  Task<std::vector<ScanResult>> scan() override { return options_.factory->scan(); }
  Status resume(const std::string& backend) override { return options_.factory->resume(backend); }
  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override {
    const config::BackendEntry* uses = uses_->find(spec.backend);
    if (uses == nullptr) return options_.factory->open(std::move(spec));
    // with a token for each reference, also in plain settings
    const std::string& as_loaded = uses->spec.settings_json;
    if (!uses->files.empty() && !as_loaded.empty()) spec.settings_json = as_loaded;
    const auto session = std::make_shared<RenewedSession>(options_, std::move(spec));
    DRIFTD_CHECK(session->start(uses->programs, uses->files));
    return session;
  }
  void on_event(std::function<void(core::SessionEvent)> handler) override {
    *handler_ = handler;
    options_.factory->on_event(std::move(handler));
  }
  void watch(bool on) override { options_.factory->watch(on); }

 private:
  using Handler = std::function<void(core::SessionEvent)>;
  RenewalOptions options_;
  const std::shared_ptr<const SecretUses> uses_;
  const std::shared_ptr<Handler> handler_;
};

}  // namespace

std::shared_ptr<core::SessionFactory> with_secrets(RenewalOptions options, std::shared_ptr<const SecretUses> uses) {
  return std::make_shared<RenewingFactory>(std::move(options), std::move(uses));
}

std::shared_ptr<core::SessionFactory> with_secrets(RenewalOptions options, const config::Config& config) {
  return with_secrets(std::move(options), std::make_shared<const SecretUses>(config));
}

}  // namespace driftd::secrets
