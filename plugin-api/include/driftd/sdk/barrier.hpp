// SPDX-License-Identifier: Apache-2.0
// Where exceptions end: nothing thrown by a provider crosses into the host.
#pragma once

#include "driftd/sdk/call.hpp"

namespace driftd::sdk::detail {

/// Runs `f` with the call; what it throws becomes the status and one diagnostic.
template <class F>
driftd_status guarded(driftd_call handle, F f) noexcept {
  Diagnostic d;
  try {
    Call call(handle);
    try {
      f(call);
      return DRIFTD_OK;
    } catch (const Failure& e) {
      d = {e.code, e.kind, {}, {}, e.what(), e.right, e.retry_after_ms};
    } catch (const std::exception& e) {
      d = {DRIFTD_INTERNAL, {}, {}, {}, e.what(), {}, 0};
    } catch (...) {
      d = {DRIFTD_INTERNAL, {}, {}, {}, "unknown exception", {}, 0};
    }
    call.diag(d);
  } catch (...) {
    return DRIFTD_INTERNAL;
  }
  return d.code;
}

/// The barrier of functions that have no call and so cannot send a diagnostic.
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
