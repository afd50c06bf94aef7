// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stop_token>

#include "controller/change.hpp"
#include "controller/work_queue.hpp"

namespace driftd::controller {

/// What one attempt may use. A reconciler that can take long looks at `stop`, or gives it to what it waits for.
struct Context {
  int attempt = 1;                        ///< 1 to max_retry_attempts
  Time deadline{};                        ///< afterwards the attempt has failed, whatever it returns
  std::stop_token stop;                   ///< requested at the deadline, and when the controller stops
  std::optional<ResourceMeta> last_seen;  ///< finalize() only: the resource when it was last observed
};

/// What a controller does for its kind. It is called for a key, not for a change: it reads what is there now and brings
/// the world to it, so that any number of changes is one call and a call too many does nothing. Never twice at once for
/// one key; for several keys at once if there is more than one worker, or if a call is overdue. An exception is an
/// attempt that did not succeed.
class Reconciler {
 public:
  virtual ~Reconciler() = default;
  /// The resource may be gone: then there is nothing to do, which is a Success.
  virtual Outcome reconcile(const Key& key, Context& context) = 0;
  /// The resource is being deleted, or is gone. Removes what belongs to the key, and its finalizer if it has one.
  /// Success means that nothing is left; anything else is tried again as a reconcile is, RequeueAfter too.
  virtual Outcome finalize(const Key& key, Context& context) = 0;
};

}  // namespace driftd::controller
