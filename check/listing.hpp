// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/random.hpp"
#include "check/subject.hpp"

namespace driftd::check {

/// Records by identity. If an identity was emitted twice, the last record counts.
using Listing = std::map<Identity, Record>;
Identity identity_of(const Record& record);
Listing listing_of(const CallTrace& trace);
void add(Listing& to, const std::vector<Record>& records, std::size_t first = 0, std::size_t end = std::string::npos);

/// Refreshes and returns the trace. Throws CheckNotMade if the refresh fails or answers `unchanged`; the check
/// refresh.works reports that.
CallTrace list(const Instance& instance, const CallArguments& arguments = {}, const CallFaults& faults = {});

/// Describes the first difference by the agent's rules of equality: volatile attributes and `status` are not compared.
/// Values are left out because they may be secret. Empty if there is no difference.
std::string difference(const Provider& provider, const Record& a, const Record& b);
std::string difference(const Provider& provider, const Listing& a, const Listing& b);

/// Lists a new instance several times, a moment apart, and describes the first difference: the system changes by
/// itself. Empty if it does not change or cannot be listed.
std::string difference_over_time(const Subject& subject);

/// Throws RuleBroken if a COMPLETE mark of `trace` is wrong. Its count must equal the number of records of the call
/// (with those of `before`, if given) and the number that the system has. If the latter disagrees, the system is listed
/// again, since it may have changed meanwhile.
void expect_true_completes(const Instance& instance, const Listing& whole, const CallTrace& trace,
                           const std::string& when, const Listing& before = {});

}  // namespace driftd::check
