// SPDX-License-Identifier: Apache-2.0
#include "kube/watches.hpp"

#include <algorithm>

#include "kube/json_access.hpp"
#include "kube/outline.hpp"

namespace driftd::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMaxEvent = 16u << 20;
constexpr milliseconds kFirstBackoff{800}, kMaxBackoff{30'000};
constexpr seconds kSoon{1};     // a watch that ends within this time waits before it is opened again
constexpr seconds kSettled{2};  // a watch that had failed and is open for this long works again
constexpr seconds kMaxWait{30};

bool is_of_call(const sdk::Failure& failure) {
  return failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE;
}

Change change_of(const std::string& type) {
  if (type == "DELETED") return Change::kDeleted;
  return type == "ADDED" ? Change::kAdded : Change::kModified;
}

}  // namespace

void WatchHandler::on_recovered(sdk::Call&, Stream&) {}

Watches::Watches(sdk::Call& call, Api& api, Lister& lister, WatchHandler& handler)
    : api_(api),
      lister_(lister),
      handler_(handler),
      uid_(api.cluster_guard().uid()),
      tls_(api.tls(call)),
      multi_client_(api.options(call)) {}

Stream& Watches::add(const Resource& resource, const std::string& space) {
  Stream& out = streams_.emplace_back();
  out.resource = &resource;
  out.space = space;
  return out;
}

void Watches::run_once(sdk::Call& call, Clock::time_point until) {
  open_due(call);
  for (const auto& ended : multi_client_.run(call, std::min(until, wake_at()))) on_request_end(call, ended);
  api_.cluster_guard().check(uid_);
  if (thrown_) std::rethrow_exception(thrown_);
  check_expired(call);
  drop_silent();
  for (auto& stream : streams_) {
    const bool works = stream.failed && stream.open && Clock::now() - stream.opened >= kSettled;
    if (works && std::exchange(stream.failed, false)) handler_.on_recovered(call, stream);
  }
}

Watches::Clock::time_point Watches::wake_at() const {
  auto out = Clock::now() + kMaxWait;
  for (const auto& stream : streams_) {
    const bool asked = stream.request != 0;
    out = std::min(out, asked ? stream.received_at + api_.connection().silence : stream.retry_at);
    if (stream.failed && stream.open) out = std::min(out, stream.opened + kSettled);
  }
  return out;
}

void Watches::open_due(sdk::Call& call) {
  for (auto& stream : streams_) {
    if (stream.request != 0 || stream.retry_at > Clock::now()) continue;
    try {
      if (stream.version.empty()) handler_.start(call, stream);
      stream.expired = is_ahead(call, stream);
      if (!stream.expired) open(call, stream);
    } catch (const sdk::Failure& failure) {
      if (is_of_call(failure)) throw;
      report_failure(call, stream, failure);
      schedule_retry(stream, milliseconds(failure.retry_after_ms));
    }
  }
}

bool Watches::is_ahead(sdk::Call& call, Stream& stream) {
  if (std::exchange(stream.fresh, false)) return false;
  return is_later(stream.version, lister_.current_version(call, *stream.resource, stream.space));
}

void Watches::open(sdk::Call& call, Stream& stream) {
  const int lasts = std::uniform_int_distribution(300, 600)(random_);  // so that not all of them end at once
  http::Request request = api_.get(
      call, stream.resource->path(stream.space) +
                query_of(*stream.resource, "watch=1&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(lasts) +
                                               "&resourceVersion=" + http::escape(stream.version)));
  request.timeout = milliseconds(0);
  request.max_body = 0;
  stream.lines =
      std::make_unique<LineSplitter>([this, &call, &stream](auto line) { on_line(call, stream, line); }, kMaxEvent);
  request.on_body = [this, &stream](std::string_view piece) {
    stream.received_at = Clock::now();
    stream.open = true;
    if (piece.empty()) return multi_client_.wake();
    stream.lines->feed(piece);
  };
  stream.request = multi_client_.start(call, std::move(request));
  stream.opened = stream.received_at = Clock::now();
  stream.open = stream.expired = false;
}

