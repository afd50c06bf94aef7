// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "driftd/consumer/backend.hpp"

namespace driftd::resolver {

/// The configuration of each slot in a file that was rendered before, as JSON.
using Former = std::map<std::string, consumer::Secret>;

/// Parses such a file. Empty if it is none.
Former parse_document(const consumer::Secret& text);

/// Renders slot → configuration as the RFC's file: {"<slot>": {"type", "config", "capabilities"}}, and `backend`,
/// `endpoint` and `metadata`, which the consumer library reads. Credentials are in `config`, in clear. A slot of
/// `former` that is not in `slots` is rendered as it was.
consumer::Secret render_document(const std::map<std::string, consumer::SlotConfig>& slots, const Former& former = {});

}  // namespace driftd::resolver
