// SPDX-License-Identifier: Apache-2.0
// The two things that a provider in C++ writes: its Instance, and the Plugin that describes it.
#pragma once

#include <memory>
#include <span>

#include "driftd/sdk/extensions.hpp"

namespace driftd::sdk {

/// One opened backend; a provider derives from it. Plugin::open makes it, the host owns it, and it is deleted when the
/// host closes it, with no call in progress. refresh, read and discover may run at once, up to the declared
/// concurrency, and watch, health and diff beside them; wake at any time. Every function may throw Failure, which
/// becomes the status and the diagnostic of its call; any other exception becomes DRIFTD_INTERNAL.
class Instance {
 public:
  virtual ~Instance() = default;
  /// Emits every resource of the scope, in pages that end with Call::checkpoint, and Call::complete for each kind that
  /// was listed whole. Throws CURSOR_EXPIRED if the cursor is too old; the host then refreshes without one.
  virtual RefreshResult refresh(Call& call, const Refresh& request) = 0;
  /// Emits each identity; for one that does not exist calls not_found(call, id), only if the system answered so. Throws
  /// if an identity could be neither read nor ruled out.
  virtual void read(Call& call, std::span<const Identity> ids) = 0;
  /// Answers within 1 s, also while a refresh is blocked. A Failure with UNAVAILABLE is reported as DOWN.
  virtual Health health(Call& call) = 0;
  /// Makes blocked calls look at Call::cancelled. Returns at once, without I/O; from any thread.
  virtual void wake() {}
  /// Demotes changes that the host found; pure. Only called when Plugin::has_diff (and describe says "diff": true).
  virtual std::vector<Verdict> diff(const Identity& /*id*/, std::span<const Change> /*changes*/) { return {}; }
  /// Blocks until call.cancelled(). Emits what changes, each group ended by Call::bookmark. `cursor` is of the last
  /// bookmark or checkpoint that was stored; empty: from now. Only called when Plugin::has_watch.
  virtual void watch(Call&, const std::string& /*cursor*/) {}
  /// Pushes each backend that this instance knows of. Only called when Plugin::has_discover.
  virtual Discovery discover(Call&, const Discoverer& /*to*/) { return {}; }
  /// Puts known values back, or tries it dry; a Failure with DRIFTD_CONFLICT or DRIFTD_NOT_FOUND when it is not as it
  /// was. Never two at once. Only called when Plugin::has_apply.
  virtual Applied apply(Call&, const Apply& /*request*/) { throw Failure(DRIFTD_UNSUPPORTED, "cannot apply"); }

 protected:
  /// Reports that the system has no such resource. DRIFTD_NOT_FOUND is the only code that can become a deletion.
  static void not_found(Call& call, const Identity& id) {
    call.diag({DRIFTD_NOT_FOUND, id.kind, id.id, {}, "gone", {}, 0, id.backend});
  }
};

/// A plugin as described to the host; static for the life of the process. An extension is offered when its member is
/// set here and `describe` lists it; one without the other does not load.
struct Plugin {
  std::string describe;                        ///< JSON, see driftd_provider_table.describe; the same each time
  std::map<std::string, std::string> schemas;  ///< "settings" and one driftd-schema/1 document per kind
  bool has_watch = false;
  /// Makes the instance of `backend` out of `settings` (JSON; sensitive values are tokens for Call::secret). It need
  /// not connect. Throws Failure; null counts as DRIFTD_INTERNAL.
  std::unique_ptr<Instance> (*open)(Call& call, std::string_view backend, std::string_view settings) = nullptr;
  bool has_discover = false, has_apply = false, has_diff = false;
  /// The body of `kind` as revision `from` stored it, in today's form; pure. A Failure with DRIFTD_UNSUPPORTED for a
  /// revision that is unknown. Null: no driftd.upgrade.
  std::string (*upgrade)(std::string_view kind, std::uint32_t from, std::string_view body) = nullptr;
};

}  // namespace driftd::sdk
