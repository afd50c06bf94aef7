// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/drift.hpp"
#include "core/resource.hpp"

namespace driftd::core {

/// An extension of the ABI that a plugin offers and this agent uses: `driftd.watch`, revision 1.
struct Extension {
  std::string id;
  std::uint32_t revision = 0;
  friend auto operator<=>(const Extension&, const Extension&) = default;
};
std::string render(const Extension& extension);  ///< `driftd.watch/1`

/// A backend that a provider knows of (driftd_discovered).
struct Discovered {
  std::string name, type;
  bool external = false;  ///< it runs outside of the system that knows of it
  std::string version, config = "{}", origin, revision;
  std::vector<std::string> endpoints, capabilities;
  std::map<std::string, std::string> credentials;  ///< setting path → reference, never a value
  std::map<std::string, std::string> labels, metadata;
  Nanos observed_ns = 0;
};

/// The outcome of a discovery. A missing backend may be treated as gone only if the discovery is complete.
struct DiscoverOutcome {
  std::vector<Discovered> backends;
  bool complete = false;
  std::chrono::milliseconds next{0};  ///< when to call again; 0: the host chooses
  std::vector<Diagnostic> diagnostics;
};

/// Known values to put back into a resource that exists (driftd_apply_args).
struct ApplyRequest {
  ResourceId id;
  std::string expected_version, idempotency_key;
  std::vector<Change> changes;  ///< old: the value found; new: the value to put back. Never redacted values
  bool dry_run = true;
};

/// What came of an apply (driftd_applied).
struct ApplyOutcome {
  enum class Result { success = 1, failed, requeue, requeue_after };
  Result result = Result::failed;
  bool changed = false;  ///< true if this call changed the system
  std::chrono::milliseconds requeue_after{0};
  std::string version, text;
  std::vector<std::string> commands;           ///< exact commands that ran (dry run: would run), in order; no secret
  std::vector<std::string> undo;               ///< commands that take the change back, in order
  std::vector<std::string> left;               ///< attribute paths that a failed call could not take back
  std::map<std::string, std::string> details;  ///< what else the provider reports for the audit log
};

}  // namespace driftd::core
