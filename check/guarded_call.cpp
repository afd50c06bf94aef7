// SPDX-License-Identifier: Apache-2.0
#include "check/guarded_call.hpp"

namespace driftd::check {

void push_text(void* user, driftd_str text) {
  static_cast<CallTrace*>(user)->pushed.push_back(parse_text(text, "pushed text", 1u << 20));
}

void push_health(void* user, const driftd_health* health) {
  static_cast<CallTrace*>(user)->health.push_back(parse_health(health));
}

void push_verdict(void* user, const driftd_verdict* verdict) {
  static_cast<CallTrace*>(user)->verdicts.push_back(parse_verdict(verdict));
}

void add_exception(CallTrace& trace, const std::string& name) {
  trace.threw = true;
  trace.status = DRIFTD_INTERNAL;
  Host::get().add_violation("threads.no_exception",
                            name +
                                ": an exception crossed the border; expected a status: catch everything in each "
                                "function of the table (the SDK's barrier does)");
}

}  // namespace driftd::check
