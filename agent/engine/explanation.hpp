// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/resource.hpp"

namespace driftd::core {
class Session;
struct Step;
}  // namespace driftd::core

namespace driftd::engine {

class Ledger;
struct Context;

/// Explains why an attribute of a resource is a drift or not (`driftd explain`), compared with the baseline and with
/// what is expected. If `path` is empty, explains all of them. Fails with `not_found` if there is no such resource or
/// attribute. `session` is asked whether the provider's own diff demotes a change. The ledger and the session must
/// outlive the task.
Task<Result<std::vector<core::Step>>> explain(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session,
                                              core::ResourceId id, std::string path);

}  // namespace driftd::engine
