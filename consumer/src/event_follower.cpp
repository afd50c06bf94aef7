// SPDX-License-Identifier: Apache-2.0
#include "event_follower.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace driftd::consumer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kBatch = 64;
constexpr std::int64_t kRequestMs = 20'000;
constexpr std::int64_t kWaitMs = 200;  ///< bounds how long stop() waits
constexpr milliseconds kFirstPause{250}, kMaxPause{5'000};
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

std::string header(natsMsg* message, const char* name) {
  const char* value = nullptr;
  return natsMsgHeader_Get(message, name, &value) == NATS_OK && value != nullptr ? value : "";
}

std::uint64_t number(const std::string& text) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? out : 0;
}

/// The stream sequence in an acknowledgement's subject: `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.…`, with
/// a domain and an account before the stream in newer servers (11 or 12 tokens). 0 if it is none.
std::uint64_t stream_sequence(const char* reply) {
  std::vector<std::string> tokens;
  for (const char* at = reply; at != nullptr && *at != '\0';) {
    const char* dot = std::strchr(at, '.');
    tokens.emplace_back(at, dot == nullptr ? std::strlen(at) : static_cast<std::size_t>(dot - at));
    at = dot == nullptr ? nullptr : dot + 1;
  }
  if (tokens.size() < 9 || tokens[0] != "$JS" || tokens[1] != "ACK") return 0;
  return number(tokens[tokens.size() == 9 ? 5 : 7]);
}

}  // namespace

EventFollower::EventFollower(NatsLink& link, Checkpoint& checkpoint, Following following, Handler handler, Log log)
    : link_(link),
      checkpoint_(checkpoint),
      following_(std::move(following)),
      handler_(std::move(handler)),
      log_(std::move(log)),
      thread_([this] { run(); }) {}

EventFollower::~EventFollower() { stop(); }

void EventFollower::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

SubscriptionStatus EventFollower::status() const {
  const std::lock_guard lock(mutex_);
  return {following_.name, standing_ && link_.connected(), error_};
}

void EventFollower::pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, time, [this] { return stopping_; });
}

/// Empty: the subscription stands.
void EventFollower::note(const std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    standing_ = error.empty();
    if (error_ == error) return;
    error_ = error;
  }
  if (!error.empty()) log_(LogLevel::warning, "events of " + following_.name + ": " + error);
  if (error.empty()) log_(LogLevel::info, "events of " + following_.name + ": subscribed to " + following_.subject);
}

void EventFollower::run() {
  milliseconds wait = kFirstPause;
  const auto stopping = [this] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  while (!stopping()) {
    if (!link_.connected()) {
      note("NATS at " + shown(link_.access().servers) + " is not connected");
      pause(milliseconds(100));
      continue;
    }
    const Status made = ensure_consumer();
    if (!made || !subscribe()) {
      note(made ? "no subscription: the connection was lost, or the account may not subscribe to _INBOX.>"
                : made.error().message);
      pause(wait);
      wait = std::min(wait * 2, kMaxPause);
      continue;
    }
    wait = kFirstPause;
    follow();
  }
  subscription_.reset();
}

/// Looks whether the consumer is there and makes sense, and makes it if not.
Status EventFollower::ensure_consumer() {
  const std::string& name = link_.access().stream;
  const auto failed = [&](natsStatus status, jsErrCode code) {
    return fail(Code::unavailable, "stream " + name + ": " + natsStatus_GetText(status) +
                                       (code == 0 ? "" : " (" + std::to_string(static_cast<int>(code)) + ")"));
  };
  jsErrCode code{};
  jsStreamInfo* raw_stream = nullptr;
  natsStatus status = js_GetStreamInfo(&raw_stream, link_.jetstream(), name.c_str(), nullptr, &code);
  if (status == NATS_NOT_FOUND) {
    return fail(Code::unavailable, "stream " + name + " does not exist yet; driftd makes it with its first event");
  }
  if (status != NATS_OK) return failed(status, code);
  const Owned<jsStreamInfo> stream(raw_stream);
  const BackendMemory memory = checkpoint_.memory(following_.name);
  jsConsumerInfo* raw = nullptr;
  status = js_GetConsumerInfo(&raw, link_.jetstream(), name.c_str(), following_.durable.c_str(), nullptr, &code);
  const Owned<jsConsumerInfo> found(raw);
  if (status == NATS_OK && found->Delivered.Stream <= stream->State.LastSeq) return {};
  if (status == NATS_OK) {  // the stream lost messages that this consumer has had; others will come under their numbers
    status = js_DeleteConsumer(link_.jetstream(), name.c_str(), following_.durable.c_str(), nullptr, &code);
    if (status != NATS_OK) return failed(status, code);
  } else if (status != NATS_NOT_FOUND) {
    return failed(status, code);
  }
  return make_consumer(*stream, memory);
}

