// SPDX-License-Identifier: Apache-2.0
// Shows and sends one event for `driftd test`.
#include <boost/asio/steady_timer.hpp>

#include "app/app.hpp"
#include "app/executors.hpp"
#include "app/sinks.hpp"
#include "base/fatal.hpp"
#include "proto/codec.hpp"
#include "proto/digests.hpp"
#include "sinks/common/chat/render.hpp"

namespace driftd::app {
namespace {

using core::Attempt;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kTryFor{20};
constexpr std::chrono::milliseconds kBetweenTries{250};

Status check_sends(const config::SinkSpec& spec) {
  if (spec.type == "notifications") {
    return fail(Code::unsupported, "sink '" + spec.name + "' is the queue of decisions and sends nothing");
  }
  if (is_plugin_sink(spec)) {
    return fail(Code::unsupported, "sink '" + spec.name + "' is one of a plugin, which only the agent runs; " +
                                       "`driftd replay --sink " + spec.name + " --from SEQ` sends it a stored event");
  }
  return {};
}

/// Returns the event as this sink may have it. The digests are made with a key of this test.
Result<core::StoredEvent> admitted(const config::SinkSpec& spec, core::StoredEvent event) {
  if (!spec.digests_only) return event;
  return proto::digests_only(std::move(event), Key{});
}

std::string said(const Attempt& attempt) { return attempt.detail.empty() ? "delivered" : attempt.detail; }

/// Tries as long as only the connection is missing.
Task<Result<std::string>> send_once(core::Sink& sink, core::StoredEvent event) {
  const auto until = steady_clock::now() + kTryFor;
  DRIFTD_CO_CHECK(co_await sink.start());
  std::map<std::string, std::string> notes;
  asio::steady_timer pause(co_await asio::this_coro::executor);
  while (true) {
    if (sink.must_check()) (void)co_await sink.check(notes);  // what fails there fails in send(), too
    Attempt attempt = co_await sink.send(event);
    if (attempt.outcome == Attempt::Outcome::delivered) {
      DRIFTD_CO_CHECK(co_await sink.flush());
      co_return said(attempt);
    }
    const bool again = attempt.outcome == Attempt::Outcome::retry_sink && steady_clock::now() < until;
    if (!again) co_return fail(Code::unavailable, said(attempt));
    pause.expires_after(kBetweenTries);
    co_await pause.async_wait(asio::use_awaitable);
  }
}

Task<void> send_and_stop(core::Sink& sink, core::StoredEvent event, Result<std::string>& out) {
  out = co_await send_once(sink, std::move(event));
  co_await sink.stop();
}

}  // namespace

Result<std::string> render_event(const config::SinkSpec& spec, const core::StoredEvent& event) {
  DRIFTD_CHECK(check_sends(spec));
  DRIFTD_TRY(const core::StoredEvent shown, admitted(spec, event));
  const auto* webhook = std::get_if<sinks::WebhookSettings>(&spec.settings);
  if (webhook == nullptr || webhook->chat.format == sinks::ChatFormat::none) return proto::cloudevent_json(shown);
  DRIFTD_TRY(const sinks::ChatMessage message, sinks::message_of(shown));
  return sinks::render_chat(webhook->chat, message);
}

Result<std::string> send_event(const config::SinkSpec& spec, const core::StoredEvent& event) {
  DRIFTD_CHECK(check_sends(spec));
  DRIFTD_TRY(core::StoredEvent shown, admitted(spec, event));
  Executors executors;
  const SystemClock clock;
  DRIFTD_TRY(const auto sink, make_sink(spec, executors.core.get_executor(), executors.io.get_executor(), clock));
  Result<std::string> out;
  asio::co_spawn(executors.core, send_and_stop(*sink, std::move(shown), out), fatal);
  executors.core.run();
  return out;
}

}  // namespace driftd::app
