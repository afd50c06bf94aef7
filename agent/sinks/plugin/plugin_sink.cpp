// SPDX-License-Identifier: Apache-2.0
#include "sinks/plugin/plugin_sink.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "sinks/plugin/batches.hpp"
#include "sinks/plugin/encode.hpp"

namespace driftd::sinks {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;

constexpr int kMaxInFlight = 256;  // events that may arrive twice after a kill (docs/delivery.md, cursor)
constexpr std::size_t kMaxBody = 32u << 20;

std::string render_probe(const core::HealthReport& report) {
  using State = core::HealthReport::State;
  const std::string because = report.reason.empty() ? "" : ": " + report.reason;
  switch (report.state) {
    case State::up:
      return "endpoint up";
    case State::degraded:
      return "endpoint degraded" + because;
    case State::down:
      return "endpoint down" + because;
    default:
      return "endpoint unknown" + because;
  }
}

/// One send() that waits for its answer.
struct WaitingSend {
  explicit WaitingSend(const asio::any_io_executor& core) : wake(core, asio::steady_timer::time_point::max()) {}
  std::optional<Attempt> answer;
  asio::steady_timer wake;  ///< cancelled by the answer
};

class PluginSink final : public core::Sink {
 public:
  PluginSink(std::string name, PluginSettings settings, std::shared_ptr<core::SessionFactory> sessions, bool forever,
             asio::any_io_executor core)
      : name_(std::move(name)),
        settings_(std::move(settings)),
        sessions_(std::move(sessions)),
        forever_(forever),
        core_(core),
        batches_(std::make_shared<Batches>(core)) {}

  core::RetryPolicy policy() const override {
    using namespace std::chrono_literals;
    if (forever_) return {true, {}, kMaxInFlight};
    return {false, {0s, 5s, 5min, 30min, 2h, 5h, 10h, 14h, 20h, 24h}, kMaxInFlight};
  }
  Task<Status> start() override;
  Task<Attempt> send(core::StoredEvent event) override;
  Task<Status> flush() override;
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) override;
  Task<void> stop() override;
  std::string describe() const override;

 private:
  core::SessionSpec spec() const;
  Task<Status> look_at_plugin();
  /// Looks at the plugin again if it was upgraded since the last time; if that fails, the next call tries it again.
  Task<Status> look_if_changed();

  const std::string name_;
  const PluginSettings settings_;
  const std::shared_ptr<core::SessionFactory> sessions_;
  const bool forever_;
  const asio::any_io_executor core_;
  const std::shared_ptr<Batches> batches_;
  std::shared_ptr<core::Session> session_;          ///< null before start()
  std::shared_ptr<const core::ProviderInfo> info_;  ///< null until the plugin was described
  std::string probe_;                               ///< what the last probe said; empty: there was none
  std::int64_t probed_ = 0;                         ///< pid of the worker that was asked
  const std::shared_ptr<bool> plugin_changed_ = std::make_shared<bool>(false);  ///< an upgrade may declare other bounds
};

core::SessionSpec PluginSink::spec() const {
  core::SessionSpec out;
  out.backend = "sink/" + name_;
  out.sink = name_;
  out.provider = settings_.plugin;
  out.settings_json = settings_.settings_json;
  out.secrets = settings_.secrets;
  out.budgets = settings_.budgets;
  out.budgets.call = settings_.timeout;
  out.wait_for_plugin = true;
  return out;
}

Task<Status> PluginSink::start() {
  if (!session_) {
    DRIFTD_CO_TRY(session_, sessions_->open(spec()));
    session_->on_change([changed = plugin_changed_] { *changed = true; });
  }
  DRIFTD_CO_CHECK(co_await look_at_plugin());
  co_return Status{};
}

Task<Status> PluginSink::look_at_plugin() {
  const auto session = session_;
  DRIFTD_CO_TRY(info_, co_await session->info());
  if (!info_->sink) co_return fail(Code::invalid, info_->file + ": is not a sink plugin");
  const auto least = [](std::size_t configured, std::size_t declared) {
    return configured == 0 ? declared : std::min(configured, declared);
  };
  BatchBounds bounds;
  bounds.events = least(settings_.max_events, info_->sink->max_events);
  bounds.bytes = info_->sink->max_bytes;
  bounds.calls = least(settings_.max_calls, static_cast<std::size_t>(info_->concurrency));
  bounds.timeout = settings_.timeout;
  bounds.content_type = info_->sink->content_type;
  batches_->use(session, std::move(bounds));
  co_return Status{};
}

