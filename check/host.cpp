// SPDX-License-Identifier: Apache-2.0
#include "check/host.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmath>

#include "check/abi_input.hpp"
#include "check/alloc.hpp"
#include "check/check.hpp"
#include "check/progress.hpp"

namespace driftd::check {
namespace {

using namespace std::chrono;

constexpr std::size_t kMaxViolations = 200, kMaxFunctions = 100'000;

thread_local bool in_use = false;          // this thread is inside `use` of secret()
thread_local HostCall* running = nullptr;  // the call whose provider function runs on this thread

std::string view(driftd_str s) {
  return s.data == nullptr ? std::string() : std::string(s.data, static_cast<std::size_t>(s.len));
}

std::int64_t now() { return Host::get().now(); }

void log(driftd_call handle, std::int32_t level, driftd_str text, const driftd_kv* kv, std::uint32_t count) {
  HostCall* call = Host::get().claim(handle, "log");
  if (call == nullptr) return;
  if (level < DRIFTD_LOG_DEBUG || level > DRIFTD_LOG_ERROR) {
    Host::get().add_violation("schema.statuses", fmt::format("log: level {} is unknown", level));
  }
  std::string line = parse_text(text, "log.text", 1u << 20);
  if (kv == nullptr && count > 0) Host::get().add_violation("schema.text", "log: key/values at NULL");
  const char* at = reinterpret_cast<const char*>(kv);
  for (std::uint32_t i = 0; kv != nullptr && i < count; ++i, at += kv->size) {  // the size of the first element is the
                                                                                // stride
    const auto pair = copy_struct<driftd_kv>(at);
    line += ' ' + parse_text(pair.key, "log.key") + '=' + parse_text(pair.value, "log.value", 1u << 20);
  }
  call->trace.logs.push_back(std::move(line));
}

driftd_status metric(driftd_call handle, driftd_str name, double value) {
  HostCall* call = Host::get().claim(handle, "metric");
  if (call == nullptr) return DRIFTD_INVALID;
  const std::string key = parse_text(name, "metric.name");
  if (!std::isfinite(value)) Host::get().add_violation("schema.metrics", fmt::format("gauge '{}' is {}", key, value));
  const bool known = call->declared->metrics.contains(key);
  if (!known) {
    Host::get().add_violation("schema.metrics", fmt::format("gauge '{}' is not declared in describe().metrics", key));
  }
  call->trace.metrics.emplace_back(key, value);
  return known ? DRIFTD_OK : DRIFTD_INVALID;
}

std::int32_t cancelled(driftd_call handle) {
  const HostCall* call = Host::get().claim(handle, "cancelled");
  return call == nullptr || call->over() ? 1 : 0;
}

std::int64_t deadline(driftd_call handle) {
  const HostCall* call = Host::get().claim(handle, "deadline");
  return call == nullptr ? 0 : call->deadline_ns();
}

std::int32_t cancel_fd(driftd_call handle) {
  HostCall* call = Host::get().claim(handle, "cancel_fd");
  return call == nullptr ? -1 : call->cancel_fd();
}

driftd_status flow_status(HostCall& call) {
  const auto& at = call.faults.finish_soon_at;
  if (at && call.trace.records.size() >= *at) call.finish_soon();
  return call.over() || call.finishing() ? DRIFTD_FINISH_SOON : DRIFTD_OK;
}

driftd_status emit(driftd_call handle, const driftd_record* records, std::uint32_t count, std::uint32_t stride) {
  HostCall* call = Host::get().claim(handle, "emit");
  if (call == nullptr) return DRIFTD_INVALID;
  if (!call->takes_records()) {
    Host::get().add_violation("schema.bodies",
                              fmt::format("emit in {}, which takes no records", name_of(call->function)));
    return DRIFTD_INVALID;
  }
  parse_records(*call, records, count, stride);
  return flow_status(*call);
}

driftd_status mark(driftd_call handle, const driftd_mark* given) {
  HostCall* call = Host::get().claim(handle, "mark");
  if (call == nullptr || given == nullptr || !call->takes_records()) {
    if (call != nullptr)
      Host::get().add_violation("refresh.complete_count", "mark: NULL, or in a call that takes no marks");
    return DRIFTD_INVALID;
  }
  parse_mark(*call, given);
  return flow_status(*call);
}

void diag(driftd_call handle, const driftd_diagnostic* given) {
  HostCall* call = Host::get().claim(handle, "diag");
  if (call == nullptr) return;
  if (given == nullptr) return Host::get().add_violation("schema.statuses", "diag: NULL");
  call->trace.diagnostics.push_back(parse_diagnostic(given));
}

driftd_status permit(driftd_call handle, driftd_str bucket, std::uint32_t) {
  HostCall* call = Host::get().claim(handle, "permit");
  if (call == nullptr) return DRIFTD_INVALID;
  call->trace.permits.push_back(parse_text(bucket, "permit.bucket"));
  if (call->cancelled()) return DRIFTD_CANCELLED;
  return call->over() ? DRIFTD_DEADLINE : DRIFTD_OK;
}

/// While `use` runs, host functions are forbidden and allocations belong to the provider.
struct InUse {
  const ProviderAllocates provider{};
  InUse() { in_use = true; }
  ~InUse() { in_use = false; }  // runs also when the provider throws
};

driftd_status secret(driftd_call handle, driftd_str token, driftd_use_fn use, void* user) {
  HostCall* call = Host::get().claim(handle, "secret");
  if (call == nullptr) return DRIFTD_INVALID;
  const std::string asked = view(token);
  call->trace.tokens.push_back(asked);
  const auto found = call->declared->secrets.find(asked);
  if (found == call->declared->secrets.end()) {
    Host::get().add_violation("secrets.own_tokens",
                              fmt::format("secret() was asked for '{}', which is no token of this instance's settings",
                                          asked.size() > 80 ? asked.substr(0, 80) + "..." : asked));
    return DRIFTD_DENIED;
  }
  if (call->faults.deny_secrets) return DRIFTD_DENIED;
  if (use == nullptr) return DRIFTD_INVALID;
  const InUse guard;
  if (call->faults.deliver_secret) {
    call->faults.deliver_secret(found->second, use, user);
  } else {
    use(user, reinterpret_cast<const std::uint8_t*>(found->second.data()), found->second.size());
  }
  return DRIFTD_OK;
}

const void* query(driftd_str, std::uint32_t) { return nullptr; }

}  // namespace

std::int64_t mono_ns() { return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count(); }

const char* name_of(Function function) {
  static constexpr const char* kNames[] = {"open",     "read",  "refresh", "watch", "health",
                                           "discover", "apply", "deliver", "probe", "flush"};
  return kNames[static_cast<int>(function)];
}

HostCall::HostCall(Function function, CallFaults faults, std::shared_ptr<const Declarations> declared)
    : function(function),
      faults(std::move(faults)),
      declared(std::move(declared)),
      deadline_ns_(mono_ns() + nanoseconds(this->faults.time).count()),
      cancelled_(this->faults.cancel_at == std::optional<std::uint64_t>(0)) {}

HostCall::~HostCall() {
  end();
  if (cancel_fd_ >= 0) ::close(cancel_fd_);
}

driftd_call HostCall::begin() {
  Host& host = Host::get();
  const std::lock_guard lock(host.mutex_);
  handle_ = (++host.generation_ << 32) | (host.calls_.size() + 1);
  owner_ = std::this_thread::get_id();
  host.calls_[handle_] = this;
  running = this;
  set_busy_until(std::min(deadline_ns_, mono_ns() + nanoseconds(kCallTime).count()) + nanoseconds(kGrace).count());
  return handle_;
}

void HostCall::end() {
  Host& host = Host::get();
  const std::lock_guard lock(host.mutex_);
  host.calls_.erase(handle_);
  if (host.calls_.empty()) set_busy_until(0);
  if (running == this) running = nullptr;
}

void HostCall::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  set_busy_until(mono_ns() + nanoseconds(kGrace).count());
  if (cancel_fd_ >= 0) (void)::eventfd_write(cancel_fd_, 1);
}

