// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "check/subject.hpp"

namespace driftd::check {

/// Records by identity; the last of an identity counts.
using Listing = std::map<Identity, Record>;
Identity identity_of(const Record& record);
Listing listing_of(const CallTrace& trace);
void add(Listing& to, const std::vector<Record>& records, std::size_t first = 0, std::size_t end = std::string::npos);

/// A refresh that is OK and not `unchanged`; else CheckNotMade: refresh.works answers for that.
CallTrace list(const Instance& instance, const CallArguments& arguments = {}, const CallFaults& faults = {});

/// The first difference as the agent judges equality (volatile attributes and `status` are not compared), without
/// values, which may be secret; empty: none.
std::string difference(const Provider& provider, const Record& a, const Record& b);
std::string difference(const Provider& provider, const Listing& a, const Listing& b);

/// The first difference between plain lists of a new instance, taken a moment apart: the system changes by itself.
/// Empty: it does not, or cannot be listed.
std::string difference_over_time(const Subject& subject);

/// RuleBroken when a COMPLETE of `trace` is not true: its count is that of the records of the call (of `before` and the
/// call together) and that of the system, which is listed anew when it disagrees: it may have changed meanwhile.
void expect_true_completes(const Instance& instance, const Listing& whole, const CallTrace& trace,
                           const std::string& when, const Listing& before = {});

/// Random numbers of one check, the same for the same seed.
std::mt19937_64 random_of(const Subject& subject, const char* id);
std::size_t below(std::mt19937_64& random, std::size_t end);  ///< 0 to end - 1
/// `count` numbers of 1 to `last`, in order, without repetition: the first and last ones and random ones between.
std::vector<std::uint64_t> spread(std::mt19937_64& random, std::uint64_t last, std::size_t count);
std::string random_bytes(std::mt19937_64& random, std::size_t size);
std::string random_word(std::mt19937_64& random, std::size_t size);  ///< [a-z0-9]

/// Blocks whoever passes until it is opened. Any thread.
class Gate {
 public:
  void pass();                                         ///< blocks until open() was called
  bool reached(std::chrono::milliseconds time_limit);  ///< somebody came to it
  void open();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false, reached_ = false;
};

}  // namespace driftd::check
