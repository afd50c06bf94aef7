// SPDX-License-Identifier: Apache-2.0
// The agent's judge over records that the provider sent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/value/schema.hpp"
#include "driftd/sdk/extensions.hpp"

namespace driftd::test {

/// What the judge says of one record, if another one of the same resource is its baseline.
struct Verdict {
  std::vector<std::string> changes;  ///< paths that are reported
  std::vector<std::string> unknown;  ///< paths that are neither equal nor different, with the reason
  bool silent() const { return changes.empty() && unknown.empty(); }
};

/// Accepts `before` as the baseline and judges `after` under the packaged schema, with no rules. The two records count
/// as the same object, even if one was deleted and the other created in its place.
Verdict judged(const std::shared_ptr<const core::KindSchema>& schema, const sdk::Record& before,
               const sdk::Record& after);

}  // namespace driftd::test
