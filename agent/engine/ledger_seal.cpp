// SPDX-License-Identifier: Apache-2.0
// Sealing: digests of workers become digests of the store. Also decides which digest of a record may be stored beside
// them.
#include "engine/context.hpp"
#include "engine/kept_digest.hpp"
#include "engine/ledger_page.hpp"

namespace driftd::engine {
namespace {

bool holds_digests(const std::optional<std::string>& body) { return body && body->find("$hmac") != std::string::npos; }

/// The member's name may be written with escapes.
bool may_hold_digests(const std::string& body) {
  return body.find("$hmac") != std::string::npos || body.find("\\u") != std::string::npos;
}

/// Seals each of `bodies`. `stopping` must outlive the task.
Task<Status> seal_all(std::shared_ptr<const Context> context, std::vector<std::string*> bodies, const bool* stopping) {
  // one at a time, so that other backends' work is not delayed
  const std::size_t at_once = context->store_key.slow() ? 1 : bodies.size();
  for (std::size_t from = 0; from < bodies.size(); from += at_once) {
    if (*stopping) co_return fail(Code::cancelled, "the agent is stopping");
    std::vector<std::string> some;
    for (std::size_t i = from; i < from + at_once; ++i) some.push_back(std::move(*bodies[i]));
    auto work = [some = std::move(some), key = context->store_key]() mutable -> Result<std::vector<std::string>> {
      for (auto& body : some) {
        DRIFTD_TRY(body, core::seal(body, key));
      }
      return std::move(some);
    };
    DRIFTD_CO_TRY(auto sealed, co_await run_on(context->diff, std::move(work)));
    for (std::size_t i = 0; i < sealed.size(); ++i) *bodies[from + i] = std::move(sealed[i]);
  }
  co_return Status{};
}

}  // namespace

Task<Status> Ledger::Page::seal() {
  std::vector<std::string*> bodies;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    auto* seen = std::get_if<core::Present>(&readings_[i].outcome);
    if (seen != nullptr && !outdated_[i] && may_hold_digests(seen->observation.body))
      bodies.push_back(&seen->observation.body);
  }
  for (auto& write : extras_.declarations) {
    if (!write.withdrawn) bodies.push_back(&write.declaration.body);
  }
  const auto status = co_await seal_all(ledger_.context_, std::move(bodies), &ledger_.stopping_);
  co_return status;
}

Digest kept_digest(const core::RedactionKey& key, const core::StoredResource& next) {
  const bool telling = key.slow() && (holds_digests(next.observed) || holds_digests(next.baseline));
  return telling ? Digest{} : next.digest;
}

Digest kept_digest(const core::RedactionKey& key, const core::Declaration& declaration) {
  const bool telling = key.slow() && holds_digests(declaration.body);
  return telling ? digest(0, {declaration.body}) : declaration.digest;
}

}  // namespace driftd::engine
