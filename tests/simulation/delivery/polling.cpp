// SPDX-License-Identifier: Apache-2.0
// epoll for the io_contexts of the simulated agent: they wait for their timer and for nothing else, so that no call of
// the system is needed to know whether it is due. An hour of an agent asks some 50,000 times.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <cstdlib>
#include <map>

#include "simulation/delivery/simulated_time.hpp"

namespace driftd::sim {
namespace {

/// A descriptor that an io_context watches: its timer, or the event with which other threads would wake it, which is
/// reported once after it was added (edge-triggered).
struct Watched {
  epoll_event event{};
  bool fresh = true;
};

std::map<int, std::map<int, Watched>>& watched() {
  static std::map<int, std::map<int, Watched>> all;
  return all;
}

}  // namespace
}  // namespace driftd::sim

// The names that the linker gives to the functions that take the place of others. NOLINTBEGIN
extern "C" {

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags) {
  const int poll = __real_epoll_create1(flags);
  driftd::sim::watched()[poll].clear();  // the number may be that of one that was closed
  return poll;
}

int __wrap_epoll_ctl(int poll, int operation, int descriptor, epoll_event* event) {
  auto& all = driftd::sim::watched()[poll];
  if (operation == EPOLL_CTL_DEL) {
    all.erase(descriptor);
  } else {
    all[descriptor] = {*event, true};
  }
  return 0;
}

int __wrap_epoll_wait(int poll, epoll_event* out, int room, int timeout) {
  if (timeout != 0) std::abort();  // nobody would wake it
  int count = 0;
  for (auto& [descriptor, one] : driftd::sim::watched()[poll]) {
    const auto due = driftd::sim::SimulatedTime::get().is_due(descriptor);
    const bool fresh = std::exchange(one.fresh, false);
    if (count < room && due.value_or(fresh)) out[count++] = one.event;
  }
  return count;
}

int __wrap_timerfd_create(int, int) {
  const int descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  driftd::sim::SimulatedTime::get().set_timer(descriptor, std::nullopt);
  return descriptor;
}

int __wrap_timerfd_settime(int descriptor, int flags, const itimerspec* next, itimerspec*) {
  const auto in = std::chrono::seconds(next->it_value.tv_sec) + std::chrono::nanoseconds(next->it_value.tv_nsec);
  // asio sets an absolute time in the past for a timer that is due already
  const bool past = (flags & TFD_TIMER_ABSTIME) != 0;
  std::optional<driftd::sim::Duration> due;
  if (past || in.count() != 0) due = past ? driftd::sim::Duration(0) : driftd::sim::Duration(in);
  driftd::sim::SimulatedTime::get().set_timer(descriptor, due);
  return 0;
}

}  // extern "C" NOLINTEND