Status EventFollower::make_consumer(const jsStreamInfo& stream, const BackendMemory& memory) {
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.Durable = following_.durable.c_str();
  config.FilterSubject = following_.subject.c_str();
  config.AckPolicy = js_AckExplicit;
  config.AckWait = 30 * kNanosPerSecond;
  config.MaxDeliver = -1;
  config.MaxAckPending = 4 * kBatch;
  config.InactiveThreshold = following_.absence.count();
  const bool same = memory.stream_created_ns == stream.Created && memory.stream_sequence <= stream.State.LastSeq;
  if (memory.stream_created_ns == 0) {
    config.DeliverPolicy = js_DeliverByStartTime;
    config.OptStartTime = following_.since_ns;
  } else if (same) {
    config.DeliverPolicy = js_DeliverByStartSequence;
    config.OptStartSeq = memory.stream_sequence + 1;
  } else {
    config.DeliverPolicy = js_DeliverAll;
  }
  jsErrCode code{};
  jsConsumerInfo* raw = nullptr;
  const natsStatus status =
      js_AddConsumer(&raw, link_.jetstream(), link_.access().stream.c_str(), &config, nullptr, &code);
  const Owned<jsConsumerInfo> made(raw);
  if (status != NATS_OK) {
    return fail(Code::unavailable, "the durable consumer " + following_.durable +
                                       " cannot be made: " + natsStatus_GetText(status) + " (" +
                                       std::to_string(static_cast<int>(code)) + ")");
  }
  if (memory.stream_created_ns != 0 && !same) {
    log_(LogLevel::warning, "events of " + following_.name +
                                ": the stream was made again or lost messages; it is read "
                                "from its beginning");
  }
  checkpoint_.change(following_.name, [&](BackendMemory& kept) {
    if (kept.stream_created_ns != stream.Created) kept.stream_sequence = 0;
    if (!same) kept.stream_sequence = 0;
    kept.stream_created_ns = stream.Created;
  });
  return {};
}

bool EventFollower::subscribe() {
  subscription_.reset();
  outstanding_ = 0;
  gone_ = false;
  natsInbox* inbox = nullptr;
  if (natsInbox_Create(&inbox) != NATS_OK) return false;
  inbox_ = inbox;
  natsInbox_Destroy(inbox);
  natsSubscription* raw = nullptr;
  const natsStatus status = natsConnection_SubscribeSync(&raw, link_.connection(), inbox_.c_str());
  subscription_.reset(raw);
  return status == NATS_OK;
}

bool EventFollower::request() {
  const std::string& domain = link_.access().domain;
  const std::string subject = (domain.empty() ? "$JS.API" : "$JS." + domain + ".API") + ".CONSUMER.MSG.NEXT." +
                              link_.access().stream + "." + following_.durable;
  const std::string body =
      R"({"batch":)" + std::to_string(kBatch) + R"(,"expires":)" + std::to_string(kRequestMs * 1'000'000) + "}";
  outstanding_ = kBatch;
  request_ends_ = Clock::now() + milliseconds(kRequestMs + 1'000);
  return natsConnection_PublishRequestString(link_.connection(), subject.c_str(), inbox_.c_str(), body.c_str()) ==
         NATS_OK;
}

/// Asks and takes until the connection was lost, the consumer is gone, or stop().
void EventFollower::follow() {
  const std::uint64_t connection = link_.connections();
  while (link_.connected() && link_.connections() == connection && !gone_) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if (outstanding_ <= 0 || Clock::now() >= request_ends_) {
      if (!request()) return;
      note("");
    }
    natsMsg* raw = nullptr;
    const natsStatus status = natsSubscription_NextMsg(&raw, subscription_.get(), kWaitMs);
    Owned<natsMsg> message(raw);
    if (status == NATS_TIMEOUT) continue;
    if (status != NATS_OK) return;
    if (is_message(message.get())) take(std::move(message));
  }
}

/// Returns false for a message of the server about the request.
bool EventFollower::is_message(natsMsg* message) {
  // By the reply, not by headers or an empty body: those are the publisher's choice.
  const char* reply = natsMsg_GetReply(message);
  if (reply != nullptr && std::strncmp(reply, "$JS.ACK.", 8) == 0) return true;
  const std::string code = header(message, "Status");
  const std::string text = header(message, "Description");
  outstanding_ = 0;
  // 404 and 408: the request is over. 503, or a consumer that was deleted: there is nobody to ask.
  gone_ = code == "503" || text.find("Deleted") != text.npos || text.find("deleted") != text.npos;
  if (code == "409") pause(kFirstPause);
  return false;
}

/// Handles what has arrived, writes the checkpoint once for all, and acknowledges.
void EventFollower::take(Owned<natsMsg> first) {
  std::vector<Owned<natsMsg>> batch;
  batch.push_back(std::move(first));
  while (batch.size() < kBatch) {
    natsMsg* raw = nullptr;
    if (natsSubscription_NextMsg(&raw, subscription_.get(), 0) != NATS_OK) break;
    Owned<natsMsg> next(raw);
    if (is_message(next.get())) batch.push_back(std::move(next));
  }
  outstanding_ -= static_cast<int>(batch.size());
  for (const auto& message : batch) handle(message.get());
  const Status saved = checkpoint_.save();
  if (!saved) {  // not acknowledged: they come again, and the checkpoint is tried again then
    note(saved.error().message);
    return;
  }
  for (const auto& message : batch) {
    natsConnection_PublishString(link_.connection(), natsMsg_GetReply(message.get()), "+ACK");
  }
}

void EventFollower::handle(natsMsg* message) {
  StreamMessage out;
  out.subject = natsMsg_GetSubject(message);
  out.body = {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
  out.id = header(message, "ce-id");
  out.key = header(message, "ce-partitionkey");
  out.order = {number(header(message, "ce-driftincarnation")), number(header(message, "ce-driftseq"))};
  handler_(out);
  const std::uint64_t sequence = stream_sequence(natsMsg_GetReply(message));
  checkpoint_.change(following_.name,
                     [&](BackendMemory& kept) { kept.stream_sequence = std::max(kept.stream_sequence, sequence); });
}

}  // namespace driftd::consumer
