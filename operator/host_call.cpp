// SPDX-License-Identifier: Apache-2.0
#include "operator/host_call.hpp"

#include <sys/eventfd.h>
#include <unistd.h>
#include <functional>
#include <optional>
#include <system_error>

#include "base/log.hpp"

namespace driftd::op {

using Steady = std::chrono::steady_clock;

struct HostCallState {
  HostCallState(std::stop_token token, Steady::time_point end)
      : stop(std::move(token)),
        deadline(end),
        wake_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    on_stop.emplace(stop, [this] { (void)!::eventfd_write(wake_fd, 1); });
  }
  ~HostCallState() {
    on_stop.reset();
    ::close(wake_fd);
  }

  const std::stop_token stop;
  const Steady::time_point deadline;
  const int wake_fd;  ///< readable once `stop` is requested
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
};

namespace {

/// The handle of a call is the address of its state: whoever gets it is part of this program.
const HostCallState& state_of(driftd_call handle) { return *reinterpret_cast<const HostCallState*>(handle); }

std::int64_t now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}
void log(driftd_call, std::int32_t level, driftd_str text, const driftd_kv*, std::uint32_t) {
  const auto severity = level == DRIFTD_LOG_ERROR  ? spdlog::level::err
                        : level == DRIFTD_LOG_WARN ? spdlog::level::warn
                        : level == DRIFTD_LOG_INFO ? spdlog::level::info
                                                   : spdlog::level::debug;
  log::room("kube").log(severity, "{}", std::string(sdk::view(text)));
}
driftd_status metric(driftd_call, driftd_str, double) { return DRIFTD_OK; }
std::int32_t cancelled(driftd_call handle) {
  const HostCallState& state = state_of(handle);
  return state.stop.stop_requested() || Steady::now() >= state.deadline ? 1 : 0;
}
std::int64_t deadline(driftd_call handle) { return state_of(handle).deadline.time_since_epoch().count(); }
std::int32_t cancel_fd(driftd_call handle) { return state_of(handle).wake_fd; }
// No provider runs here, so nothing emits records.
driftd_status emit(driftd_call, const driftd_record*, std::uint32_t, std::uint32_t) { return DRIFTD_INVALID; }
driftd_status mark(driftd_call, const driftd_mark*) { return DRIFTD_INVALID; }
void diag(driftd_call, const driftd_diagnostic* given) {
  log::room("kube").warn("{}", std::string(sdk::view(given->text)));
}
driftd_status permit(driftd_call, driftd_str, std::uint32_t) { return DRIFTD_OK; }
driftd_status secret(driftd_call, driftd_str, driftd_use_fn, void*) { return DRIFTD_DENIED; }
const void* query(driftd_str, std::uint32_t) { return nullptr; }

constexpr driftd_host_table kHost = {sizeof(driftd_host_table),
                                     DRIFTD_ABI_MINOR,
                                     now,
                                     log,
                                     metric,
                                     cancelled,
                                     deadline,
                                     cancel_fd,
                                     emit,
                                     mark,
                                     diag,
                                     permit,
                                     secret,
                                     query};

driftd_call handle_of(const HostCallState& state) {
  static const bool installed = [] { return sdk::host = &kHost, true; }();
  (void)installed;
  return reinterpret_cast<driftd_call>(&state);
}

}  // namespace

HostCall::HostCall(std::stop_token stop, Steady::time_point deadline)
    : state_(std::make_unique<HostCallState>(std::move(stop), deadline)),
      call_(std::make_unique<sdk::Call>(handle_of(*state_))) {}

HostCall::~HostCall() = default;

}  // namespace driftd::op
