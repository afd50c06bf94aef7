// SPDX-License-Identifier: Apache-2.0
// Where exceptions end: nothing thrown by a provider crosses into the host, which may be built by another compiler or
// written in another language. Every function of the tables runs inside one of the two barriers.
#pragma once

#include "driftd/sdk/call.hpp"

namespace driftd::sdk::detail {

/// Runs `f` with the call; what it throws becomes the status and one diagnostic: a Failure its own code, any other
/// exception DRIFTD_INTERNAL with its text. Returns OK if nothing was thrown. `f` runs on this thread.
template <class F>
driftd_status guarded(driftd_call handle, F f) noexcept {
  Diagnostic d;
  try {
    Call call(handle);
    try {  // inside, so that `call` is still there to send the diagnostic
      f(call);
      return DRIFTD_OK;
    } catch (const Failure& e) {
      d = {e.code, e.kind, {}, {}, e.what(), e.right, e.retry_after_ms};
    } catch (const std::exception& e) {
      d = {DRIFTD_INTERNAL, {}, {}, {}, e.what(), {}, 0};
    } catch (...) {
      d = {DRIFTD_INTERNAL, {}, {}, {}, "unknown exception", {}, 0};
    }
    call.diag(d);  // the last diagnostic of a call is the reason that people see
  } catch (...) {  // the diagnostic itself failed, mostly because no memory is left
    return DRIFTD_INTERNAL;
  }
  return d.code;  // never OK
}

/// The barrier of functions that have no call and so cannot send a diagnostic: only the code of a Failure is left.
/// Returns the status that `f` returns.
template <class F>
driftd_status guarded(F f) noexcept {
  try {
    return f();
  } catch (const Failure& e) {
    return e.code;
  } catch (...) {
    return DRIFTD_INTERNAL;
  }
}

}  // namespace driftd::sdk::detail
