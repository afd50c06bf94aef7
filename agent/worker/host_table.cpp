// SPDX-License-Identifier: Apache-2.0
#include "worker/host_table.hpp"

#include <fmt/format.h>
#include <atomic>
#include <chrono>
#include <cmath>

#include "base/log.hpp"
#include "worker/abi_input.hpp"
#include "worker/sink_input.hpp"

namespace driftd::worker {
namespace {

thread_local bool in_use = false;  // inside `use` of secret(), which must not call the host

struct InUse {
  InUse() { in_use = true; }
  ~InUse() { in_use = false; }  // also if an exception of the plugin passes through
};

/// Counts a misuse of the call that runs on this thread. If the plugin made the thread itself, there is no such call,
/// so the misuse is logged.
void report_bad_handle(const char* function) {
  static std::atomic<int> logged{0};
  if (auto* own = running_call()) {
    own->instance.misuse(fmt::format("{}: stale or forged call handle", function));
  } else if (logged++ < 10) {
    log::room("host").warn("a thread of a plugin called {} with a stale or forged call handle", function);
  }
}

/// Returns the call of a handle if it may be used here. Otherwise counts a misuse and returns nullptr.
std::shared_ptr<ActiveCall> find_usable_call(driftd_call handle, const char* function) {
  auto call = CallTable::instance().find(handle);
  if (call == nullptr) {
    report_bad_handle(function);
    return nullptr;
  }
  if (call->owner != std::this_thread::get_id()) {
    call->instance.misuse(fmt::format("{}: called on another thread than the call's own", function));
    return nullptr;
  }
  if (in_use) {
    call->instance.misuse(fmt::format("{}: called inside `use` of secret", function));
    return nullptr;
  }
  return call;
}

/// Lets no exception of ours (mostly std::bad_alloc) into a plugin.
template <class F>
driftd_status contained(F f) noexcept {
  try {
    return f();
  } catch (...) {
    return DRIFTD_INTERNAL;
  }
}

std::int64_t now() { return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

void log_line(driftd_call handle, std::int32_t level, driftd_str text, const driftd_kv* kv, std::uint32_t count) {
  contained([&] {
    const auto call = find_usable_call(handle, "log");
    if (call == nullptr) return DRIFTD_INVALID;
    if (text.data == nullptr && text.len != 0) call->instance.misuse("log: the text is NULL with a length");
    const auto dropped = call->instance.may_log();
    if (!dropped) return DRIFTD_OK;
    const auto& scrubber = call->instance.scrubber;
    std::string line = scrubber.printable(view(text), 4096);
    const char* at = reinterpret_cast<const char*>(kv);
    for (std::uint32_t i = 0; i < std::min(count, 32u) && kv != nullptr && kv->size >= sizeof kv->size; ++i) {
      const auto field = adopt<driftd_kv>(at);
      line +=
          fmt::format(" {}={}", scrubber.printable(view(field.key), 128), scrubber.printable(view(field.value), 1024));
      at += kv->size;  // the stride is the size of the first one
    }
    if (*dropped > 0) line += fmt::format(" ({} lines before this one dropped)", *dropped);
    return call->send_uncredited(ipc::FrameType::log, encode(ipc::LogLine{level, std::move(line)}));
  });
}

driftd_status metric(driftd_call handle, driftd_str name, double value) {
  return contained([&] {
    const auto call = find_usable_call(handle, "metric");
    if (call == nullptr) return DRIFTD_INVALID;
    const std::string key(view(name));
    if (!call->instance.metrics.contains(key)) {
      call->instance.misuse("metric: the name is not declared in describe().metrics");
      return DRIFTD_INVALID;
    }
    if (!std::isfinite(value)) {
      call->instance.misuse("metric: " + key + " is not a finite number");
      return DRIFTD_INVALID;
    }
    if (!call->instance.may_send_metric()) {
      call->instance.misuse("metric: more than 500 a second; the rest is dropped");
      return DRIFTD_OK;
    }
    return call->send(ipc::FrameType::metric, encode(ipc::Gauge{key, fmt::format("{}", value)}));
  });
}

std::int32_t cancelled(driftd_call handle) {
  const auto call = find_usable_call(handle, "cancelled");
  return call == nullptr || call->ending() ? 1 : 0;
}

std::int64_t deadline(driftd_call handle) {
  const auto call = find_usable_call(handle, "deadline");
  return call == nullptr ? 0 : call->deadline_ns;
}

std::int32_t cancel_fd(driftd_call handle) {
  const auto call = find_usable_call(handle, "cancel_fd");
  return call == nullptr ? -1 : call->cancel_fd();
}

driftd_status emit(driftd_call handle, const driftd_record* records, std::uint32_t count, std::uint32_t stride) {
  return contained([&] {
    const auto call = find_usable_call(handle, "emit");
    if (call == nullptr) return DRIFTD_INVALID;
    if (!call->accepts_records()) {
      call->instance.misuse("emit: this call takes no records");
      return DRIFTD_INVALID;
    }
    auto taken = read_records(call->instance, records, count, stride, call->type == ipc::FrameType::refresh);
    if (taken) {
      const auto status = call->emit(std::move(taken->records));
      for (auto& fault : taken->faults) {
        call->instance.misuse(fault.text);
        call->report_bad_record(std::move(fault));
      }
      return status;
    }
    call->forbid_complete();
    call->instance.misuse(call->instance.scrubber.text(taken.error().message));
    return DRIFTD_INVALID;
  });
}

driftd_status mark(driftd_call handle, const driftd_mark* given) {
  return contained([&] {
    const auto call = find_usable_call(handle, "mark");
    if (call == nullptr || given == nullptr) return DRIFTD_INVALID;
    const auto copy = adopt<driftd_mark>(given);
    auto taken = read_mark(call->instance, copy);
    if (!taken || !call->accepts_records()) {
      call->instance.misuse(taken ? "mark: this call takes no marks" : taken.error().message);
      return DRIFTD_INVALID;
    }
    return call->mark(std::move(*taken));
  });
}

void diag(driftd_call handle, const driftd_diagnostic* given) {
  contained([&] {
    const auto call = find_usable_call(handle, "diag");
    if (call == nullptr || given == nullptr) return DRIFTD_INVALID;
    const auto copy = adopt<driftd_diagnostic>(given);
    return call->diagnose(read_diagnostic(call->instance, copy));
  });
}

driftd_status permit(driftd_call handle, driftd_str bucket, std::uint32_t tokens) {
  return contained([&] {
    const auto call = find_usable_call(handle, "permit");
    if (call == nullptr) return DRIFTD_INVALID;
    return call->permit(ipc::printable(view(bucket), 128), tokens);
  });
}

driftd_status secret(driftd_call handle, driftd_str token, driftd_use_fn use, void* user) {
  const auto call = find_usable_call(handle, "secret");
  if (call == nullptr || use == nullptr) return DRIFTD_INVALID;
  const auto& secrets = call->instance.open.secrets;
  const auto found = secrets.find(std::string(view(token)));
  if (found == secrets.end()) {
    call->instance.deny_secret();
    return DRIFTD_DENIED;
  }
  const InUse guard;
  use(user, reinterpret_cast<const std::uint8_t*>(found->second.data()), found->second.size());
  return DRIFTD_OK;
}

driftd_status settle(driftd_call handle, const driftd_settlement* given, std::uint32_t count, std::uint32_t stride) {
  return contained([&] {
    const auto call = find_usable_call(handle, "settle");
    if (call == nullptr) return DRIFTD_INVALID;
    const auto taken = read_settlements(*call, given, count, stride);
    if (!taken.empty()) {
      const auto sent = call->send_uncredited(ipc::FrameType::settled, encode(taken));
      if (sent != DRIFTD_OK) return sent;
    }
    return taken.size() == count ? DRIFTD_OK : DRIFTD_INVALID;
  });
}

const void* query(driftd_str, std::uint32_t) { return nullptr; }

}  // namespace

const driftd_host_table* host_table() {
  static constexpr driftd_host_table kTable{sizeof(driftd_host_table),
                                            DRIFTD_ABI_MINOR,
                                            &now,
                                            &log_line,
                                            &metric,
                                            &cancelled,
                                            &deadline,
                                            &cancel_fd,
                                            &emit,
                                            &mark,
                                            &diag,
                                            &permit,
                                            &secret,
                                            &query};
  return &kTable;
}

const driftd_sink_host_table* sink_host_table() {
  static constexpr driftd_sink_host_table kTable{sizeof(driftd_sink_host_table),
                                                 DRIFTD_SINK_ABI_MINOR,
                                                 &now,
                                                 &log_line,
                                                 &cancelled,
                                                 &deadline,
                                                 &cancel_fd,
                                                 &settle,
                                                 &diag,
                                                 &secret,
                                                 &query};
  return &kTable;
}

Code code_of(driftd_status status) {
  const bool known = status >= DRIFTD_OK && status <= DRIFTD_INTERNAL;
  return known ? static_cast<Code>(status) : Code::internal;
}

}  // namespace driftd::worker
