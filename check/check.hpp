// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

namespace driftd::check {

/// A failed `must` makes a provider unfit for the agent; a failed `should` makes it a worse one.
enum class Level { must, should };

/// What is checked, the same for every check of a run.
struct Subject {
  std::string file;           ///< the .so, absolute
  std::string settings_json;  ///< as `open` gets them: sensitive values are tokens. Empty: there are none, because of
  std::string no_settings;    ///< "needs --settings FILE: `address` is required"
  std::map<std::string, std::string> secrets;  ///< token → planted bytes
  std::uint64_t seed = 0;                      ///< of everything random; the report prints it
};

/// Ends a check: the provider broke the rule. The text says what was expected, what was found and how to mend it.
struct RuleBroken : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Two lists that should be the same are not. RuleBroken, unless the system itself changes (run_check).
struct ListingDiffers : RuleBroken {
  using RuleBroken::RuleBroken;
};
/// Ends a check that cannot be made on this provider or here; the reason is reported, never hidden.
struct CheckNotMade : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Ends a check of something optional that this provider does not offer (an extension). Reported; no reason for exit 3.
struct CheckNotApplicable : CheckNotMade {
  using CheckNotMade::CheckNotMade;
};

/// One rule. `run` is called in a process of its own that has not loaded the provider yet and has one thread; it
/// returns when the rule holds. A crash, an exit or `limit` of wall time count as broken.
struct Check {
  const char* id;  ///< `group.name`, never renamed
  Level level;
  const char* title;  ///< what holds when it passes, one line
  std::chrono::seconds limit;
  void (*run)(const Subject&);
};

/// The nine groups, each in a file of its own.
std::span<const Check> binary_checks();
std::span<const Check> negotiation_checks();
std::span<const Check> memory_checks();
std::span<const Check> threads_checks();
std::span<const Check> deadline_checks();
std::span<const Check> refresh_checks();
std::span<const Check> schema_checks();
std::span<const Check> secrets_checks();
std::span<const Check> chaos_checks();

}  // namespace driftd::check
