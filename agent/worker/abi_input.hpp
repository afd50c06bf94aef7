// SPDX-License-Identifier: Apache-2.0
// From what a plugin passes through the ABI to our own values: copied, bounded, checked as UTF-8, and without secrets.
// All of it runs on the thread of the plugin's call.
#pragma once

#include "ipc/limits.hpp"
#include "worker/active_call.hpp"

namespace driftd::worker {

/// Returns a text of the ABI; empty if its pointer is null, whatever its length.
inline std::string_view view(driftd_str s) {
  return s.data == nullptr ? std::string_view{} : std::string_view(s.data, static_cast<std::size_t>(s.len));
}
/// Borrows: valid as long as `text` is.
inline driftd_str str(const std::string& text) { return {text.data(), text.size()}; }
/// Borrows the texts of a list of changes.
std::vector<driftd_change> borrowed(const std::vector<ipc::DemoteChange>& changes);
/// Copies a struct that may be older and therefore shorter than ours; the missing members are zero.
template <class T>
T adopt(const void* given) {
  T out{};
  std::uint32_t size = 0;
  __builtin_memcpy(&size, given, sizeof size);
  __builtin_memcpy(static_cast<void*>(&out), given, size < sizeof out ? size : sizeof out);
  return out;
}

/// The records of one emit after they were read.
struct EmittedRecords {
  std::vector<core::Observation> records;  ///< as many as were given
  std::vector<core::Diagnostic> faults;    ///< one for each record that breaks a rule
};
/// Copies, checks and redacts records. If id or body of a record breaks a limit (too long, nested too deep, not UTF-8,
/// a duplicate key), the record is kept with its whole body unread. So only this record is affected: it counts neither
/// as gone nor as new, and the count of its kind is right. Returns `invalid` with record and fault if even the kind is
/// unknown; no record is taken then. `refresh`: records that were sent before may become their digests (SentRecords).
Result<EmittedRecords> read_records(LoadedInstance& instance, const driftd_record* records, std::uint32_t count,
                                    std::uint32_t stride, bool refresh);
/// Returns `invalid` if type, kind, cursor or backend breaks a rule.
Result<core::Mark> read_mark(const LoadedInstance& instance, const driftd_mark& mark);
/// Copies a diagnostic, with its texts cut and scrubbed. Never fails: it may be all that is known about a failure. A
/// text that breaks a rule counts as a misuse.
core::Diagnostic read_diagnostic(LoadedInstance& instance, const driftd_diagnostic& diagnostic);
/// The same for a health report; a state that this host does not know becomes `unknown`.
core::HealthReport read_health(LoadedInstance& instance, const driftd_health& health);
/// A discovered backend after it was read.
struct BackendInput {
  core::Discovered backend;  ///< its endpoints without credentials
  std::string fault;  ///< what is wrong with its metadata, of which only `defined_in` is kept; empty if nothing is
};
/// Returns `invalid` with the member that breaks its rule.
Result<BackendInput> read_discovered(const LoadedInstance& instance, const driftd_discovered& backend);
/// Returns the place where the backend says that it is defined, even if the rest is invalid; empty if it does not say.
std::string read_defined_in(const LoadedInstance& instance, const driftd_discovered& backend);

}  // namespace driftd::worker
