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

/// Note in the row of a backend of the config: uid of the source that speaks for it.
inline const std::string kRegistrarNote = "spoken_by";
/// And where in it; absent: it has no such places.
inline const std::string kRegistrarPlaceNote = "spoken_in";
/// Note in the row of a discovered backend: where in its source it was found.
inline const std::string kFoundIn = "found_in";
/// And its endpoint, which its source may say field by field only.
inline const std::string kFoundAt = "found_at";
/// Writes both: a restart knows them before the next discovery.
void note_found(core::BackendRow& row, const core::BackendSpec& spec);

/// Paths in which two registrations (canonical JSON) differ.
std::vector<std::string> changed_fields(const std::string& before, const std::string& after);

/// Whether what cannot be read concerns that place of its source: a provider names it in the `path` of what it says of
/// registrations, where many write in it.
bool is_about(const core::Diagnostic& d, const std::string& name_space);

/// Why nothing is defined in a place of that name; empty: it may be.
std::string place_fault(const std::string& name_space);

/// A source's report on the registration of another backend: a record or tombstone of kind `registration`.
struct RegistrationReport {
  std::string source;  ///< its name
  core::Observation record;
  std::shared_ptr<const core::KindSchema> schema;
  std::shared_ptr<const std::string> schema_text;  ///< shared: it may be long, and the words many
  core::Registrar who() const;
  /// Bytes that it takes, without its schema.
  std::size_t bytes() const;
};

/// What became of a report.
struct ReportOutcome {
  std::string fault;     ///< why it does not count; empty: it does
  bool no_room = false;  ///< it would count: its speaker goes on speaking of that backend
};

/// What one backend says to the others, and asks of them (ADR 0006). Core thread only; the engine is it.
class SourceHub {
 public:
  virtual ~SourceHub() = default;
  /// What sources declare of this backend was committed anew.
  virtual void declared(const std::string& backend) = 0;
  /// A backend of that name is configured or was discovered.
  virtual bool registered(const std::string& backend) const = 0;
  /// Why nothing of a backend's kind can be held against a declaration; empty: it can.
  virtual std::string declaration_error(const std::string& backend, const std::string& kind) const = 0;
  /// What a source discovered: backends come and go in the registry. Returns its line of coverage.
  virtual Task<core::Coverage> apply_discovery(std::string source, core::DiscoverOutcome outcome) = 0;

  /// A report on another backend's registration.
  virtual ReportOutcome receive_report(RegistrationReport report) = 0;
  /// This source listed all that it says of others: whom it claimed before, and not since the last time, it claims no
  /// more.
  virtual void listed(const std::string& source) = 0;
  /// Somebody decided whom this backend trusts: those who were turned away may speak again.
  virtual void claims_decided(const std::string& backend) = 0;
  /// Backends of the config that this source speaks for.
  virtual std::vector<std::string> reported_by(const std::string& source) const = 0;
  /// Asks the source that speaks for this backend whether it is still defined. `not_found`: nobody speaks for it.
  virtual Task<Result<core::ReadOutcome>> ask_registrar(std::string backend) = 0;
  /// Its registration is gone, as its speaker confirmed: another source may speak.
  virtual void release_registrar(const std::string& backend) = 0;
  /// Why what was said of this backend may not hold any more; empty: it does.
  virtual std::string staleness_reason(const std::string& backend) const = 0;
};

}  // namespace driftd::engine
