// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/webhook_sink.hpp"

#include <curl/curl.h>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "curl/library.hpp"
#include "proto/codec.hpp"
#include "sinks/common/chat/render.hpp"
#include "sinks/webhook/batcher.hpp"
#include "sinks/webhook/sign.hpp"

namespace driftd::sinks {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;

constexpr int kMaxRefusals = 3;                  // of one event, which is then a dead letter
constexpr std::size_t kMaxEventsInFlight = 256;  // what is sent twice after a kill (docs/delivery.md, cursor)

/// Returns true if the status is about this event's content, so that sending it again may never help.
bool is_refusal(long status) { return status == 400 || status == 413 || status == 415 || status == 422; }

/// Returns true if the status may concern the whole endpoint (wrong key or URL, overload, a gateway without its server)
/// or only this event (a filter in front of the receiver).
bool may_concern_all(long status) {
  return status == 401 || status == 403 || status == 404 || status == 405 || status == 429 || status == 502 ||
         status == 503 || status == 504;
}

/// Returns the keys of configured secrets.
Result<std::vector<std::string>> keys_of(const std::vector<std::string>& secrets) {
  std::vector<std::string> out;
  for (const auto& secret : secrets) {
    DRIFTD_TRY(std::string key, signing_key(secret));
    out.push_back(std::move(key));
  }
  return out;
}

/// What send() waits for.
struct Exchange {
  explicit Exchange(asio::any_io_executor core) : done(core, asio::steady_timer::time_point::max()) {}
  asio::steady_timer done;
  BatchAnswer answer;

  void end(BatchAnswer with) {
    answer = std::move(with);
    done.expires_at(asio::steady_timer::time_point::min());
  }
};

/// The opened parts of the settings.
struct Parts {
  std::vector<std::string> keys;
  AddressGuard guard;
};

class WebhookSink final : public core::Sink {
 public:
  WebhookSink(std::string name, WebhookSettings settings, Parts parts, WebhookNeeds needs)
      : name_(std::move(name)),
        settings_(std::move(settings)),
        keys_(std::move(parts.keys)),
        guard_(std::move(parts.guard)),
        core_(std::move(needs.core)),
        io_(std::move(needs.io)),
        clock_(*needs.clock),
        links_(std::move(needs.links)) {}

  core::RetryPolicy policy() const override {
    using namespace std::chrono_literals;
    return {false, {0s, 5s, 5min, 30min, 2h, 5h, 10h, 14h, 20h, 24h}, max_events_in_flight()};
  }
  Task<Status> start() override;
  Task<Attempt> send(core::StoredEvent event) override;
  Status use_secrets(std::vector<std::string> secrets) override;
  Task<void> former_secrets_unused() override;
  Task<void> stop() override;
  std::string describe() const override { return warning_.empty() ? last_ : last_ + "; " + warning_; }

 private:
  int max_events_in_flight() const;
  HttpPost request_of(Call call) const;
  Task<Result<Call>> call_of(const core::StoredEvent& event) const;
  void post(Call call, std::function<void(HttpAnswer)> answered);
  void ended(std::uint64_t keys_number);
  Attempt judge(const core::StoredEvent& event, const BatchAnswer& answer);

