// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "core/resource.hpp"

namespace driftd::core {

enum class ChangeClass { config, credential, endpoint, health };
enum class Against { baseline, expectation };
enum class Action { automatic, manual, ignore, enforce };  ///< policies `auto`, `manual`, `ignore`, `enforce`
enum class Operation { created, changed, deleted, recreated };
enum class DriftStatus { pending, approved, rejected, ignored, auto_applied, enforced, reverted, superseded, retired };

std::string_view render(ChangeClass cls);
std::string_view render(Against against);
std::string_view render(Action action);  ///< as in the config: `auto` ...
std::string_view render(Operation operation);
std::string_view render(DriftStatus status);  ///< as on the wire: `auto-applied` ...
Result<ChangeClass> parse_class(std::string_view text);
Result<Action> parse_action(std::string_view text);
Result<DriftStatus> parse_drift_status(std::string_view text);
Result<Against> parse_against(std::string_view text);
Result<Operation> parse_operation(std::string_view text);

/// Path of the change that stands for the resource itself in created, deleted and recreated drifts. Its values are the
/// external name, or the id if the system has none.
inline constexpr std::string_view kIdentityPath = "[\"$identity\"]";

/// One attribute that differs. Values are canonical JSON text, absent if the attribute is.
struct Change {
  std::string path;
  ChangeClass cls = ChangeClass::config;
  std::optional<std::string> old_value;
  std::optional<std::string> new_value;
  bool redacted = false;  ///< both values are digests; they leave the agent only as "[REDACTED]"
  friend bool operator==(const Change&, const Change&) = default;
};

/// One person's approval of a drift whose policy asks for several (`approvals: 2`).
struct Approval {
  std::string actor;
  std::string digest;  ///< Drift::digest that the person saw; for any other value the approval counts for nothing
  Nanos at_ns = 0;
  std::optional<Nanos> expires_ns;  ///< until when it waits for the others; absent: until the value moves
  std::int64_t uid = -1;            ///< of the caller, who may have another name the next time; -1: not known
  std::string claimed;              ///< `loginuid:ann`, as in Caller
  friend bool operator==(const Approval&, const Approval&) = default;
};

/// What an approval replaced in the baseline, kept with the ended drift so that it can be undone.
struct FormerBaseline {
  /// Path and canonical JSON, absent where the baseline had nothing. The empty path is the whole body.
  std::vector<std::pair<std::string, std::optional<std::string>>> values;
  std::string external_name;
  std::uint32_t schema_revision = 1;  ///< of the baseline; another revision may name its paths otherwise
  std::string accepted;               ///< digest of what the approval wrote at these paths
  friend bool operator==(const FormerBaseline&, const FormerBaseline&) = default;
};

/// An open or decided difference of one resource (semantics 9–13). Key: backend, resource, class, against, action.
struct Drift {
  std::string id;  ///< `d-` + 16 hex; the same from its opening to its end
  std::string backend_uid;
  ResourceId resource;
  ChangeClass cls = ChangeClass::config;
  Against against = Against::baseline;
  Action action = Action::manual;
  Operation operation = Operation::changed;
  DriftStatus status = DriftStatus::pending;
  std::vector<Change> changes;  ///< sorted by path
  std::string digest;           ///< digest_of() its changes; a decision binds to it
  Nanos opened_ns = 0, updated_ns = 0;
  std::optional<Nanos> stale_since_ns;  ///< since when some of it cannot be read; absent if it can
  std::string actor, reason;            ///< who decided last, and why; or why the drift has its action
  std::optional<Nanos> decided_ns, expires_ns;
  std::string claimed_by;  ///< who has claimed it (notifications); empty if nobody has
  std::optional<Nanos> claim_until_ns;
  int approvals_needed = 1;              ///< how many persons must approve it, as its policy says
  std::vector<Approval> approvals;       ///< those given so far, and after it ended those that approved it
  std::optional<FormerBaseline> former;  ///< of an approved drift: how to undo it
  bool open() const {                    ///< true if the difference still exists
    return status == DriftStatus::pending || status == DriftStatus::rejected || status == DriftStatus::ignored;
  }
};

std::string name_of(const Drift& drift);  ///< `drift d-3f2a of topic/orders`, for messages

/// Returns the hex SHA-256 over the length-prefixed (path, new value) pairs. Against an expectation the old values are
/// included: they are the expected ones, and a decision does not hold for another expectation (ADR 0016).
std::string digest_of(const std::vector<Change>& changes, Against against);

}  // namespace driftd::core
