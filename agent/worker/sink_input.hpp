// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/sink.h>

#include "ipc/sink_messages.hpp"
#include "worker/active_call.hpp"

namespace driftd::worker {

/// Copies and checks the verdicts of one settle(), on the thread of the call. Leaves out, and counts as a misuse, what
/// is about no event of the batch, about one that is settled, or of an unknown outcome; the others are noted as
/// settled. Details are cut and scrubbed.
std::vector<ipc::Settlement> read_settlements(ActiveCall& call, const driftd_settlement* given, std::uint32_t count,
                                              std::uint32_t stride);

/// A batch as the ABI shows it to a plugin. Borrows the events, which must outlive it.
class BorrowedBatch {
 public:
  explicit BorrowedBatch(const std::vector<core::PluginEvent>& events);
  BorrowedBatch(const BorrowedBatch&) = delete;
  BorrowedBatch& operator=(const BorrowedBatch&) = delete;
  driftd_batch view() const;  ///< valid as long as this object

 private:
  std::vector<std::vector<driftd_kv>> attributes_;  ///< by event
  std::vector<driftd_event> events_;
};

}  // namespace driftd::worker
