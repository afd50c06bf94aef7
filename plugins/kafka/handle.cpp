// SPDX-License-Identifier: Apache-2.0
#include "kafka/handle.hpp"

#include <openssl/x509v3.h>
#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <thread>

#include "kafka/conf.hpp"
#include "kafka/text.hpp"

namespace driftd::kafka {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSlice{50};
constexpr int kScramOfKafka4 = 0x020601ff;  // repeats its nonce until then, which Kafka 4 no longer accepts
constexpr milliseconds kDestroyMost{1000};
constexpr milliseconds kAllDown{1500};  // longer than the wait before the library tries to connect again

std::int64_t monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

driftd_status status_of(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return DRIFTD_OK;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
      return DRIFTD_NOT_FOUND;  // a name that no topic can have
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return DRIFTD_DENIED;
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
      return DRIFTD_UNAUTHENTICATED;
    case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION:
      return DRIFTD_UNSUPPORTED;
    case RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED:
      return DRIFTD_THROTTLED;
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
      return DRIFTD_DEADLINE;
    case RD_KAFKA_RESP_ERR__BAD_MSG:
      return DRIFTD_CORRUPT;
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
    case RD_KAFKA_RESP_ERR_INVALID_REQUEST:
      return DRIFTD_INTERNAL;
    default:
      return DRIFTD_UNAVAILABLE;
  }
}

/// Returns true for a broker's TLS alert about our certificate, or about its absence. Our own alerts about a broker's
/// certificate do not appear here.
bool refuses_our_certificate(const std::string& said) {
  return said.find(" alert ") != std::string::npos &&
         (said.find("certificate") != std::string::npos || said.find("unknown ca") != std::string::npos);
}

}  // namespace

Outcome outcome_of(rd_kafka_resp_err_t error, const char* text) {
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  std::string said = one_line(text != nullptr && *text != '\0' ? text : rd_kafka_err2str(error));
  if (refuses_our_certificate(said)) {
    return {DRIFTD_UNAUTHENTICATED,
            "the broker refuses our client certificate, or that there is none (settings.tls.certificate): " + said};
  }
  const bool scram = error == RD_KAFKA_RESP_ERR__AUTHENTICATION && said.find("SCRAM-") != std::string::npos;
  if (scram && rd_kafka_version() < kScramOfKafka4) {
    said +=
        "; if this is Kafka 4 or newer: librdkafka before 2.6.1 cannot log in there by SCRAM, use PLAIN over TLS, "
        "OAUTHBEARER or a client certificate";
  }
  return {status_of(error), said};
}

namespace {

void record_error(Handle::Shared& shared, rd_kafka_resp_err_t error, const char* text) {
  const std::lock_guard lock(shared.mutex);
  Outcome& known = shared.last_error.outcome;
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    shared.last_error.all_down = true;
    if (known.ok()) known = {DRIFTD_UNAVAILABLE, one_line(text)};
    return;
  }
  // A refused login explains more than the closed connection after it.
  if (known.code != DRIFTD_UNAUTHENTICATED) known = outcome_of(error, text);
}

/// What librdkafka calls. Errors on the thread that polls; logs and certificates on its own threads.
void on_error(rd_kafka_t*, int error, const char* text, void* opaque) {
  record_error(*static_cast<Handle::Shared*>(opaque), static_cast<rd_kafka_resp_err_t>(error), text);
}
/// Prints nothing; errors that matter also arrive through on_error.
void on_log(const rd_kafka_t*, int, const char*, const char*) {}
/// Looks for the settings' server_name in the broker's own certificate, after OpenSSL has judged the chain.
int on_certificate(rd_kafka_t*, const char*, std::int32_t, int* error, int depth, const char* der, std::size_t size,
                   char* text, std::size_t limit, void* opaque) {
  if (*error != 0) {
    std::snprintf(text, limit, "certificate verify failed: %s", X509_verify_cert_error_string(*error));
    return 0;
  }
  if (depth != 0) return 1;
  const std::string& name = static_cast<Handle::Shared*>(opaque)->server_name;
  const auto* at = reinterpret_cast<const unsigned char*>(der);
  const std::unique_ptr<X509, decltype(&X509_free)> leaf(d2i_X509(nullptr, &at, static_cast<long>(size)), &X509_free);
  const bool fits = leaf && (X509_check_host(leaf.get(), name.c_str(), name.size(), 0, nullptr) == 1 ||
                             X509_check_ip_asc(leaf.get(), name.c_str(), 0) == 1);
  if (!fits)
    std::snprintf(text, limit, "certificate verify failed: it is not for %s (settings.tls.server_name)", name.c_str());
  return fits ? 1 : 0;
}

