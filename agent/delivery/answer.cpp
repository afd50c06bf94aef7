// SPDX-License-Identifier: Apache-2.0
#include "delivery/answer.hpp"

#include <algorithm>
#include <iterator>

namespace driftd::delivery {

bool cut_by_size(const std::vector<core::StoredEvent>& answer) {
  std::size_t bytes = 0;
  for (const auto& event : answer) bytes += event.payload.size();
  return bytes >= core::Outbox::kMaxAnswerBytes;
}

std::vector<std::int64_t> covered_seqs(std::vector<std::int64_t> asked, const std::vector<core::StoredEvent>& answer) {
  if (!cut_by_size(answer)) return asked;
  const auto last = std::find(asked.begin(), asked.end(), answer.back().stamp.seq);
  if (last != asked.end()) asked.erase(std::next(last), asked.end());
  return asked;
}

}  // namespace driftd::delivery
