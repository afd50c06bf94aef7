// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/backend.hpp"
#include "core/ports/control.hpp"
#include "core/resource.hpp"
#include "engine/extras.hpp"
#include "engine/sources/claims.hpp"

namespace driftd::core {
struct RecordPage;
}

namespace driftd::engine {

class Ledger;
class RegistrationSession;
struct Context;
struct RegistrationReport;

/// The registration of one backend: what sources report about it, which of them is its registrar, and whom it trusts.
/// Anybody who may write a label can write what a source reads, so only those are trusted that the configuration or a
/// person named (ADR 0015). The runner owns it. What it writes to the store needs the runner's cycle mutex. Core thread
/// only.
class BackendRegistration {
 public:
  /// The references must outlive it.
  BackendRegistration(std::shared_ptr<Context> context, Ledger& ledger, RegistrationSession& session);

  /// Call it once, when the ledger is loaded.
  Task<Status> load();

  /// True if the configuration names this registrar, or if it discovered the backend.
  bool trusts(const core::Registrar& who) const;
  Claims& claims() { return claims_; }
  /// The namespace of its source in which a discovered backend was first found. Empty if the source has no namespaces,
  /// or if none was noted.
  const std::string& found_in() const { return found_in_; }
  void set_found_in(const std::string& name_space);
  /// When a source last reported on this backend; {} if none did in this process.
  Moment::Mono reported_at() const { return reported_at_; }

  struct Receipt {
    bool new_kind = false;  ///< a full cycle must list the kind `registration`, which makes its baseline
    bool first = false;     ///< no other report waits: the caller must have this one judged
  };
  /// Takes a report; it replaces one that still waits.
  Receipt receive(RegistrationReport report, const std::string& registrar_uid);
  /// Returns the newest report that was received, as a page to judge. Call it once for each Receipt::first.
  core::RecordPage take_report();
  /// Returns true if the kind `registration` can be judged now.
  bool can_judge() const;

  /// Call it with the cycle mutex locked. Stores the registrar in the row, so that after a restart it does not depend
  /// on who reports first. Releases a registrar whose retraction was confirmed.
  Task<Status> persist_registrar();
  /// Call it with the cycle mutex locked. Brings the drift of `claim/<backend>` in line with claims(). Writes only if
  /// they changed or could not be written before.
  Task<Status> write_claim_drift();
  /// Call it with the cycle mutex locked. Replaces the backend's spec, with an UPDATED event if its registration
  /// changed; both and `audit` are one commit. After an error the former spec stays.
  Task<Status> update(core::BackendSpec spec, std::vector<core::AuditEntry> audit = {});

  /// Corrects the coverage lines of the registration for a view: its last report may no longer be current, or an
  /// earlier process knew it and its source has not reported on it since.
  void describe(std::vector<core::Coverage>& coverage) const;

 private:
  Task<Status> load_claims();
  void add_unreported(std::vector<core::Coverage>& coverage) const;

  std::shared_ptr<Context> context_;
  Ledger& ledger_;
  RegistrationSession& session_;
  std::optional<core::Observation> pending_report_;  ///< received, but not judged yet
  std::string registrar_uid_, registrar_place_;      ///< uid of the last report's source, and the namespace in it
  std::string found_in_;
  Moment::Mono reported_at_{};
  Claims claims_;
};

}  // namespace driftd::engine
