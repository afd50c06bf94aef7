// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/task.hpp"
#include "core/resource.hpp"

namespace driftd::core {
class Session;
}

namespace driftd::engine {

class Ledger;
struct Context;

/// Makes sure that the system at a backend's endpoint is the accepted one before anything that it says is judged
/// (semantics 3, ADR 0009). The runner owns it; each cycle calls check(), and each health probe calls note_probe().
/// Core thread only.
class IdentityCheck {
 public:
  /// The references must outlive it.
  IdentityCheck(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session);

  /// Call it once, when the ledger is loaded.
  void load();
  /// Call it with the cycle mutex locked. Asks which system answers, and opens, updates or closes the drift of
  /// `backend/<name>`. Fails while nothing may be judged; `deadline` is for a refresh that may find out why.
  Task<Status> check(std::chrono::milliseconds deadline);
  /// Notes the identity that a probe found between two cycles. Returns true if the next cycle must check it.
  bool note_probe(const std::string& identity);

  /// Call it when the drift of the identity was decided: `accepted` is true if it was approved.
  void note_decision(bool accepted) { held_ = !accepted; }
  /// Call it when a decision on that drift expired: it must be decided again.
  void note_expiry() { held_ = true; }

  /// True while another system answered and nobody has accepted it.
  bool held() const { return held_; }
  /// True if pages may be judged.
  bool is_accepted() const { return !held_ && answer_ == Answer::accepted; }
  /// True while another cycle would not change that: a person must decide, or the system must say which one it is.
  bool is_waiting() const { return held_ || answer_ == Answer::missing; }

 private:
  /// What is known of the system that answers.
  enum class Answer {
    accepted,  ///< it is the accepted one, or none is accepted yet
    changed,   ///< a probe found another one, and no cycle has checked it since
    missing,   ///< it does not report its identity
  };
  Task<Status> judge(std::string identity);  ///< an identity that the system reported
  /// Handles a system that reports no identity, or does not answer.
  Task<Status> check_missing(Result<core::HealthReport> probed, std::chrono::milliseconds deadline);

  std::shared_ptr<Context> context_;
  Ledger& ledger_;
  core::Session& session_;
  Answer answer_ = Answer::accepted;
  bool held_ = false;  ///< independent of `answer_`: it depends on what was decided
};

}  // namespace driftd::engine
