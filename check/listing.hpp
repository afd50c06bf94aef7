// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

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

/// Returns the random generator of one check. The same seed gives the same numbers.
std::mt19937_64 random_of(const Subject& subject, const char* id);
std::size_t below(std::mt19937_64& random, std::size_t end);  ///< a number from 0 to end - 1
/// Returns `count` different numbers from 1 to `last` in ascending order: the first and last ones, and random ones
/// between them.
std::vector<std::uint64_t> spread(std::mt19937_64& random, std::uint64_t last, std::size_t count);
std::string random_bytes(std::mt19937_64& random, std::size_t size);
std::string random_word(std::mt19937_64& random, std::size_t size);  ///< [a-z0-9]

/// Blocks every thread in pass() until open() is called. [any thread]
class Gate {
 public:
  void pass();                                         ///< blocks until open() was called
  bool reached(std::chrono::milliseconds time_limit);  ///< waits until a thread has called pass(); false on timeout
  void open();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false, reached_ = false;
};

}  // namespace driftd::check
