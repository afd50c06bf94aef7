// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "core/ports/store.hpp"

namespace driftd::test {

/// A store that takes a number of commits and then none: what it holds afterwards is what a kill behind the last one
/// leaves. Everything else is passed on.
class CutStore final : public core::Store {
 public:
  /// `inner` must outlive it. It takes everything until `commits_left` is set.
  explicit CutStore(core::Store& inner) : inner_(inner) {}
  int commits_left = -1;                       ///< -1: no limit. Core thread, as is what follows
  std::function<Task<void>()> before_commit;   ///< awaited before each commit; may be empty
  std::function<Task<void>()> after_backends;  ///< awaited once, after rows were read; then empty
  std::set<std::string> unreadable;            ///< uids of backends whose index cannot be read; `*`: of all

  Task<Result<core::CommitResult>> commit(core::PageCommit page) override {
    if (before_commit) co_await before_commit();
    if (commits_left == 0) co_return fail(Code::unavailable, "the process is gone");
    if (commits_left > 0) --commits_left;
    auto done = co_await inner_.commit(std::move(page));
    co_return done;
  }
  Task<Result<std::vector<core::BackendRow>>> backends() override {
    auto rows = co_await inner_.backends();
    if (const auto then = std::exchange(after_backends, {})) co_await then();
    co_return rows;
  }
  Task<Result<std::vector<core::IndexEntry>>> index(std::string uid) override {
    if (unreadable.contains(uid) || unreadable.contains("*"))
      co_return fail(Code::unavailable, "the index of " + uid + " cannot be read");
    auto entries = co_await inner_.index(std::move(uid));
    co_return entries;
  }
  Task<Result<std::vector<core::StoredResource>>> load(std::string uid, std::vector<core::ResourceId> ids) override {
    return inner_.load(std::move(uid), std::move(ids));
  }
  Task<Result<std::vector<std::pair<std::string, std::uint32_t>>>> schema_revisions(std::string uid) override {
    return inner_.schema_revisions(std::move(uid));
  }
  Task<Result<std::vector<core::ResourceId>>> forget_gone(std::string uid, std::int64_t limit) override {
    return inner_.forget_gone(std::move(uid), limit);
  }
  Task<Result<bool>> forget_kind(std::string uid, std::string kind, std::int64_t limit) override {
    return inner_.forget_kind(std::move(uid), std::move(kind), limit);
  }
  Task<Result<std::vector<core::DeclaredEntry>>> declared_by(std::string uid) override {
    return inner_.declared_by(std::move(uid));
  }
  Task<Result<std::vector<core::DeclaredEntry>>> declared_of(std::string target) override {
    return inner_.declared_of(std::move(target));
  }
  Task<Result<std::vector<core::Declaration>>> declarations(std::string target,
                                                            std::vector<core::ResourceId> ids) override {
    return inner_.declarations(std::move(target), std::move(ids));
  }
  Task<Result<Owner>> owner_of(std::string drift_id) override { return inner_.owner_of(std::move(drift_id)); }
  Task<Result<EndedDrift>> ended_drift(std::string drift_id) override {
    return inner_.ended_drift(std::move(drift_id));
  }
  Task<Result<core::EnforcementRecord>> enforcement_record(std::string uid, Nanos since) override {
    return inner_.enforcement_record(std::move(uid), since);
  }
  Task<Status> audit(core::AuditEntry entry) override { return inner_.audit(std::move(entry)); }

 private:
  core::Store& inner_;
};

}  // namespace driftd::test
