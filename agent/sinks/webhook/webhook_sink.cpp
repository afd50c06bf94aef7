// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/webhook_sink.hpp"

#include <curl/curl.h>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "proto/codec.hpp"
#include "sinks/webhook/sign.hpp"

namespace driftd::sinks {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;

constexpr int kMaxRefusals = 3;  // of one event, which is then a dead letter
constexpr std::size_t kMaxRememberedEvents = 1'024;

/// Returns true if the status is about this event's content, so that sending it again may never help.
bool is_refusal(long status) { return status == 400 || status == 413 || status == 415 || status == 422; }

/// Returns true if the status may concern the whole endpoint (wrong key or URL, overload, a gateway without its server)
/// or only this event (a filter in front of the receiver).
bool may_concern_all(long status) {
  return status == 401 || status == 403 || status == 404 || status == 405 || status == 429 || status == 502 ||
         status == 503 || status == 504;
}

struct Exchange {
  explicit Exchange(asio::any_io_executor core) : done(core, asio::steady_timer::time_point::max()) {}
  asio::steady_timer done;
  HttpAnswer answer;
};

class WebhookSink final : public core::Sink {
 public:
  WebhookSink(std::string name, WebhookSettings settings, std::vector<std::string> keys, AddressGuard guard,
              asio::any_io_executor core, asio::any_io_executor io, const Clock& clock)
      : name_(std::move(name)),
        settings_(std::move(settings)),
        keys_(std::move(keys)),
        guard_(std::move(guard)),
        core_(std::move(core)),
        io_(std::move(io)),
        clock_(clock) {}

  core::RetryPolicy policy() const override {
    using namespace std::chrono_literals;
    return {false, {0s, 5s, 5min, 30min, 2h, 5h, 10h, 14h, 20h, 24h}, settings_.max_in_flight};
  }
  Task<Status> start() override {
    sender_ = std::make_shared<HttpSender>(guard_);
    co_return Status{};
  }
  Task<Attempt> send(core::StoredEvent event) override;
  Task<void> stop() override;
  std::string describe() const override { return last_; }

 private:
  HttpPost request_of(const core::StoredEvent& event, std::string body) const;
  void post(const core::StoredEvent& event, std::string body, std::shared_ptr<Exchange> exchange);
  Attempt remember(const std::string& id, const HttpAnswer& answer);

  std::string name_;
  WebhookSettings settings_;
  std::vector<std::string> keys_;
  AddressGuard guard_;
  asio::any_io_executor core_, io_;
  const Clock& clock_;
  std::shared_ptr<HttpSender> sender_;
  std::map<std::string, int> refusals_;
  std::string last_ = "not tried yet";
};

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

HttpPost WebhookSink::request_of(const core::StoredEvent& event, std::string body) const {
  const std::int64_t timestamp = clock_.wall() / 1'000'000'000;
  HttpPost post;
  post.url = settings_.url;
  post.ca_file = settings_.ca_file;
  post.connect_timeout = settings_.connect_timeout;
  post.total_timeout = settings_.total_timeout;
  post.headers = {{"Content-Type", "application/cloudevents+json; charset=UTF-8"},
                  {"User-Agent", "driftd"},
                  {"webhook-id", event.stamp.id},
                  {"webhook-timestamp", std::to_string(timestamp)}};
  if (!keys_.empty()) post.headers.emplace_back("webhook-signature", sign(keys_, event.stamp.id, timestamp, body));
  for (const auto& [name, value] : settings_.headers) post.headers.emplace_back(name, value);
  post.body = std::move(body);
  return post;
}

void WebhookSink::post(const core::StoredEvent& event, std::string body, std::shared_ptr<Exchange> exchange) {
  sender_->post(request_of(event, std::move(body)), [exchange, core = core_](HttpAnswer answer) {
    asio::post(core, [exchange, answer = std::move(answer)]() mutable {
      exchange->answer = std::move(answer);
      exchange->done.expires_at(asio::steady_timer::time_point::min());
    });
  });
}

Task<Attempt> WebhookSink::send(core::StoredEvent event) {
  auto body = proto::cloudevent_json(event);
  if (!body) co_return Attempt{Outcome::permanent, body.error().message, 0};
  if (!sender_) co_return Attempt{Outcome::retry_sink, "the sink was stopped", 0};
  const auto exchange = std::make_shared<Exchange>(core_);
  post(event, std::move(*body), exchange);
  boost::system::error_code woken;
  co_await exchange->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  co_return remember(event.stamp.id, exchange->answer);
}

Attempt WebhookSink::remember(const std::string& id, const HttpAnswer& answer) {
  int refusals = 0;
  if (is_refusal(answer.status)) {
    if (refusals_.size() >= kMaxRememberedEvents) refusals_.erase(refusals_.begin());
    refusals = refusals_[id]++;
  }
  Attempt attempt = attempt_of(name_, answer, refusals);
  const bool over = attempt.outcome == Outcome::delivered || attempt.outcome == Outcome::permanent;
  if (over) refusals_.erase(id);
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
  std::string scheme;
  DRIFTD_TRY(const std::string host, host_of(settings.url, scheme));
  if (scheme == "https") return Status{};
  const bool loopback = host == "127.0.0.1" || host == "localhost" || host == "[::1]";
  if (scheme == "http" && loopback && settings.allow_http_loopback) return Status{};
  return fail(Code::invalid, "the URL has scheme " + scheme +
                                 "; expected https (http only to loopback and with `allow_http_loopback: true`)");
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
  return {Outcome::retry_event, detail, answer.retry_after_ms};
}

Result<std::unique_ptr<core::Sink>> open_webhook(std::string name, WebhookSettings settings, asio::any_io_executor core,
                                                 asio::any_io_executor io, const Clock& clock) {
  const auto named = [&name](Error error) { return fail(error.code, "webhook " + name + ": " + error.message); };
  if (const Status url = check_url(settings); !url) return named(url.error());
  std::vector<std::string> keys;
  for (const auto& secret : settings.secrets) {
    auto key = signing_key(secret);
    if (!key) return named(key.error());
    keys.push_back(std::move(*key));
  }
  const bool http = settings.url.rfind("http://", 0) == 0;
  auto guard = AddressGuard::make(settings.allow, http && settings.allow_http_loopback);
  if (!guard) return named(guard.error());
  return std::make_unique<WebhookSink>(std::move(name), std::move(settings), std::move(keys), std::move(*guard),
                                       std::move(core), std::move(io), clock);
}

}  // namespace driftd::sinks
