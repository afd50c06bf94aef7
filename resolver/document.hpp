// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "driftd/consumer/backend.hpp"

namespace driftd::resolver {

/// Renders slot → configuration as the RFC's file: {"<slot>": {"type", "config", "capabilities"}}, and `backend`,
/// `endpoint` and `metadata`, which the consumer library reads. Credentials are in `config`, in clear.
consumer::Secret render_document(const std::map<std::string, consumer::SlotConfig>& slots);

}  // namespace driftd::resolver
