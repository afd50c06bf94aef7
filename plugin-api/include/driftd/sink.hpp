// SPDX-License-Identifier: Apache-2.0
// C++20 SDK of the sink ABI: derive from driftd::sdk::sink::Instance, describe the plugin with a
// driftd::sdk::sink::Plugin, and write DRIFTD_SINK(plugin_function). Exceptions never cross the border: a Failure
// becomes its status and a diagnostic, anything else DRIFTD_INTERNAL with its text. In the shortest form
// (examples/sinks/syslog is a whole plugin):
//   void deliver(Delivery& call, const Batch& batch) override {
//     for (std::size_t i = 0; i < batch.size(); ++i) {
//       send(batch[i]);     // throws Failure(DRIFTD_UNAVAILABLE, "…"): what is not settled is retried
//       call.delivered(i);  // only after the receiver has acknowledged it
//     }
//   }
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
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
    Event out{view(e.id),    view(e.source),    view(e.type),         view(e.subject),
              view(e.topic), view(e.order_key), view(e.content_type), view(e.body)};
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

/// One opened sink. Plugin::open makes it, the host owns it, and it is deleted when the host closes it, with no call in
/// progress. deliver may run several times at once, up to the declared concurrency, and probe and flush beside it; wake
/// at any time. Every function may throw Failure, which becomes the status and the diagnostic of its call.
class Instance {
 public:
  virtual ~Instance() = default;
  /// Sends the events and settles each. What is left unsettled is retried, by the Failure that is thrown.
  virtual void deliver(Delivery& call, const Batch& batch) = 0;
  /// Answers within 1 s whether the endpoint can be reached. A Failure with UNAVAILABLE is reported as DOWN.
  virtual Health probe(Call& call) = 0;
  /// Makes durable what was delivered. Only called when describe says "flush": true.
  virtual void flush(Call&) {}
  /// Makes blocked calls look at Call::cancelled. Returns at once, without I/O; from any thread.
  virtual void wake() {}
};

/// A plugin as described to the host; static for the life of the process.
struct Plugin {
  std::string describe;         ///< JSON, see driftd_sink_table.describe; the same each time
  std::string settings_schema;  ///< JSON Schema of the settings
  /// Makes the instance of the sink out of `settings` (JSON; sensitive values are tokens for Call::secret). It need not
  /// connect. Throws Failure; null counts as DRIFTD_INTERNAL.
  std::unique_ptr<Instance> (*open)(Call& call, std::string_view sink, std::string_view settings) = nullptr;
};

namespace detail {

/// Runs `f` with the call; what it throws becomes the status and one diagnostic. Returns OK if nothing was thrown.
template <class OfCall, class F>
driftd_status guarded(driftd_call handle, F f) noexcept {
  driftd_status code = DRIFTD_INTERNAL;
  try {
    OfCall call(handle);
    try {
      f(call);
      return DRIFTD_OK;
    } catch (const Failure& e) {
      code = e.code;
      call.diag(e.code, e.what(), e.retry_after_ms);
    } catch (const std::exception& e) {
      call.diag(DRIFTD_INTERNAL, e.what());
    } catch (...) {
      call.diag(DRIFTD_INTERNAL, "unknown exception");
    }
  } catch (...) {  // the diagnostic itself failed, mostly because no memory is left
  }
  return code;
}

/// The table for one plugin function `P`; static, so that the same library may be opened for many sinks.
template <const Plugin& (*P)()>
struct Table {
  static driftd_status push_text(const std::string& (*text)(), driftd_push_fn push, void* user) noexcept {
    try {
      push(user, str(text()));
      return DRIFTD_OK;
    } catch (...) {
      return DRIFTD_INTERNAL;
    }
  }
  static driftd_status describe(driftd_push_fn push, void* user) {
    return push_text([]() -> const std::string& { return P().describe; }, push, user);
  }
  static driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
    if (view(what) != "settings") return DRIFTD_NOT_FOUND;
    return push_text([]() -> const std::string& { return P().settings_schema; }, push, user);
  }
  /// Makes the instance and gives it to the host, which ends it with close(). `out` is untouched on failure.
  static driftd_status open(driftd_call handle, const driftd_sink_open_args* given, driftd_instance* out) {
    return guarded<Call>(handle, [&](Call& call) {
      const auto args = adopt(given);
      auto made = P().open(call, view(args.sink), view(args.settings));
      if (made == nullptr) throw Failure(DRIFTD_INTERNAL, "the plugin's open gave no instance");
      *out = made.release();
    });
  }
  static driftd_status deliver(driftd_instance instance, driftd_call handle, const driftd_batch* batch) {
    return guarded<Delivery>(handle, [&](Delivery& call) { self(instance).deliver(call, Batch(batch)); });
  }
  /// An endpoint that is down is a report, not a failure.
  static driftd_status probe(driftd_instance instance, driftd_call handle, driftd_health_fn push, void* user) {
    return guarded<Call>(handle, [&](Call& call) {
      Health h;
      try {
        h = self(instance).probe(call);
      } catch (const Failure& e) {
        if (e.code != DRIFTD_UNAVAILABLE) throw;
        h.state = DRIFTD_HEALTH_DOWN;
        h.reason = e.what();
      }
      const driftd_health out{
          sizeof out, h.state, h.latency_us, str(h.reason), str(h.role), str(h.system_identity), str(h.server_version)};
      push(user, &out);
    });
  }
  static driftd_status flush(driftd_instance instance, driftd_call handle) {
    return guarded<Call>(handle, [&](Call& call) { self(instance).flush(call); });
  }
  /// Has no status, so what Instance::wake throws is lost.
  static void wake(driftd_instance instance) {
    try {
      self(instance).wake();
    } catch (...) {
    }
  }
  static void close(driftd_instance instance) { delete static_cast<Instance*>(instance); }
  static const void* query(driftd_str, std::uint32_t) { return nullptr; }

  static constexpr driftd_sink_table kTable{
      sizeof(driftd_sink_table), 0, &describe, &schema, &open, &deliver, &probe, &flush, &wake, &close, &query};
  static driftd_status entry(const driftd_sink_host_table* table, const driftd_offer*, driftd_sink_accept* out) {
    host = table;
    out->minor_built = DRIFTD_SINK_ABI_MINOR;
    out->minor_needed = 0;  // any host of this major will do
    out->table = &kTable;
    return DRIFTD_OK;
  }

 private:
  static Instance& self(driftd_instance instance) { return *static_cast<Instance*>(instance); }
};

}  // namespace detail
}  // namespace driftd::sdk::sink

/// Defines the one exported symbol for `const driftd::sdk::sink::Plugin& plugin()`. Write it once in a library, outside
/// of any namespace; everything else of the library should be hidden.
#define DRIFTD_SINK(plugin)                                                                                            \
  extern "C" DRIFTD_EXPORT driftd_status driftd_sink_v1(const driftd_sink_host_table* host, const driftd_offer* offer, \
                                                        driftd_sink_accept* out) {                                     \
    return driftd::sdk::sink::detail::Table<&plugin>::entry(host, offer, out);                                         \
  }
