// SPDX-License-Identifier: Apache-2.0
// Checks what a worker sends. A plugin may have taken its worker over, so the agent believes nothing that it can check.
// What a worker of ours never sends is `invalid`; the message continues a sentence that begins with "the worker". Texts
// are cut, made printable and scrubbed again.
#pragma once

#include "core/ports/session.hpp"
#include "ipc/messages.hpp"
#include "ipc/text.hpp"
#include "ipc/wire.hpp"

namespace driftd::host {

/// Return `invalid` if a name is too long or not UTF-8, a kind of the backend itself is not declared by describe, or a
/// cursor is longer than kMaxCursor. The body is not looked at.
Status check(const core::Observation& record, const core::ProviderInfo& info);
Status check(const core::Mark& mark, const core::ProviderInfo& info);
/// Make the texts and numbers of what a worker sent fit to be shown; nothing is refused.
void clean(core::Observation& record, const ipc::Scrubber& scrubber);
void clean(core::Diagnostic& diagnostic, const ipc::Scrubber& scrubber);
void clean(core::HealthReport& report, const ipc::Scrubber& scrubber);
void clean(ipc::CallResult& result, const ipc::Scrubber& scrubber);
/// Limits a waiting time to between zero and one day.
std::int64_t clean_wait(std::int64_t ms);

/// Makes pages of the frames of one call: of 512 records or 4 MiB, and one ends after each mark. The records of one
/// frame may end up in two pages. Lives in run_call(). Core thread.
class PageBuilder {
 public:
  struct Bounds {
    std::uint64_t records = 0, bytes = 0;  ///< of the whole call
    std::size_t diagnostics = 0;           ///< more are dropped; the last page has their number
  };
  PageBuilder(std::shared_ptr<const core::ProviderInfo> info, const ipc::Scrubber& scrubber, Bounds bounds)
      : info_(std::move(info)),
        scrubber_(scrubber),
        bounds_(bounds) {}
  /// Appends to `ready` the pages that the frame completes. Returns `invalid` if the frame breaks a rule; the call is
  /// over then.
  Status add(const ipc::Frame& frame, std::vector<core::RecordPage>& ready);
  void cut(std::vector<core::RecordPage>& ready);     ///< ends the present page, if it holds anything
  void finish(std::vector<core::RecordPage>& ready);  ///< call this at the end of the call

 private:
  Status add_records(std::string_view payload, std::vector<core::RecordPage>& ready);
  Status add_record(core::Observation record, std::size_t bytes, std::vector<core::RecordPage>& ready);
  Status add_mark(std::string_view payload, std::vector<core::RecordPage>& ready);
  void make_general_unless_declared(core::Diagnostic& diagnostic) const;
  Status add_diagnostic(std::string_view payload, std::vector<core::RecordPage>& ready);

  const std::shared_ptr<const core::ProviderInfo> info_;
  const ipc::Scrubber& scrubber_;
  const Bounds bounds_;
  core::RecordPage page_;  ///< not yet in `ready`
  std::size_t page_bytes_ = 0;
  std::uint64_t records_ = 0, bytes_ = 0;      ///< of the call so far
  std::size_t diagnostics_ = 0, dropped_ = 0;  ///< all of them, and those beyond the bound
};

}  // namespace driftd::host
