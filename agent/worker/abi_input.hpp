// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipc/limits.hpp"
#include "worker/active_call.hpp"

namespace driftd::worker {

/// Text of the ABI; a null pointer is empty whatever its length.
inline std::string_view view(driftd_str s) {
  return s.data == nullptr ? std::string_view{} : std::string_view(s.data, static_cast<std::size_t>(s.len));
}
/// Borrowed: good while `text` is.
inline driftd_str str(const std::string& text) { return {text.data(), text.size()}; }
/// The same for a list of changes.
std::vector<driftd_change> borrowed(const std::vector<ipc::DemoteChange>& changes);
/// Reads a struct that may be older (shorter) than ours: what is missing is zero.
template <class T>
T adopt(const void* given) {
  T out{};
  std::uint32_t size = 0;
  __builtin_memcpy(&size, given, sizeof size);
  __builtin_memcpy(static_cast<void*>(&out), given, size < sizeof out ? size : sizeof out);
  return out;
}

/// What became of the records of one emit.
struct EmittedRecords {
  std::vector<core::Observation> records;  ///< as many as were given
  std::vector<core::Diagnostic> faults;    ///< of those that could not be taken as they are
};
/// Copies, checks and redacts records. One of a known kind whose id or body breaks a limit (too long, nested too deep,
/// not UTF-8, a duplicate key) is taken with all of it unread, so that it costs itself only: it is neither gone nor
/// new, and the count of its kind fits. `invalid` names record and fault where not even the kind is known; then none is
/// taken.
Result<EmittedRecords> read_records(LoadedInstance& instance, const driftd_record* records, std::uint32_t count,
                                    std::uint32_t stride);
Result<core::Mark> read_mark(const LoadedInstance& instance, const driftd_mark& mark);
core::Diagnostic read_diagnostic(LoadedInstance& instance, const driftd_diagnostic& diagnostic);
core::HealthReport read_health(LoadedInstance& instance, const driftd_health& health);
struct BackendInput {
  core::Discovered backend;
  std::string fault;  ///< of its metadata, of which nothing is kept but where it is defined; empty: taken as it is
};
/// `invalid` names the member that breaks its rule.
Result<BackendInput> read_discovered(const LoadedInstance& instance, const driftd_discovered& backend);
/// Where it says that it is defined, whatever else is wrong with it; empty: it does not.
std::string read_defined_in(const LoadedInstance& instance, const driftd_discovered& backend);

}  // namespace driftd::worker
