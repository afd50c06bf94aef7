// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/stream.hpp"

#include <algorithm>

#include "sinks/nats/failure_text.hpp"

namespace driftd::sinks {
namespace {

struct FreeInfo {
  void operator()(jsStreamInfo* i) const { jsStreamInfo_Destroy(i); }
};
using Info = std::unique_ptr<jsStreamInfo, FreeInfo>;

constexpr std::size_t kSample = 4;  // number of older marks that one check reads

/// What a position holds: `ours`: our message, or one that has left the stream by its rules; `not_ours`: another
/// message, or none.
enum class Found { ours, not_ours, unreadable };

/// One check of the stream.
class StreamCheck {
 public:
  StreamCheck(const Broker& broker, const NatsSettings& settings, const KnownStream& memory, const Inbox& inbox)
      : broker_(broker),
        settings_(settings),
        memory_(memory),
        inbox_(inbox) {}
  Result<Inspection> run();

 private:
  std::string api(const char* verb) const {
    return (settings_.domain.empty() ? "$JS.API" : "$JS." + settings_.domain + ".API") + ".STREAM." + verb + "." +
           settings_.stream;
  }
  Error failed(natsStatus status, int code, const char* verb) const {
    return failure(settings_, status, code, api(verb), &inbox_);
  }
  Status read_info();
  Status create();
  Status check_configuration() const;
  Status check_usable() const;
  Result<Found> at(const Position& position);
  Result<Found> missing(const Position& position);
  Result<std::optional<Loss>> find_loss();
  Result<bool> sample_holds();
  Result<Loss> measure();
  bool evicts_single_messages() const;
  std::string warnings() const;

