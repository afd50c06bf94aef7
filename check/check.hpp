// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace driftd::check {

/// What kind of plugin is checked. Both kinds share the rules of the binary, of versions, memory, threads and secrets.
enum class PluginKind { provider, sink };
const char* entry_symbol(PluginKind kind);  ///< `driftd_provider_v1`, `driftd_sink_v1`

/// A failed `must` makes a plugin unfit for the agent; a failed `should` makes it a worse one.
enum class Level { must, should };

/// What a run checks. All checks of a run get the same subject.
struct Subject {
  PluginKind plugin = PluginKind::provider;
  std::string file;           ///< absolute path of the .so
  std::string settings_json;  ///< as `open` gets them: sensitive values are tokens. Empty if there are none
  std::string no_settings;    ///< why there are none: "needs --settings FILE: `address` is required"
  std::map<std::string, std::string> secrets;  ///< token → planted bytes
  std::uint64_t seed = 0;                      ///< seeds everything random; the report prints it
  std::string answer;         ///< sinks: what the check's receiver answers to each line; empty: nothing
  std::string socket_folder;  ///< sinks: where Unix sockets of the check are made; empty if the settings name none
};

/// Ends a check because the plugin broke the rule. The text says what was expected, what was found and how to fix it.
struct RuleBroken : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Two listings that should be equal differ. This counts as broken unless the system itself changes (see run_check).
struct ListingDiffers : RuleBroken {
  using RuleBroken::RuleBroken;
};
/// Ends a check that cannot be made on this plugin or on this machine. The report shows the reason.
struct CheckNotMade : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Ends a check of something optional that this plugin does not offer, such as an extension. It is reported, and does
/// not lead to exit code 3.
struct CheckNotApplicable : CheckNotMade {
  using CheckNotMade::CheckNotMade;
};

/// One rule. `run` is called in a child process that has one thread and has not loaded the plugin yet. It returns if
/// the rule holds. A crash, an exit, or running longer than `limit` (wall time) counts as broken.
struct Check {
  const char* id;  ///< `group.name`, never renamed
  Level level;
  const char* title;  ///< one line: what is true if the check passes
  std::chrono::seconds limit;
  void (*run)(const Subject&);
};

/// The checks of the binary, for both kinds of plugin.
std::span<const Check> binary_checks();
/// The further groups for providers. Each group has a file of its own.
std::span<const Check> negotiation_checks();
std::span<const Check> memory_checks();
std::span<const Check> threads_checks();
std::span<const Check> deadline_checks();
std::span<const Check> refresh_checks();
std::span<const Check> schema_checks();
std::span<const Check> secrets_checks();
std::span<const Check> chaos_checks();
/// All further groups for sinks; their files are in check/sink.
std::vector<Check> sink_checks();

}  // namespace driftd::check
