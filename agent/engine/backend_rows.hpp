// SPDX-License-Identifier: Apache-2.0
// The rows of backends: how the engine finds the one of a backend, and what it says where no configuration does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/backend.hpp"
#include "core/ports/store.hpp"

namespace driftd::engine {

/// Returns all rows of the store: present backends first, then those that were deleted, the latest first. Core thread.
Task<Result<std::vector<core::BackendRow>>> rows_by_age(core::Store& store);

/// Removes from `rows` and returns the row of a backend by its name or former name. A present backend comes before one
/// that was deleted less than a week ago; otherwise the first match in `rows` wins.
std::optional<core::BackendRow> extract_row(std::vector<core::BackendRow>& rows, const core::BackendSpec& spec,
                                            Nanos now);

/// Returns the uid of the source that discovered the backend, nullptr if it comes from the config. It lives as long as
/// the row.
const std::string* discovered_by(const core::BackendRow& row);

/// Notes in the row of a manual backend: its definition, who registered it, and how often it was changed since.
inline const std::string kDefinitionNote = "definition";
inline const std::string kRegisteredByNote = "registered_by";
inline const std::string kRevisionNote = "revision";
/// Note in the row of a manual backend that is being unregistered: the cause of its DELETED event.
inline const std::string kUnregisteredNote = "unregistered";

/// Writes the definition of a manual backend into its row, and counts the revision if it is another one. The row of any
/// other backend loses it.
void note_definition(core::BackendRow& row, const core::BackendSpec& spec);

/// Returns the definition of a manual backend; empty for any other.
std::string definition_of(const core::BackendRow& row);
/// Returns the definition of the present manual backend of this name; empty if `rows` have none.
std::string stored_definition(const std::vector<core::BackendRow>& rows, const std::string& name);

/// Returns what a change of a manual backend must name to be about what its caller saw: another text after each change,
/// and after the backend was deleted and registered again. Empty for other backends.
std::string etag_of(const core::BackendRow& row);

/// Returns where a backend comes from: `file`, `discovered` or `manual`.
std::string source_of(const core::BackendSpec& spec);

/// Returns the cause of a backend's registration events: `configuration`, `discovered by cluster`, `registered by ops`.
std::string registration_cause(const core::BackendSpec& spec);

/// Reads labels, patterns and endpoint of a backend that only its row describes into `spec`. `registration` is JSON;
/// what it lacks stays as it was.
void restore_from_registration(const std::string& registration, core::BackendSpec& spec);

}  // namespace driftd::engine
