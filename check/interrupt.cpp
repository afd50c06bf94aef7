// SPDX-License-Identifier: Apache-2.0
#include "check/interrupt.hpp"

#include <csignal>
#include <initializer_list>

namespace driftd::check {
namespace {

volatile std::sig_atomic_t seen = 0;

void note(int number) { seen = number; }

/// Replaces the handler `from` by `to` for each of the three signals. Any other handler stays.
void replace(void (*from)(int), void (*to)(int)) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != from) continue;
    struct sigaction next {};
    next.sa_handler = to;
    next.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(number, &next, nullptr);
  }
}

}  // namespace

void watch_interrupts() { replace(SIG_DFL, &note); }
void reset_interrupts() { replace(&note, SIG_DFL); }

const char* interrupted() {
  switch (seen) {
    case 0:
      return nullptr;
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    default:
      return "SIGHUP";
  }
}

}  // namespace driftd::check
