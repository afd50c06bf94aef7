// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/ledger.hpp"

namespace driftd::engine {

/// What update_index() gets beside the row.
struct Ledger::Update {
  std::uint32_t run = 0;
  bool unknown = false;
  std::uint64_t asked = 0;                  ///< in Index::Tick
  const core::Observation* seen = nullptr;  ///< the record that was judged; nullptr if the row has another cause
};

/// One page on its way through Ledger::apply(), with the steps that it takes: seal once, then load → ask the provider →
/// judge → commit. Each step fills in its part from those before it. After a conflict the page starts again with
/// load(), so none of these steps changes the input. Lives for one apply(), on the core thread; only the ledger's own
/// files use it.
class Ledger::Page {
 public:
  Page(Ledger& ledger, std::vector<ResourceReading> readings, CommitExtras extras);

  /// Seals the bodies (semantics 19) in place, on the diff pool: with slow digests each new one takes 50 ms.
  Task<Status> seal();
  Task<Status> load();
  /// Asks the provider to convert old baselines, and for its own verdict on changes. With no session, asks nothing.
  Task<Status> ask_provider(core::Session* session);
  Task<Status> judge(bool applied_state);
  /// Fails with `conflict` if a resource changed since it was loaded.
  Task<Result<ApplyResult>> commit(std::uint32_t run);

 private:
  bool is_outdated(const ResourceReading& reading) const;
  /// If a record has an older version than its row, the backend was restored: no stored version is trusted from then
  /// on, of this page neither.
  void note_restore();
  void update_version(const ResourceReading& reading, core::StoredResource& row) const;
  /// Converts baselines of older schema revisions where the provider can. If it fails, the reading becomes unknown.
  Task<Status> ask_upgrades(core::Session& session);
  Task<Status> ask_demotions(core::Session& session);
  Task<Result<std::vector<core::JudgeContext>>> contexts(bool applied_state) const;
  /// Adds what sources declare of the resources to their contexts.
  Task<Status> add_declared(std::vector<core::JudgeContext>& contexts) const;
  void note_enforced();
  ApplyResult summary() const;

  Ledger& ledger_;
  // The input. All vectors have one entry for each reading, in the same order.
  std::vector<ResourceReading> readings_;
  std::vector<core::ResourceId> ids_;
  std::vector<bool> outdated_;  ///< a newer reading of the resource is applied already: this one is dropped
  CommitExtras extras_;
  std::vector<core::Enforcement> given_enforcements_;  ///< of the caller; a conflict starts with them again
  std::size_t given_audit_;                            ///< the same for audit lines
  std::vector<core::StoredResource> stored_;           ///< load()
  std::vector<ResourceReading> answered_;  ///< ask_provider(): the readings with what it answered about them
  std::vector<JudgedResource> judged_;     ///< judge(), which moves `stored_` and `answered_` there
};

}  // namespace driftd::engine
