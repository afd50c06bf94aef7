// SPDX-License-Identifier: Apache-2.0
// Renders and parses the enums of the domain.
#include <array>
#include <utility>

#include "core/drift.hpp"
#include "core/event/event.hpp"
#include "core/extension.hpp"
#include "core/ports/control.hpp"
#include "core/resource.hpp"

namespace driftd::core {
namespace {

template <class E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

template <class E, std::size_t N>
std::string_view name_of(const Names<E, N>& names, E value) {
  for (const auto& [key, name] : names) {
    if (key == value) return name;
  }
  return "?";
}

template <class E, std::size_t N>
Result<E> value_of(const Names<E, N>& names, std::string_view text, std::string_view what) {
  std::string known;
  for (const auto& [key, name] : names) {
    if (name == text) return key;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return fail(Code::invalid, "unknown " + std::string(what) + " '" + std::string(text) + "'; expected one of " + known);
}

constexpr Names<ChangeClass, 4> kClasses = {{{ChangeClass::config, "config"},
                                             {ChangeClass::credential, "credential"},
                                             {ChangeClass::endpoint, "endpoint"},
                                             {ChangeClass::health, "health"}}};
constexpr Names<Against, 2> kAgainst = {{{Against::baseline, "baseline"}, {Against::expectation, "expectation"}}};
constexpr Names<Action, 4> kActions = {{{Action::automatic, "auto"},
                                        {Action::manual, "manual"},
                                        {Action::ignore, "ignore"},
                                        {Action::enforce, "enforce"}}};
constexpr Names<Operation, 4> kOperations = {{{Operation::created, "created"},
                                              {Operation::changed, "changed"},
                                              {Operation::deleted, "deleted"},
                                              {Operation::recreated, "recreated"}}};
constexpr Names<DriftStatus, 9> kStatuses = {{{DriftStatus::pending, "pending"},
                                              {DriftStatus::approved, "approved"},
                                              {DriftStatus::rejected, "rejected"},
                                              {DriftStatus::ignored, "ignored"},
                                              {DriftStatus::auto_applied, "auto-applied"},
                                              {DriftStatus::enforced, "enforced"},
                                              {DriftStatus::reverted, "reverted"},
                                              {DriftStatus::superseded, "superseded"},
                                              {DriftStatus::retired, "retired"}}};
constexpr Names<HealthReport::State, 4> kHealth = {{{HealthReport::State::unknown, "unknown"},
                                                    {HealthReport::State::up, "up"},
                                                    {HealthReport::State::degraded, "degraded"},
                                                    {HealthReport::State::down, "down"}}};
constexpr Names<ChangeType, 8> kTypes = {{{ChangeType::unspecified, "UNSPECIFIED"},
                                          {ChangeType::created, "CREATED"},
                                          {ChangeType::updated, "UPDATED"},
                                          {ChangeType::deleted, "DELETED"},
                                          {ChangeType::credential_rotated, "CREDENTIAL_ROTATED"},
                                          {ChangeType::health_changed, "HEALTH_CHANGED"},
                                          {ChangeType::endpoint_changed, "ENDPOINT_CHANGED"},
                                          {ChangeType::config_drift_detected, "CONFIG_DRIFT_DETECTED"}}};

}  // namespace

std::string_view render(ChangeClass cls) { return name_of(kClasses, cls); }
std::string_view render(Against against) { return name_of(kAgainst, against); }
std::string_view render(Action action) { return name_of(kActions, action); }
std::string_view render(Operation operation) { return name_of(kOperations, operation); }
std::string_view render(DriftStatus status) { return name_of(kStatuses, status); }
std::string_view render(HealthReport::State state) { return name_of(kHealth, state); }
std::string_view render(ChangeType type) { return name_of(kTypes, type); }

Result<ChangeClass> parse_class(std::string_view text) { return value_of(kClasses, text, "class"); }
Result<Action> parse_action(std::string_view text) { return value_of(kActions, text, "policy"); }
Result<DriftStatus> parse_drift_status(std::string_view text) { return value_of(kStatuses, text, "drift status"); }
Result<Against> parse_against(std::string_view text) { return value_of(kAgainst, text, "'against'"); }
Result<Operation> parse_operation(std::string_view text) { return value_of(kOperations, text, "operation"); }

std::string render(const ResourceId& id) { return id.kind + "/" + id.id; }
std::string render(const Extension& extension) { return extension.id + "/" + std::to_string(extension.revision); }

std::string_view coverage_state(const Coverage& coverage) {
  if (coverage.complete) return coverage.reasons.empty() && coverage.unknown == 0 ? "seen" : "partial";
  for (const auto& reason : coverage.reasons) {
    if (reason.starts_with("denied") || reason.starts_with("unauthenticated")) return "denied";
    if (reason.starts_with("unsupported")) return "unsupported";
  }
  return coverage.established ? "stale" : "unseen";
}

}  // namespace driftd::core
