// SPDX-License-Identifier: Apache-2.0
#include "driftd/consumer/slot_binder.hpp"

#include <exception>

#include "backend_cache.hpp"

namespace driftd::consumer {

SlotBinder::SlotBinder(BackendCache& cache, const Resolvers& resolvers, SlotFactory& factory, Amend amend,
                       std::chrono::milliseconds resolve_timeout)
    : cache_(cache),
      resolvers_(resolvers),
      factory_(factory),
      amend_(std::move(amend)),
      resolve_timeout_(resolve_timeout) {}

Result<SlotConfig> SlotBinder::config_of(const std::string& slot, const std::string& backend) {
  auto found = cache_.get(backend, slot);
  if (!found) return tl::unexpected<Error>(found.error());
  SlotConfig out;
  auto values = resolvers_.resolve(found->credentials, resolve_timeout_);
  if (!values) return tl::unexpected<Error>(values.error());
  out.credentials = std::move(*values);
  for (const auto& [member, value] : found->clear) out.credentials.emplace(member, value);
  out.backend = std::move(*found);
  if (amend_) amend_(out.backend);
  return out;
}

Result<BoundSlot> SlotBinder::bind_slot(const std::string& slot, const std::string& backend,
                                        const std::string& slot_type) {
  const std::string what = "failed to bind slot " + slot + ": ";
  auto config = config_of(slot, backend);
  if (!config) return fail(config.error().code, what + config.error().message);
  try {
    auto connection = factory_.connect({slot, backend, slot_type, {}}, *config);
    if (!connection) return fail(connection.error().code, what + connection.error().message);
    if (!*connection) return fail(Code::internal, what + "the factory returned no connection and no error");
    return BoundSlot{std::move(*connection), std::move(*config)};
  } catch (const std::exception& error) {
    return fail(Code::internal, what + "the factory threw: " + error.what());
  }
}

}  // namespace driftd::consumer
