// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/backend.hpp"
#include "core/ports/control.hpp"
#include "core/ports/session.hpp"
#include "core/ports/store.hpp"

namespace driftd::engine {

/// Note in the row of a configured backend: uid of the source that is its registrar.
inline const std::string kRegistrarNote = "spoken_by";
/// The registrar's namespace in that source; absent if the source has no namespaces.
inline const std::string kRegistrarPlaceNote = "spoken_in";
/// Note in the row of a discovered backend: uid of the source that discovered it.
inline const std::string kDiscovererNote = "discovered_by";
/// Note in the row of a discovered backend: the namespace of its source in which it was found.
inline const std::string kFoundIn = "found_in";
/// Note of its endpoint, which may be missing in the registration because the source reports it as a resource of its
/// own.
inline const std::string kFoundAt = "found_at";
/// Writes both notes of a discovered backend, so that a restart has them before the next discovery.
void note_found(core::BackendRow& row, const core::BackendSpec& spec);

/// Returns the fields, by the RFC's names, in which the registrations of two backends differ.
std::vector<std::string> changed_fields(const core::BackendRow& before, const core::BackendRow& after);
/// Returns the backend of a row as an event's old_state shows it.
core::BackendSnapshot snapshot_of(const core::BackendRow& row);

/// Returns true if a diagnostic about something unreadable concerns that namespace of its source. Where many may write,
/// the provider names the namespace in `path`.
bool is_about(const core::Diagnostic& d, const std::string& name_space);

/// Returns why a namespace with that name is rejected. Empty if it is valid.
std::string place_fault(const std::string& name_space);

/// A source's report on the registration of another backend: a record or tombstone of kind `registration`.
struct RegistrationReport {
  std::string source;        ///< name of the source
  core::Observation record;  ///< or a tombstone
  std::shared_ptr<const core::KindSchema> schema;
  std::shared_ptr<const std::string> schema_text;  ///< shared, because it may be long and reports are many
  core::Registrar who() const;                     ///< the source, and the namespace that the record names
  /// Bytes that the report needs, without its schema.
  std::size_t bytes() const;
};

/// What became of a report.
struct ReportOutcome {
  std::string fault;     ///< why it was rejected; empty if it was accepted
  bool no_room = false;  ///< only for lack of room: its sender stays the registrar
};

/// Passes reports of one backend to others (ADR 0006). The engine implements it. Core thread only.
class SourceHub {
 public:
  virtual ~SourceHub() = default;
  /// Declarations about this backend were committed.
  virtual void declared(const std::string& backend) = 0;
  /// Returns true if a backend of that name is configured or was discovered.
  virtual bool registered(const std::string& backend) const = 0;
  /// Returns why declarations about a kind of a backend cannot be checked. Empty if they can.
  virtual std::string declaration_error(const std::string& backend, const std::string& kind) const = 0;
  /// Registers and unregisters backends after a discovery of `source`. Returns its coverage line.
  virtual Task<core::Coverage> apply_discovery(std::string source, core::DiscoverOutcome outcome) = 0;

  /// Takes a report on another backend's registration.
  virtual ReportOutcome receive_report(RegistrationReport report) = 0;
  /// A source listed everything that it reports. Its claims that were not renewed since its previous complete list end.
  virtual void listed(const std::string& source) = 0;
  /// Somebody decided who is trusted about this backend. Rejected sources report again.
  virtual void claims_decided(const std::string& backend) = 0;
  /// Returns the configured backends whose registrar is this source.
  virtual std::vector<std::string> reported_by(const std::string& source) const = 0;
  /// Reads the registration of a backend at its registrar. Fails with `not_found` if it has no registrar.
  virtual Task<Result<core::ReadOutcome>> ask_registrar(std::string backend) = 0;
  /// The registrar confirmed that the registration is gone. Another source may become registrar.
  virtual void release_registrar(const std::string& backend) = 0;
  /// Returns why the last report on this backend may no longer be current. Empty if it is.
  virtual std::string staleness_reason(const std::string& backend) const = 0;
};

}  // namespace driftd::engine
