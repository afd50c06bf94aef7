// SPDX-License-Identifier: Apache-2.0
// What every call of a provider's function needs: a guard around it, and callbacks that copy what it pushes.
#pragma once

#include <string>

#include "check/abi_input.hpp"
#include "check/progress.hpp"

namespace driftd::check {

// Callbacks for the functions of the table that push their results. `user` is the CallTrace that keeps them.
void push_text(void* user, driftd_str text);
void push_health(void* user, const driftd_health* health);
void push_verdict(void* user, const driftd_verdict* verdict);

/// Records that the function `name` let an exception out: a violation of threads.no_exception. [any thread]
void add_exception(CallTrace& trace, const std::string& name);

/// Runs `function` on this thread and stores its status in `trace`. Records an exception or an unknown status as a
/// violation. `name` is the progress text meanwhile. [any thread]
template <class F>
void call_guarded(CallTrace& trace, const std::string& name, F function) {
  set_progress(name);
  try {
    trace.status = function();
    (void)parse_status(trace.status, name.c_str());
  } catch (...) {
    add_exception(trace, name);
  }
  set_progress("between calls, after " + name);
}

}  // namespace driftd::check