bool HostCall::over() const { return cancelled_ || mono_ns() >= deadline_ns_; }

int HostCall::cancel_fd() {
  const std::lock_guard lock(mutex_);
  if (cancel_fd_ < 0) cancel_fd_ = ::eventfd(cancelled_ ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
  return cancel_fd_;
}

Host& Host::get() {
  static auto* host = new Host;  // never destroyed: providers may still call while the process ends
  return *host;
}

const driftd_host_table* Host::table() const { return table_; }

const driftd_host_table* Host::own_table() {
  static constexpr driftd_host_table kTable = {sizeof(driftd_host_table),
                                               DRIFTD_ABI_MINOR,
                                               &check::now,
                                               &check::log,
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

void Host::set_clock(std::function<std::int64_t(std::int64_t)> clock) {
  const std::lock_guard lock(mutex_);
  clock_ = std::move(clock);
}

std::int64_t Host::now() {
  const std::int64_t real = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  if (in_use) add_violation("secrets.quiet_use", "now: called inside `use` of secret");
  const std::lock_guard lock(mutex_);
  return clock_ ? clock_(real) : real;
}

void Host::add_violation(const char* rule, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (violations_.size() < kMaxViolations) violations_.push_back({rule, text});
}

std::vector<Violation> Host::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

void Host::clear_violations() {
  const std::lock_guard lock(mutex_);
  violations_.clear();
}

void Host::expect_no_violation(const char* rule) const {
  std::size_t count = 0;
  std::string first;
  for (const auto& violation : violations()) {
    if (violation.rule == rule && count++ == 0) first = violation.text;
  }
  if (count == 1) throw RuleBroken(first);
  if (count > 1) throw RuleBroken(fmt::format("{} ({} times in all, or other violations of this rule)", first, count));
}

HostCall* Host::claim(driftd_call handle, const char* function) {
  HostCall* call = nullptr;
  bool own = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(handle);
    call = found == calls_.end() ? nullptr : found->second;
    own = call != nullptr && call->owner_ == std::this_thread::get_id();
  }
  if (call == nullptr && running != nullptr) {
    add_violation("threads.live_handles",
                  fmt::format("{}: handle {:#x} belongs to no call in progress", function, handle));
  } else if (call == nullptr) {
    add_violation("threads.live_handles",
                  fmt::format("{}: a thread outside of any call used the handle {:#x}, which belongs "
                              "to no call in progress",
                              function, handle));
    add_violation("threads.own_thread", fmt::format("{}: called on a thread that runs no call", function));
  } else if (!own) {
    add_violation("threads.own_thread", fmt::format("{}: called on another thread than the call's own", function));
  } else if (in_use) {
    add_violation("secrets.quiet_use", fmt::format("{}: called inside `use` of secret", function));
  }
  if (call == nullptr || !own || in_use) return nullptr;
  ++call->trace.callbacks;
  if (call->trace.functions.size() < kMaxFunctions) call->trace.functions.push_back(function);
  if (call->faults.cancel_at == call->trace.callbacks) call->cancel();
  if (call->faults.hook) call->faults.hook(*call);
  return call;
}

}  // namespace driftd::check