void Watches::on_line(sdk::Call& call, Stream& stream, std::string_view line) {
  const auto [event, cut, why] = parse_object(line);
  if (!event.is_object()) {
    throw sdk::Failure(DRIFTD_CORRUPT, "watch " + stream.resource->plural + ": an event is not a JSON object");
  }
  try {
    on_event(call, stream, event, why);
  } catch (...) {
    thrown_ = std::current_exception();
    throw;
  }
}

void Watches::on_event(sdk::Call& call, Stream& stream, const json& event, const std::string& cut) {
  const std::string type = text(event, {"type"});
  const json& object = find(event, {"object"});
  multi_client_.wake();
  if (type == "ERROR") {
    const json& code = find(object, {"code"});
    stream.expired = code == json(410) || text(object, {"reason"}) == "Expired" || text(object, {"reason"}) == "Gone";
    return;
  }
  stream.backoff = {};
  if (std::exchange(stream.failed, false)) handler_.on_recovered(call, stream);
  try {
    if (type != "BOOKMARK") handler_.on_object(call, stream, {object, call.now_ns(), cut}, change_of(type));
  } catch (const json::exception&) {  // the text of the exception could quote a value
    handler_.on_malformed(call, stream);
  }
  const std::string version = text(object, {"metadata", "resourceVersion"});
  if (!version.empty()) stream.version = version;
}

void Watches::on_request_end(sdk::Call& call, const http::MultiClient::Completion& ended) {
  const auto of_it = [&](const Stream& stream) { return stream.request == ended.id; };
  const auto found = std::find_if(streams_.begin(), streams_.end(), of_it);
  if (found == streams_.end() || thrown_) return;
  Stream& stream = *found;
  stream.request = 0;
  stream.open = false;
  if (ended.failure) {
    if (is_of_call(*ended.failure)) throw *ended.failure;
    report_failure(call, stream, *ended.failure);
    return schedule_retry(stream, milliseconds(ended.failure->retry_after_ms));
  }
  const http::Response& response = ended.response;
  stream.expired = stream.expired || response.status == 410;
  const bool soon = Clock::now() - stream.opened < kSoon;
  if (response.status == 401 && api_.reread_credential(call, response.sent_ns)) {  // again with the new credential
    old_certificate_ = old_certificate_ || api_.tls(call) != tls_;
    if (soon) schedule_retry(stream);
    return;
  }
  if (!response.ok() && response.status != 410) {
    const std::string right = stream.resource->right("watch", stream.space);
    report_failure(call, stream, refusal(response, "watch " + stream.resource->plural, stream.resource->kind, right));
    return schedule_retry(stream, milliseconds(response.retry_after_ms));
  }
  if (soon) schedule_retry(stream);
}

void Watches::report_failure(sdk::Call& call, Stream& stream, const sdk::Failure& failure) {
  handler_.on_failure(call, stream, failure);
  stream.failed = true;
}

void Watches::schedule_retry(Stream& stream, milliseconds at_least) {
  stream.backoff = std::clamp(stream.backoff * 2, kFirstBackoff, kMaxBackoff);
  const double jitter = std::uniform_real_distribution(1.0, 2.0)(random_);
  const auto wait = std::chrono::duration_cast<milliseconds>(stream.backoff * jitter);
  stream.retry_at = Clock::now() + std::max(wait, at_least);
}

/// A dead connection blocks all its watches, and new ones would use it too, so all connections are closed.
void Watches::drop_silent() {
  const auto silent = [this](const Stream& stream) {
    return stream.request != 0 && Clock::now() - stream.received_at >= api_.connection().silence;
  };
  if (std::none_of(streams_.begin(), streams_.end(), silent)) return;
  multi_client_.reset();
  for (auto& stream : streams_) {
    if (stream.request == 0) continue;
    const bool was = silent(stream);
    stream.request = 0;
    stream.open = false;
    if (was) schedule_retry(stream);
  }
}

void Watches::check_expired(sdk::Call& call) {
  for (auto& stream : streams_) {
    if (!std::exchange(stream.expired, false)) continue;
    handler_.on_expired(call, stream);
    stream.version.clear();
  }
}

}  // namespace driftd::kube
