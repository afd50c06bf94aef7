// SPDX-License-Identifier: Apache-2.0
// C++20 SDK of the sink ABI: derive from driftd::sdk::sink::Instance, describe the plugin with a
// driftd::sdk::sink::Plugin, and write DRIFTD_SINK(plugin_function). Exceptions never cross the border: a Failure
// becomes its status and a diagnostic, anything else DRIFTD_INTERNAL with its text. In the shortest form
// (examples/sinks/syslog is a whole plugin, sdk/sink_call.hpp what a call offers):
//   void deliver(Delivery& call, const Batch& batch) override {
//     for (std::size_t i = 0; i < batch.size(); ++i) {
//       send(batch[i]);     // throws Failure(DRIFTD_UNAVAILABLE, "…"): what is not settled is retried
//       call.delivered(i);  // only after the receiver has acknowledged it
//     }
//   }
#pragma once

#include <memory>

#include "driftd/sdk/sink_call.hpp"

namespace driftd::sdk::sink {

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
  static void close(driftd_instance instance) { delete &self(instance); }
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
