// SPDX-License-Identifier: Apache-2.0
#include "core/enforce/operation.hpp"

#include <array>
#include <utility>

namespace driftd::core {
namespace {

constexpr std::array<std::string_view, 11> kStates{"planned",         "applying", "applied",  "done",
                                                   "failed",          "refused",  "conflict", "rolled_back",
                                                   "rollback_failed", "unknown",  "undone"};

}  // namespace

std::string_view render(EnforcementState state) { return kStates.at(static_cast<std::size_t>(state)); }

Result<EnforcementState> parse_enforcement_state(std::string_view text) {
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    if (kStates[i] == text) return static_cast<EnforcementState>(i);
  }
  return fail(Code::invalid, "'" + std::string(text) + "' is not a state of an enforcement");
}

std::string_view render(EnforcementCause cause) { return cause == EnforcementCause::policy ? "policy" : "person"; }

Result<EnforcementCause> parse_enforcement_cause(std::string_view text) {
  if (text == "policy") return EnforcementCause::policy;
  if (text == "person") return EnforcementCause::person;
  return fail(Code::invalid, "'" + std::string(text) + "' is not a cause of an enforcement");
}

Enforcement advanced(Enforcement operation, EnforcementState state, std::string text, Nanos now_ns) {
  operation.state = state;
  operation.text = std::move(text);
  operation.updated_ns = now_ns;
  operation.retry_ns.reset();
  if (!is_open(state)) operation.ended_ns = now_ns;
  return operation;
}

}  // namespace driftd::core