  std::string name_;
  WebhookSettings settings_;
  std::vector<std::string> keys_;
  std::uint64_t keys_number_ = 0;                   ///< rises with each use_secrets()
  std::map<std::uint64_t, std::size_t> under_way_;  ///< requests by the number of the keys that signed them
  std::vector<std::shared_ptr<Exchange>> waits_;    ///< of former_secrets_unused()
  AddressGuard guard_;
  asio::any_io_executor core_, io_;
  const Clock& clock_;
  std::shared_ptr<HttpSender> sender_;
  std::shared_ptr<Batcher> batcher_;  ///< null unless the mode is batch
  const ChatLinkMaker links_;         ///< empty: messages have no links
  std::string last_ = "not tried yet", warning_;
};

int WebhookSink::max_events_in_flight() const {
  if (settings_.mode != WebhookMode::batch) return settings_.max_in_flight;
  const auto events = static_cast<std::size_t>(settings_.max_in_flight) * settings_.batch.events;
  return static_cast<int>(std::min(events, kMaxEventsInFlight));
}

Task<Status> WebhookSink::start() {
  sender_ = std::make_shared<HttpSender>(HttpRoute{guard_, settings_.tls, settings_.proxy});
  if (settings_.mode != WebhookMode::batch) co_return Status{};
  auto post_call = [this](Call call, std::function<void(HttpAnswer)> answered) {
    post(std::move(call), std::move(answered));
  };
  batcher_ = std::make_shared<Batcher>(settings_.batch, static_cast<std::size_t>(settings_.max_in_flight), core_,
                                       std::move(post_call));
  co_return Status{};
}

/// Destroys the sender on the io pool: libcurl waits up to half a minute for a resolver thread that does not answer.
Task<void> WebhookSink::stop() {
  auto sender = std::exchange(sender_, nullptr);
  if (!sender) co_return;
  auto work = [sender = std::move(sender)]() mutable {
    sender.reset();
    return true;
  };
  co_await run_on(io_, std::move(work));
}

HttpPost WebhookSink::request_of(Call call) const {
  const std::int64_t timestamp = clock_.wall() / 1'000'000'000;
  HttpPost post;
  post.url = settings_.url;
  post.connect_timeout = settings_.connect_timeout;
  post.total_timeout = settings_.total_timeout;
  post.headers = std::move(call.headers);
  post.headers.emplace_back("User-Agent", "driftd");
  post.headers.emplace_back("webhook-id", call.id);
  post.headers.emplace_back("webhook-timestamp", std::to_string(timestamp));
  if (!keys_.empty()) post.headers.emplace_back("webhook-signature", sign(keys_, call.id, timestamp, call.body));
  for (const auto& [name, value] : settings_.headers) post.headers.emplace_back(name, value);
  post.body = std::move(call.body);
  return post;
}

/// Calls back on the core thread.
void WebhookSink::post(Call call, std::function<void(HttpAnswer)> answered) {
  if (!sender_) {
    HttpAnswer stopped;
    stopped.about_endpoint = true;
    stopped.failure = "the sink was stopped";
    return asio::post(core_, [answered, stopped] { answered(stopped); });
  }
  ++under_way_[keys_number_];
  sender_->post(request_of(std::move(call)),
                [this, core = core_, answered = std::move(answered), number = keys_number_](HttpAnswer answer) {
                  asio::post(core, [this, answered, number, answer = std::move(answer)] {
                    ended(number);
                    answered(answer);
                  });
                });
}

void WebhookSink::ended(std::uint64_t keys_number) {
  const auto counted = under_way_.find(keys_number);
  if (--counted->second == 0) under_way_.erase(counted);
  if (!under_way_.empty() && under_way_.begin()->first < keys_number_) return;
  for (const auto& wait : std::exchange(waits_, {})) wait->end({});
}

Task<Result<Call>> WebhookSink::call_of(const core::StoredEvent& event) const {
  if (settings_.chat.format == ChatFormat::none) {
    co_return settings_.mode == WebhookMode::binary ? binary_call(event) : structured_call(event);
  }
  DRIFTD_CO_TRY(ChatMessage message, message_of(event));
  if (links_ && !message.drifts.empty()) {
    std::string id = message.id;
    std::vector<ChatDrift> drifts = std::move(message.drifts);
    DRIFTD_CO_TRY(message.drifts, co_await links_(std::move(id), std::move(drifts)));
  }
  Call out;
  out.id = event.stamp.id;
  DRIFTD_CO_TRY(out.body, render_chat(settings_.chat, message));
  out.headers = {{"Content-Type", "application/json; charset=UTF-8"}};
  co_return out;
}

Task<Attempt> WebhookSink::send(core::StoredEvent event) {
  const auto exchange = std::make_shared<Exchange>(core_);
  if (batcher_) {
    auto json = proto::cloudevent_json(event);
    if (!json) co_return Attempt{Outcome::permanent, json.error().message, 0};
    batcher_->add({event.stamp.id, std::move(*json)},
                  [exchange](BatchAnswer answer) { exchange->end(std::move(answer)); });
  } else {
    auto call = co_await call_of(event);
    // Only an event that cannot be read, or a template without room for it, is so for ever.
    const bool forever = !call && (call.error().code == Code::corrupt || call.error().code == Code::invalid);
    if (!call) co_return Attempt{forever ? Outcome::permanent : Outcome::retry_sink, call.error().message, 0};
    post(std::move(*call), [exchange](HttpAnswer answer) { exchange->end({std::move(answer), 1}); });
  }
  boost::system::error_code woken;
  co_await exchange->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  co_return judge(event, exchange->answer);
}

Status WebhookSink::use_secrets(std::vector<std::string> secrets) {
  DRIFTD_TRY(keys_, keys_of(secrets));
  ++keys_number_;
  return {};
}

/// Ends at the latest when the time-out of the requests under way ends them.
Task<void> WebhookSink::former_secrets_unused() {
  if (under_way_.empty() || under_way_.begin()->first == keys_number_) co_return;
  const auto exchange = std::make_shared<Exchange>(core_);
  waits_.push_back(exchange);
  boost::system::error_code woken;
  co_await exchange->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

Attempt WebhookSink::judge(const core::StoredEvent& event, const BatchAnswer& batch) {
  const HttpAnswer& answer = batch.http;
  warning_ = answer.warning;
  if (batch.events > 1) {
    last_ = attempt_of(name_, answer, 0).detail + " for a batch of " + std::to_string(batch.events) + " events";
    return {Outcome::refused, last_, answer.retry_after_ms};
  }
  Attempt attempt = attempt_of(name_, answer, event.refusals);
  const bool over = attempt.outcome == Outcome::delivered || attempt.outcome == Outcome::permanent;
  if (over && batcher_) batcher_->forget(event.stamp.id);
  last_ = attempt.detail;
  return attempt;
}

Result<std::string> host_of(const std::string& url, std::string& scheme) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), &curl_url_cleanup);
  char* host = nullptr;
  char* name = nullptr;
  const bool good = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
                    curl_url_get(parsed.get(), CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                    curl_url_get(parsed.get(), CURLUPART_SCHEME, &name, 0) == CURLUE_OK;
  std::string out = good ? host : "";
  scheme = good ? name : "";
  curl_free(host);
  curl_free(name);
  if (!good) return fail(Code::invalid, "the URL cannot be read; expected https://host[:port]/path");
  return out;
}

