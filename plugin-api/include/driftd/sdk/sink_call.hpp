// SPDX-License-Identifier: Apache-2.0
// What a sink plugin is given and may ask of the host in a call: driftd_batch and driftd_sink_host_table in C++.
#pragma once

#include <initializer_list>
#include <utility>

#include "driftd/sdk/types.hpp"
#include "driftd/sink.h"

namespace driftd::sdk::sink {

/// The host's table as handed to driftd_sink_v1, which sets it before any call. Lives as long as the process.
inline const driftd_sink_host_table* host = nullptr;

/// One event. Its texts are the host's, valid until deliver returns: copy what is kept.
struct Event {
  std::string_view id, source, type, subject, topic, order_key, content_type, body;
  std::uint64_t sequence = 0, incarnation = 0;
  std::int64_t time_ns = 0;
  bool replay = false, agent_event = false;
  std::map<std::string_view, std::string_view> attributes;
  /// Returns an attribute by its name in sink.h (`backend`, `change`), empty if there is none.
  std::string_view attribute(std::string_view name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? std::string_view() : found->second;
  }
};

/// The events of one deliver, all of different order keys. Borrows what the host passed.
class Batch {
 public:
  explicit Batch(const driftd_batch* given) : batch_(adopt(given)) {}
  std::size_t size() const { return batch_.event_count; }
  Event operator[](std::size_t i) const {
    const auto* at = reinterpret_cast<const char*>(batch_.events) + i * batch_.event_stride;
    const auto e = adopt(reinterpret_cast<const driftd_event*>(at));
    Event out;
    out.id = view(e.id);
    out.source = view(e.source);
    out.type = view(e.type);
    out.subject = view(e.subject);
    out.topic = view(e.topic);
    out.order_key = view(e.order_key);
    out.content_type = view(e.content_type);
    out.body = view(e.body);
    out.sequence = e.sequence;
    out.incarnation = e.incarnation;
    out.time_ns = e.time_ns;
    out.replay = (e.flags & DRIFTD_EVENT_REPLAY) != 0;
    out.agent_event = (e.flags & DRIFTD_EVENT_AGENT) != 0;
    const auto* kv = reinterpret_cast<const char*>(e.attributes);
    for (std::uint32_t k = 0; k < e.attribute_count; ++k, kv += e.attribute_stride) {
      const auto one = adopt(reinterpret_cast<const driftd_kv*>(kv));
      out.attributes.emplace(view(one.key), view(one.value));
    }
    return out;
  }

 private:
  driftd_batch batch_;
};

/// A call in progress. Made by the SDK on the stack of the call; use it only on its thread and not after it returned.
class Call {
 public:
  explicit Call(driftd_call handle) : handle_(handle) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  /// Writes a line into the agent's log, `level` DRIFTD_LOG_*; scrubbed and rate-limited by the host.
  void log(std::int32_t level, std::string_view text, Fields fields = {}) const {
    std::vector<driftd_kv> kv;
    for (const auto& [key, value] : fields) kv.push_back({sizeof(driftd_kv), 0, str(key), str(value)});
    host->log(handle_, level, str(text), kv.data(), static_cast<std::uint32_t>(kv.size()));
  }
  bool cancelled() const { return host->cancelled(handle_) != 0; }      ///< cancelled, or its deadline passed
  std::int64_t deadline_ns() const { return host->deadline(handle_); }  ///< CLOCK_MONOTONIC
  /// Readable once the call is cancelled, for poll(2); the host owns it. -1: none.
  int cancel_fd() const { return host->cancel_fd(handle_); }
  std::int64_t now_ns() const { return host->now(); }  ///< wall clock, nanoseconds since the epoch
  void diag(driftd_status code, std::string_view text, std::int64_t retry_after_ms = 0, std::string_view path = {}) {
    driftd_diagnostic out{};
    out.size = sizeof out;
    out.code = code;
    out.text = str(text);
    out.path = str(path);
    out.retry_after_ms = retry_after_ms;
    host->diag(handle_, &out);
  }
  /// Returns a copy of the secret behind the token that a sensitive setting holds; empty for an empty token. Throws
  /// DENIED if the token was not issued for this instance.
  std::string secret(std::string_view token) {
    if (token.empty()) return {};
    struct Copy {
      std::string bytes;
      bool failed = false;
    } copy;
    const auto use = [](void* user, const std::uint8_t* data, std::uint64_t len) noexcept {
      auto& to = *static_cast<Copy*>(user);
      try {
        to.bytes.assign(reinterpret_cast<const char*>(data), static_cast<std::size_t>(len));
      } catch (...) {  // nothing is thrown through the host
        to.failed = true;
      }
    };
    const driftd_status status = host->secret(handle_, str(token), use, &copy);
    if (status != DRIFTD_OK) throw Failure(status, "the host refused secret");
    if (copy.failed) throw Failure(DRIFTD_INTERNAL, "no memory is left for a copy of a secret");
    return std::move(copy.bytes);
  }

 protected:
  const driftd_call handle_;
};

/// The call of deliver: one verdict for each event, as soon as it is known; what is settled stays settled. `detail` is
/// for people, without secrets. An event may be settled once; a second time, or an index beyond the batch, throws
/// INVALID.
class Delivery : public Call {
 public:
  using Call::Call;
  void delivered(std::size_t i) { settle(i, DRIFTD_OUTCOME_DELIVERED, {}, 0); }
  void retry_event(std::size_t i, std::string_view detail, std::int64_t retry_after_ms = 0) {
    settle(i, DRIFTD_OUTCOME_RETRY_EVENT, detail, retry_after_ms);
  }
  void retry_sink(std::size_t i, std::string_view detail, std::int64_t retry_after_ms = 0) {
    settle(i, DRIFTD_OUTCOME_RETRY_SINK, detail, retry_after_ms);
  }
  void refused(std::size_t i, std::string_view detail, std::int64_t retry_after_ms = 0) {
    settle(i, DRIFTD_OUTCOME_REFUSED, detail, retry_after_ms);
  }
  void permanent(std::size_t i, std::string_view detail) { settle(i, DRIFTD_OUTCOME_PERMANENT, detail, 0); }
  void disabled(std::size_t i, std::string_view detail) { settle(i, DRIFTD_OUTCOME_DISABLED, detail, 0); }

 private:
  void settle(std::size_t i, std::uint32_t outcome, std::string_view detail, std::int64_t retry_after_ms) {
    driftd_settlement out{};
    out.size = sizeof out;
    out.index = static_cast<std::uint32_t>(i);
    out.outcome = outcome;
    out.retry_after_ms = retry_after_ms;
    out.detail = str(detail);
    const driftd_status status = host->settle(handle_, &out, 1, sizeof out);
    if (status != DRIFTD_OK) throw Failure(status, "the host refused a verdict");
  }
};

}  // namespace driftd::sdk::sink