Task<Status> PluginSink::look_if_changed() {
  if (!std::exchange(*plugin_changed_, false)) co_return Status{};
  auto looked = co_await look_at_plugin();
  if (!looked) *plugin_changed_ = true;
  co_return looked;
}

Task<Attempt> PluginSink::send(core::StoredEvent event) {
  const Status looked = co_await look_if_changed();
  if (!looked) co_return Attempt{Outcome::retry_sink, looked.error().message, 0};
  auto encoded = plugin_event(event, info_->sink->content_type);
  if (!encoded) co_return Attempt{Outcome::permanent, encoded.error().message, 0};
  if (encoded->body.size() > kMaxBody) {
    co_return Attempt{Outcome::permanent,
                      fmt::format("its body has {} bytes, a plugin gets at most {}", encoded->body.size(), kMaxBody),
                      0};
  }
  const auto waiting = std::make_shared<WaitingSend>(core_);
  batches_->add(std::move(*encoded), [waiting](Attempt attempt) {
    waiting->answer = std::move(attempt);
    waiting->wake.cancel();
  });
  while (!waiting->answer) co_await waiting->wake.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return std::move(*waiting->answer);
}

Task<Status> PluginSink::flush() {
  const auto workers = batches_->drain_unflushed();
  if (workers.empty() || !info_->sink->has_flush) co_return Status{};
  const auto session = session_;
  DRIFTD_CO_TRY(const std::uint64_t flushed, co_await session->flush(settings_.timeout));
  if (workers.size() == 1 && *workers.begin() == flushed) co_return Status{};
  co_return fail(Code::unavailable, "the plugin's worker ended before it had flushed what it delivered");
}

/// Asks the plugin whether it reaches its endpoint, for `driftd status` only: a probe that errs must not stop delivery.
Task<Result<std::optional<std::int64_t>>> PluginSink::check(std::map<std::string, std::string>&) {
  const auto session = session_;
  const Status looked = co_await look_if_changed();
  if (!looked)
    log::room("sinks").warn("{}: the plugin that was upgraded cannot be described: {}", name_, looked.error().message);
  const auto report = co_await session->health();
  probed_ = session->status().pid;
  probe_ = report ? render_probe(*report) : report.error().message;
  co_return std::optional<std::int64_t>{};
}

Task<void> PluginSink::stop() {
  const auto session = session_;
  if (session) co_await session->stop();
}

std::string PluginSink::describe() const {
  if (!session_) return settings_.plugin + ": not started";
  const core::WorkerStatus status = session_->status();
  std::string out = info_ ? info_->id + " " + info_->version : settings_.plugin;
  out += ": worker " + status.state;
  if (status.pid != 0) out += fmt::format(" (pid {})", status.pid);
  if (status.parked_until_ns != 0) {
    out += fmt::format(" until {}, or `driftd plugin resume sink/{}`", render_time(status.parked_until_ns), name_);
  }
  if (!probe_.empty() && status.state == "running" && status.pid == probed_) out += ", " + probe_;
  if (!status.last_exit.empty()) out += fmt::format("; last worker: {}", status.last_exit);
  if (status.restarts > 0) out += fmt::format("; {} restarts", status.restarts);
  if (!status.misuses.empty()) {
    out += "; broke the rules of sink.h:";
    for (const auto& [function, times] : status.misuses) out += fmt::format(" {} {},", function, times);
    out += " last: " + status.last_misuse;
  }
  if (!status.upgrade_refused.empty()) out += "; " + status.upgrade_refused;
  return out;
}

}  // namespace

Result<std::unique_ptr<core::Sink>> open_plugin(std::string name, PluginSettings settings,
                                                std::shared_ptr<core::SessionFactory> sessions,
                                                const core::ProviderInfo* known, asio::any_io_executor core) {
  if (settings.plugin.empty()) return fail(Code::invalid, "sink '" + name + "' names no plugin");
  const bool as_declared = known == nullptr || !known->sink || known->sink->forever;
  const bool forever = settings.retry == PluginRetry::as_plugin ? as_declared : settings.retry == PluginRetry::forever;
  return std::unique_ptr<core::Sink>(
      new PluginSink(std::move(name), std::move(settings), std::move(sessions), forever, std::move(core)));
}

}  // namespace driftd::sinks