Status check_url(const WebhookSettings& settings) {
  DRIFTD_CHECK(load_curl());
  std::string scheme;
  DRIFTD_TRY(const std::string host, host_of(settings.url, scheme));
  if (scheme == "https") return Status{};
  const bool loopback = host == "127.0.0.1" || host == "localhost" || host == "[::1]";
  if (scheme == "http" && loopback && settings.allow_http_loopback) return Status{};
  return fail(Code::invalid, "the URL has scheme " + scheme +
                                 "; expected https (http only to loopback and with `allow_http_loopback: true`)");
}

/// With a proxy the guard sees the proxy's address only, and what the proxy connects to is its own choice. So somebody
/// must say that it may choose. An address in the URL is known, and checked all the same.
Status check_proxy(const WebhookSettings& settings, const AddressGuard& guard) {
  if (settings.proxy.empty()) return {};
  std::string scheme;
  const auto proxy = host_of(settings.proxy, scheme);
  if (!proxy || (scheme != "http" && scheme != "https")) {
    return fail(Code::invalid, "the proxy cannot be used; expected http://host:port or https://host:port");
  }
  if (!settings.proxy_trusted) {
    return fail(Code::invalid,
                "a proxy chooses the address that is connected, so private networks are not refused any more; set "
                "`proxy_trusted: true` if the proxy refuses them, or remove `proxy`");
  }
  if (settings.url.rfind("https://", 0) != 0) {
    return fail(Code::invalid, "a proxy is used for https only; expected an https URL, or no `proxy`");
  }
  DRIFTD_TRY(std::string host, host_of(settings.url, scheme));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const std::string why = guard.refusal(host);
  if (!why.empty()) return fail(Code::invalid, why);
  return {};
}

}  // namespace

Attempt attempt_of(const std::string& sink, const HttpAnswer& answer, int refusals) {
  const long status = answer.status;
  const std::string detail = "HTTP " + std::to_string(status) + " from " + sink;
  if (status == 0) {
    return {answer.about_endpoint ? Outcome::retry_sink : Outcome::retry_event, answer.failure + " (" + sink + ")", 0};
  }
  if (status >= 200 && status < 300) return {Outcome::delivered, detail, 0};
  if (status == 410) return {Outcome::disabled, detail, 0};
  if (may_concern_all(status)) return {Outcome::refused, detail, answer.retry_after_ms};
  if (is_refusal(status) && refusals + 1 >= kMaxRefusals) return {Outcome::permanent, detail, 0};
  return {Outcome::retry_event, detail, answer.retry_after_ms, is_refusal(status)};
}

Result<std::unique_ptr<core::Sink>> open_webhook(std::string name, WebhookSettings settings, asio::any_io_executor core,
                                                 asio::any_io_executor io, const Clock& clock) {
  return open_webhook(std::move(name), std::move(settings), {std::move(core), std::move(io), &clock});
}

Result<std::unique_ptr<core::Sink>> open_webhook(std::string name, WebhookSettings settings, WebhookNeeds needs) {
  const auto named = [&name](Error error) { return fail(error.code, "webhook " + name + ": " + error.message); };
  if (const Status url = check_url(settings); !url) return named(url.error());
  if (const Status room = check_room(settings.chat); !room) return named(room.error());
  auto keys = keys_of(settings.secrets);
  if (!keys) return named(keys.error());
  const bool http = settings.url.rfind("http://", 0) == 0;
  auto guard = AddressGuard::make(settings.allow, http && settings.allow_http_loopback);
  if (!guard) return named(guard.error());
  if (const Status proxy = check_proxy(settings, *guard); !proxy) return named(proxy.error());
  return std::make_unique<WebhookSink>(std::move(name), std::move(settings), Parts{std::move(*keys), std::move(*guard)},
                                       std::move(needs));
}

}  // namespace driftd::sinks