  const Broker& broker_;
  const NatsSettings& settings_;
  const KnownStream& memory_;
  const Inbox& inbox_;
  Info info_;
  bool unreadable_ = false;
};

Status StreamCheck::read_info() {
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status = js_GetStreamInfo(&raw, broker_.stream.get(), settings_.stream.c_str(), nullptr, &code);
  info_.reset(raw);
  const bool absent = status == NATS_NOT_FOUND || code == JSStreamNotFoundErr;
  if (absent && settings_.create_stream) return create();
  if (absent)
    return fail(Code::unavailable, "NATS: there is no stream " + settings_.stream + explain(JSStreamNotFoundErr));
  if (status != NATS_OK) return fail(failed(status, static_cast<int>(code), "INFO"));
  return check_configuration();
}

Status StreamCheck::create() {
  const char* subjects[] = {"backend.>", "driftd.agent.>"};
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = settings_.stream.c_str();
  config.Description = "Drift events of driftd";
  config.Subjects = subjects;
  config.SubjectsLen = 2;
  config.Storage = js_FileStorage;
  config.Discard = js_DiscardNew;
  config.MaxAge = std::chrono::nanoseconds(settings_.max_age).count();
  config.Duplicates = std::chrono::nanoseconds(settings_.duplicate_window).count();
  config.Replicas = settings_.replicas;
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status = js_AddStream(&raw, broker_.stream.get(), &config, nullptr, &code);
  info_.reset(raw);
  if (status != NATS_OK) return fail(failed(status, static_cast<int>(code), "CREATE"));
  return check_configuration();
}

/// Checks that the stream's info has a configuration; nats.c accepts an answer without one.
Status StreamCheck::check_configuration() const {
  if (info_ != nullptr && info_->Config != nullptr) return Status{};
  return fail(Code::unavailable,
              "NATS at " + shown_urls(settings_.servers) + ": its answer about stream " + settings_.stream +
                  " has no configuration; check that this is a nats-server, without a proxy in between");
}

/// A publish to such a stream is not answered, or by nobody: that would be retried for ever without the reason.
Status StreamCheck::check_usable() const {
  const jsStreamConfig& config = *info_->Config;
  const char* why = config.Mirror != nullptr ? "is a mirror and takes no messages: name the stream that it mirrors"
                    : config.Sealed          ? "is sealed and takes no messages any more: name another one"
                    : config.NoAck           ? "acknowledges nothing (no_ack): set no_ack: false, or name another one"
                                             : nullptr;
  if (why == nullptr) return {};
  return fail(Code::unavailable, "NATS at " + shown_urls(settings_.servers) + ": stream " + settings_.stream + " " +
                                     why + " in jetstream.stream");
}

/// Returns true if the stream may lose single messages by its own rules: consumers empty it, or it keeps a limited
/// number for each subject.
bool StreamCheck::evicts_single_messages() const {
  return info_->Config->Retention != js_LimitsPolicy || info_->Config->MaxMsgsPerSubject > 0;
}

Result<Found> StreamCheck::missing(const Position& position) {
  if (evicts_single_messages()) return Found::ours;
  DRIFTD_CHECK(read_info());  // the message may have expired since the last check
  return position.stream_seq < info_->State.FirstSeq ? Found::ours : Found::not_ours;
}

Result<Found> StreamCheck::at(const Position& position) {
  if (position.stream_seq > info_->State.LastSeq) return Found::not_ours;
  if (position.stream_seq < info_->State.FirstSeq) return Found::ours;  // expired: it was there
  natsMsg* raw = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_GetMsg(&raw, broker_.stream.get(), settings_.stream.c_str(), position.stream_seq, nullptr, &code);
  const Message message(raw);
  if (status == NATS_NOT_FOUND || code == JSNoMessageFoundErr) return missing(position);
  if (status == NATS_TIMEOUT && inbox_.denied(api("MSG.GET"))) {
    unreadable_ = true;
    return Found::unreadable;
  }
  if (status != NATS_OK) return fail(failed(status, static_cast<int>(code), "MSG.GET"));
  const char* id = nullptr;
  if (natsMsgHeader_Get(message.get(), "Nats-Msg-Id", &id) != NATS_OK || id == nullptr) return Found::not_ours;
  return position.id == id ? Found::ours : Found::not_ours;
}

Result<bool> StreamCheck::sample_holds() {
  const auto& marks = memory_.marks.all();
  for (std::size_t i = 0; i < std::min(kSample, marks.size()); ++i) {
    DRIFTD_TRY(const Found found, at(marks[(memory_.checks * kSample + i) % marks.size()]));
    if (found == Found::not_ours) return false;
  }
  return true;
}

/// Checks the marks from the oldest one. What follows the first mark that does not hold may be lost, whatever newer
/// ones say.
Result<Loss> StreamCheck::measure() {
  Loss loss;
  for (const auto& mark : memory_.marks.all()) {
    DRIFTD_TRY(const Found found, at(mark));
    if (found != Found::ours) break;
    loss.rewind_to = mark.safe;
    ++loss.marks_kept;
  }
  return loss;
}

Result<std::optional<Loss>> StreamCheck::find_loss() {
  if (!memory_.created.empty() && memory_.created != std::to_string(info_->Created)) return Loss{};
  const Position& last = memory_.marks.last();
  if (last.stream_seq == 0) return std::nullopt;
  DRIFTD_TRY(const Found found, at(last));
  if (found == Found::unreadable) return std::nullopt;
  if (found == Found::ours) {
    DRIFTD_TRY(const bool holds, sample_holds());
    if (holds) return std::nullopt;
  }
  DRIFTD_TRY(const Loss loss, measure());
  return loss;
}

std::string StreamCheck::warnings() const {
  std::vector<std::string> out;
  if (unreadable_) {
    out.push_back("the account may not publish to " + api("MSG.GET") +
                  ": whether the stream still holds what it acknowledged cannot be checked");
  }
  const jsStreamConfig& config = *info_->Config;
  const auto evicts = [&](const std::string& by) {
    out.push_back("the stream evicts events by " + by + ", also those that no consumer has seen");
  };
  const bool limited = config.MaxMsgs > 0 || config.MaxBytes > 0;
  if (config.Discard == js_DiscardOld && limited) evicts("'discard: old' at its limit; set 'discard: new'");
  if (config.Discard == js_DiscardOld && config.MaxMsgsPerSubject > 0) evicts("'max_msgs_per_subject'; remove it");
  if (config.Storage == js_MemoryStorage) {
    out.push_back(
        "the stream is in memory: what it acknowledged is lost with its servers; make one with storage: file");
  }
  if (config.Retention == js_WorkQueuePolicy) {
    out.push_back("the stream is a work queue: each event goes to one consumer only; set retention: limits");
  }
  if (config.Retention == js_InterestPolicy && info_->State.Consumers == 0) {
    out.push_back("the stream keeps events only for consumers that exist, and has none; set retention: limits");
  }
  return joined(out);
}

Result<Inspection> StreamCheck::run() {
  DRIFTD_CHECK(read_info());
  DRIFTD_CHECK(check_usable());
  Inspection out;
  out.max_message = info_->Config->MaxMsgSize;
  DRIFTD_TRY(out.loss, find_loss());
  out.created = std::to_string(info_->Created);
  for (int i = 0; i < info_->Config->SubjectsLen; ++i) out.subjects.emplace_back(info_->Config->Subjects[i]);
  out.warnings = warnings();
  return out;
}

}  // namespace

Result<Inspection> inspect(const Broker& broker, const NatsSettings& settings, const KnownStream& memory,
                           const Inbox& inbox) {
  return StreamCheck(broker, settings, memory, inbox).run();
}

}  // namespace driftd::sinks
