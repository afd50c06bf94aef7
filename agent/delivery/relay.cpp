// SPDX-License-Identifier: Apache-2.0
#include "delivery/relay.hpp"

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "delivery/sink_runner.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>

namespace driftd::delivery {
namespace {

constexpr Millis kDrainOne{1'000};  // somebody waits for the answer, and what is not settled is sent again

}  // namespace

Relay::Relay(asio::any_io_executor core, core::Outbox& outbox, const Clock& clock, RelaySettings settings)
    : context_(std::make_shared<SinkRunnerContext>(
          SinkRunnerContext{std::move(core), outbox, clock, std::move(settings), [this] {
                              wake();
                              if (context_->settings.appended) context_->settings.appended();
                            }})) {}

Relay::~Relay() {
  context_->wake_all = [] {};  // a runner's append may outlive the relay for a moment
}

void Relay::add_sink(std::string name, std::string type, std::unique_ptr<core::Sink> sink) {
  runners_[name] = std::make_shared<SinkRunner>(context_, name, std::move(type), std::move(sink));
}

Task<Status> Relay::start() {
  DRIFTD_CO_TRY(const auto known, co_await context_->outbox.sinks());
  const auto& drop = context_->settings.drop_pending;
  for (const auto& name : known) {
    if (runners_.count(name) != 0) continue;
    const bool may_drop = std::find(drop.begin(), drop.end(), name) != drop.end();
    const Status closed = co_await context_->outbox.close_sink(name, may_drop);
    if (closed) continue;
    if (closed.error().code != Code::conflict) co_return fail(closed.error());
    orphans_[name] = closed.error().message;
    log::room("delivery").error("orphaned sink: {}", closed.error().message);
  }
  // A commit routes nothing to a sink that is closed, and a runner may open its own a moment after the first commit.
  for (const auto& [name, runner] : runners_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    (void)co_await context_->outbox.open_sink(name);  // if this fails, the runner reports it and tries again
  }
  for (const auto& [name, runner] : runners_) asio::co_spawn(context_->core, runner->run(), fatal);
  co_return Status{};
}

Task<Status> Relay::start_sink(std::string name, std::string type, std::unique_ptr<core::Sink> sink) {
  if (stopping_) co_return fail(Code::cancelled, "the agent stops");
  const auto opened = co_await context_->outbox.open_sink(name);  // from here on the sink gets every committed event
  if (!opened) co_return fail(opened.error());
  if (stopping_)
    co_return fail(Code::cancelled, "the agent stops");  // stop() has passed already and would not stop this runner
  orphans_.erase(name);
  add_sink(name, std::move(type), std::move(sink));
  asio::co_spawn(context_->core, runners_.at(name)->run(), fatal);
  co_return Status{};
}

Status Relay::use_secrets(const std::string& name, std::vector<std::string> secrets) {
  DRIFTD_TRY(const auto found, runner(name));
  return found->use_secrets(std::move(secrets));
}

Task<void> Relay::former_secrets_unused(std::string name) {
  const auto found = runner(name);
  if (found) co_await (*found)->former_secrets_unused();
}

Task<void> Relay::stop() {
  stopping_ = true;
  for (const auto& [name, runner] : runners_) runner->stop(context_->settings.drain);
  for (const auto& [name, runner] : std::map(runners_)) co_await wait_until_stopped(runner);
}

Task<void> Relay::wait_until_stopped(std::shared_ptr<SinkRunner> runner) {
  asio::steady_timer poll(context_->core);
  while (!runner->stopped()) {
    poll.expires_after(std::chrono::milliseconds(2));
    co_await poll.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  abandoned_ = abandoned_ || runner->abandoned();
}

Task<Status> Relay::stop_sink(std::string name) {
  DRIFTD_CO_TRY(const auto found, runner(name));
  found->stop(std::min(context_->settings.drain, kDrainOne));
  co_await wait_until_stopped(found);
  const auto still = runners_.find(name);
  if (still != runners_.end() && still->second == found) runners_.erase(still);
  co_return Status{};
}

Task<Status> Relay::remove_sink(std::string name) {
  if (has(name)) {
    DRIFTD_CO_CHECK(co_await stop_sink(name));
  }
  const Status closed = co_await context_->outbox.close_sink(name, true);
  orphans_.erase(name);
  if (!closed && closed.error().code != Code::not_found) co_return fail(closed.error());
  context_->wake_all();  // the store may have appended a `gap`
  co_return Status{};
}

void Relay::wake() {
  for (const auto& [name, runner] : runners_) runner->wake_and_fetch();
}

void Relay::watch() {
  for (const auto& [name, runner] : runners_) runner->watch();
}

std::vector<core::SinkView> Relay::views() const {
  std::vector<core::SinkView> out;
  for (const auto& [name, runner] : runners_) out.push_back(runner->view());
  for (const auto& [name, left] : orphans_) {
    core::SinkView view;
    view.name = name;
    view.state = "orphaned: " + left;
    out.push_back(std::move(view));
  }
  return out;
}

Result<std::shared_ptr<SinkRunner>> Relay::runner(const std::string& name) const {
  const auto found = runners_.find(name);
  if (found != runners_.end()) return found->second;
  std::string known;
  for (const auto& [other, runner] : runners_) known += (known.empty() ? "" : ", ") + other;
  return fail(Code::not_found, "no sink '" + name + "'; available: " + known);
}

Task<Result<std::int64_t>> Relay::replay(core::Control::Replay request) {
  DRIFTD_CO_TRY(const auto found, runner(request.sink));
  co_return co_await found->replay(std::move(request));
}

Task<Result<std::int64_t>> Relay::dead_letter(std::string sink, std::string verb, std::vector<std::int64_t> seqs) {
  DRIFTD_CO_TRY(const auto found, runner(sink));
  co_return co_await found->dead_letter(std::move(verb), std::move(seqs));
}

}  // namespace driftd::delivery
