// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "driftd/sdk/extensions.hpp"

namespace driftd::sdk {

/// One opened backend. Functions other than close may run at once, up to the declared concurrency; wake at any time.
class Instance {
 public:
  virtual ~Instance() = default;
  virtual RefreshResult refresh(Call& call, const Refresh& request) = 0;
  /// Emits each identity; for one that does not exist calls not_found(call, id).
  virtual void read(Call& call, std::span<const Identity> ids) = 0;
  virtual Health health(Call& call) = 0;
  virtual void wake() {}
  /// Demotes changes that the host found; pure. Only called when Plugin::has_diff (and describe says "diff": true).
  virtual std::vector<Verdict> diff(const Identity& /*id*/, std::span<const Change> /*changes*/) { return {}; }
  /// Blocks until call.cancelled(). Only called when Plugin::has_watch.
  virtual void watch(Call&, const std::string& /*cursor*/) {}
  /// Pushes each backend that this instance knows of. Only called when Plugin::has_discover.
  virtual Discovery discover(Call&, const Discoverer& /*to*/) { return {}; }
  /// Puts known values back, or tries it dry; a Failure with DRIFTD_CONFLICT or DRIFTD_NOT_FOUND when it is not as it
  /// was. Never two at once. Only called when Plugin::has_apply.
  virtual Applied apply(Call&, const Apply& /*request*/) { throw Failure(DRIFTD_UNSUPPORTED, "cannot apply"); }

 protected:
  static void not_found(Call& call, const Identity& id) {
    call.diag({DRIFTD_NOT_FOUND, id.kind, id.id, {}, "gone", {}, 0, id.backend});
  }
};

/// A plugin as described to the host; static for the life of the process. An extension is offered when its member is set
/// here and `describe` lists it; one without the other does not load.
struct Plugin {
  std::string describe;                        ///< JSON, see driftd_provider_table.describe
  std::map<std::string, std::string> schemas;  ///< "settings" and one driftd-schema/1 document per kind
  bool has_watch = false;
  std::unique_ptr<Instance> (*open)(Call& call, std::string_view backend, std::string_view settings) = nullptr;
  bool has_discover = false, has_apply = false, has_diff = false;
  /// The body of `kind` as revision `from` stored it, in today's form; pure. A Failure with DRIFTD_UNSUPPORTED for a
  /// revision that is unknown. Null: no driftd.upgrade.
  std::string (*upgrade)(std::string_view kind, std::uint32_t from, std::string_view body) = nullptr;
};

}  // namespace driftd::sdk