/// Gives the client the token of the settings, once; when it expires, the settings need a new one.
void give_token(sdk::Call& call, rd_kafka_t* client, const std::string& reference) {
  std::string token = call.secret(reference);
  const std::int64_t now_ms = call.now_ns() / 1'000'000;
  char error[256];
  rd_kafka_resp_err_t result = RD_KAFKA_RESP_ERR__INVALID_ARG;
  BearerClaims claims;
  try {
    claims = claims_of(token, now_ms);
    result = rd_kafka_oauthbearer_set_token(client, token.c_str(), claims.until_ms, claims.subject.c_str(), nullptr, 0,
                                            error, sizeof error);
  } catch (...) {
    wipe(token);
    throw;
  }
  wipe(token);
  if (claims.until_ms <= now_ms) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED,
                       "settings.sasl.token: the token has expired; put a fresh one in its place");
  }
  if (result != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw sdk::Failure(DRIFTD_INVALID, "settings.sasl.token: refused by the library");
}

}  // namespace

std::shared_ptr<Handle> Handle::open(sdk::Call& call, const Settings& settings) {
  std::shared_ptr<Handle> out(new Handle);
  out->shared_->server_name = settings.tls.server_name;
  Conf conf = make_conf(call, settings);
  rd_kafka_conf_set_opaque(conf.get(), out->shared_.get());
  rd_kafka_conf_set_error_cb(conf.get(), &on_error);
  rd_kafka_conf_set_log_cb(conf.get(), &on_log);
  if (settings.tls.on && !settings.tls.server_name.empty())
    rd_kafka_conf_set_ssl_cert_verify_cb(conf.get(), &on_certificate);
  char error[512];
  out->client_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), error, sizeof error);  // the kind that never makes topics
  if (out->client_ == nullptr) throw sdk::Failure(DRIFTD_INVALID, "settings: " + one_line(error));
  static_cast<void>(conf.release());  // now the client's
  if (settings.sasl.mechanism == "OAUTHBEARER") give_token(call, out->client_, settings.sasl.bearer_token);
  return out;
}

Handle::~Handle() {
  if (client_ == nullptr) return;
  struct End {
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
  };
  auto end = std::make_shared<End>();
  // A thread of the library may hang in the resolver, so the waiting thread owns everything that it may still use.
  std::thread([end, client = client_, shared = shared_] {
    rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    const std::lock_guard lock(end->mutex);
    end->done = true;
    end->ended.notify_all();
  }).detach();
  std::unique_lock lock(end->mutex);
  end->ended.wait_for(lock, kDestroyMost, [&] { return end->done; });
}

Handle::LastError Handle::last_error() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->last_error;
}

void Handle::note_answer() {
  const std::lock_guard lock(shared_->mutex);
  shared_->last_error = {};
  shared_->answered = true;
}

bool Handle::has_answered() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->answered;
}

Wait::Wait(sdk::Call& call, milliseconds limit, driftd_status late, std::string doing)
    : call_(call),
      began_(monotonic_ns()),
      until_(began_ + std::chrono::nanoseconds(limit).count()),
      late_(late),
      doing_(std::move(doing)),
      timeout_(limit) {}

milliseconds Wait::left() const {
  std::int64_t until = until_;
  if (call_.deadline_ns() > 0) until = std::min(until, call_.deadline_ns());
  return milliseconds(std::max<std::int64_t>((until - monotonic_ns()) / 1'000'000, 0));
}

milliseconds Wait::slice(Handle& handle) const {
  handle.serve();
  if (call_.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "cancelled while " + doing_);
  const std::int64_t now = monotonic_ns();
  if (call_.deadline_ns() > 0 && now >= call_.deadline_ns()) {
    throw sdk::Failure(DRIFTD_DEADLINE, "the call's deadline passed while " + doing_);
  }
  const Handle::LastError last_error = handle.last_error();
  const bool refused = last_error.outcome.code == DRIFTD_UNAUTHENTICATED;
  if (refused || (last_error.all_down && now - began_ > kAllDown.count() * 1'000'000)) {
    throw sdk::Failure(last_error.outcome.code, doing_ + ": " + last_error.outcome.text);
  }
  if (now >= until_) {
    throw sdk::Failure(late_, doing_ + ": no answer within " + std::to_string(timeout_.count()) + " ms" +
                                  (last_error.outcome.ok() ? std::string() : "; " + last_error.outcome.text));
  }
  return std::clamp(left(), milliseconds(1), kSlice);
}

}  // namespace driftd::kafka
