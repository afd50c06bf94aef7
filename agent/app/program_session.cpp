// SPDX-License-Identifier: Apache-2.0
// A session over time: the first answers, new ones, none any more. Its calls are in program_calls.cpp.
#include "app/program_session.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <iterator>
#include <utility>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::app {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kIdlePoll{20};
constexpr auto kDrain = std::chrono::minutes(70);  // above every deadline of a call

}  // namespace

ProgramSession::ProgramSession(ProgramOptions options, core::SessionSpec spec)
    : options_(std::move(options)), spec_(std::move(spec)) {}

ProgramSession::~ProgramSession() {
  if (values_) values_->cancel();
}

void ProgramSession::start(const std::vector<config::ProgramUse>& uses) {
  const auto weak = weak_from_this();
  ProgramValues::Told told;
  told.values = [weak](std::map<std::string, std::string> values) {
    if (const auto self = weak.lock()) self->take_values(std::move(values));
  };
  told.missing = [weak](std::string why) {
    if (const auto self = weak.lock()) self->take_missing(std::move(why));
  };
  told.failing = [handler = options_.on_event, backend = spec_.backend](std::string message) {
    if (handler) handler({backend, "program_failed", std::move(message)});
  };
  told.ran = [handler = options_.on_program, backend = spec_.backend](bool ok) {
    if (handler) handler(backend, ok);
  };
  values_ = std::make_shared<ProgramValues>(options_.core, options_.io, *options_.clock, uses, std::move(told));
  values_->start();
}

void ProgramSession::wake() {
  for (auto* timer : waiting_) timer->cancel();
}

Task<void> ProgramSession::pause(milliseconds most) {
  asio::steady_timer timer(options_.core, most);
  const auto at = waiting_.insert(waiting_.end(), &timer);
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  waiting_.erase(at);
}

void ProgramSession::take_values(std::map<std::string, std::string> values) {
  if (stopping_) return;
  for (auto& [token, bytes] : values) spec_.secrets[token] = std::move(bytes);
  missing_.clear();
  ++newest_;
  if (inner_) log::room("app").info("{}: a program gave a new secret: a worker with it takes over", spec_.backend);
  ++tasks_;
  asio::co_spawn(options_.core, renew(shared_from_this()), fatal);
}

void ProgramSession::take_missing(std::string why) {
  missing_ = std::move(why);
  dark_ = true;
  ++newest_;
  const auto old = std::exchange(inner_, nullptr);
  if (old && !stopping_) {
    remember(old->session->status());
    ++tasks_;
    asio::co_spawn(options_.core, retire(shared_from_this(), old), fatal);
  }
  wake();
}

std::shared_ptr<ProgramSession::Inner> ProgramSession::open() {
  auto opened = options_.factory->open(spec_);
  if (!opened) {
    missing_ = opened.error().message;
    return nullptr;
  }
  (*opened)->on_change([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->changed_) self->changed_();
  });
  auto out = std::make_shared<Inner>();
  out->session = std::move(*opened);
  return out;
}

/// One at a time: whoever comes meanwhile is seen by the count of answers.
Task<void> ProgramSession::renew(std::shared_ptr<ProgramSession> self) {
  const bool alone = !std::exchange(self->renewing_, true);
  while (alone && !self->stopping_ && self->missing_.empty() && self->served_ != self->newest_) {
    const std::uint64_t wanted = self->newest_;
    self->next_ = self->open();
    const auto next = self->next_;
    if (!next) {
      self->wake();
      break;
    }
    if (self->inner_) {  // what fails here fails in the calls that follow, with its reason
      (void)co_await next->session->info();
      (void)co_await next->session->health();
    }
    self->next_.reset();
    if (self->stopping_ || wanted != self->newest_) {
      co_await next->session->stop();
      continue;
    }
    self->served_ = wanted;
    self->serve(next);
  }
  if (alone) self->renewing_ = false;
  --self->tasks_;
  self->wake();
}

