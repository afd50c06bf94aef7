// SPDX-License-Identifier: Apache-2.0
#include "check/sink/groups.hpp"

namespace driftd::check {

std::vector<Check> sink_checks() {
  std::vector<Check> out;
  for (const auto group :
       {sink::negotiation_checks(), sink::memory_checks(), sink::verdicts_checks(), sink::content_checks(),
        sink::order_checks(), sink::threads_checks(), sink::deadline_checks(), sink::probe_checks(),
        sink::schema_checks(), sink::secrets_checks(), sink::chaos_checks()}) {
    out.insert(out.end(), group.begin(), group.end());
  }
  return out;
}

}  // namespace driftd::check