void ProgramSession::serve(std::shared_ptr<Inner> next) {
  const auto old = std::exchange(inner_, std::move(next));
  const bool failed = std::exchange(ailing_, false), dark = std::exchange(dark_, false);
  if (old) {
    remember(old->session->status());
    ++tasks_;
    asio::co_spawn(options_.core, retire(shared_from_this(), old), fatal);
  }
  wake();
  if ((failed || dark) && changed_) changed_();  // what was missed meanwhile is read at once
}

/// Its calls end first; its watch does not end by itself.
Task<void> ProgramSession::retire(std::shared_ptr<ProgramSession> self, std::shared_ptr<Inner> old) {
  const auto last = std::chrono::steady_clock::now() + kDrain;
  while (old->calls > 0 && !self->stopping_ && std::chrono::steady_clock::now() < last) co_await self->pause(kIdlePoll);
  co_await old->session->stop();
  --self->tasks_;
  self->wake();
}

/// The counts of a backend go on when its worker gets another secret.
void ProgramSession::remember(const core::WorkerStatus& old) {
  past_.restarts += old.restarts;
  past_.denied_secrets += old.denied_secrets;
  for (const auto& [rule, count] : old.misuses) past_.misuses[rule] += count;
  for (const auto& [budget, count] : old.budget_hits) past_.budget_hits[budget] += count;
  if (!old.last_misuse.empty()) past_.last_misuse = old.last_misuse;
  if (!old.last_budget_hit.empty()) past_.last_budget_hit = old.last_budget_hit;
}

core::WorkerStatus ProgramSession::status() const {
  core::WorkerStatus out;
  if (inner_) {
    out = inner_->session->status();
  } else {
    out.state = stopping_ ? "stopped" : missing_.empty() ? "starting" : "no secret";
    out.last_exit = missing_;
  }
  out.restarts += past_.restarts;
  out.denied_secrets += past_.denied_secrets;
  for (const auto& [rule, count] : past_.misuses) out.misuses[rule] += count;
  for (const auto& [budget, count] : past_.budget_hits) out.budget_hits[budget] += count;
  if (out.last_misuse.empty()) out.last_misuse = past_.last_misuse;
  if (out.last_budget_hit.empty()) out.last_budget_hit = past_.last_budget_hit;
  return out;
}

Task<void> ProgramSession::stop() {
  const auto self = shared_from_this();
  stopping_ = true;
  wake();
  co_await values_->stop();
  if (next_) co_await next_->session->stop();
  if (inner_) co_await inner_->session->stop();
  while (tasks_ > 0) co_await pause(kIdlePoll);
}

namespace {

class ProgramFactory final : public core::SessionFactory {
 public:
  ProgramFactory(ProgramOptions options, std::vector<config::ProgramUse> uses)
      : options_(std::move(options)), uses_(std::move(uses)), handler_(std::make_shared<Handler>()) {
    options_.on_event = [handler = handler_](core::SessionEvent event) {
      if (*handler) (*handler)(std::move(event));
    };
  }
  Task<std::vector<Found>> scan() override { return options_.factory->scan(); }
  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override {
    std::vector<config::ProgramUse> mine;
    std::copy_if(uses_.begin(), uses_.end(), std::back_inserter(mine),
                 [&](const config::ProgramUse& use) { return use.backend == spec.backend; });
    if (mine.empty()) return options_.factory->open(std::move(spec));
    const auto session = std::make_shared<ProgramSession>(options_, std::move(spec));
    session->start(mine);
    return session;
  }
  void on_event(std::function<void(core::SessionEvent)> handler) override {
    *handler_ = handler;
    options_.factory->on_event(std::move(handler));
  }
  void watch(bool on) override { options_.factory->watch(on); }

 private:
  using Handler = std::function<void(core::SessionEvent)>;
  ProgramOptions options_;
  const std::vector<config::ProgramUse> uses_;
  const std::shared_ptr<Handler> handler_;
};

}  // namespace

std::shared_ptr<core::SessionFactory> with_programs(ProgramOptions options, std::vector<config::ProgramUse> uses) {
  if (uses.empty()) return options.factory;
  return std::make_shared<ProgramFactory>(std::move(options), std::move(uses));
}

}  // namespace driftd::app
