// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/ports/session.hpp"

namespace driftd::engine {

/// The texts of schemas in the notes of a backend's row: those that its provider has now, and the earlier ones, by
/// which what was stored under them is read.
using Notes = std::map<std::string, std::string>;
using Revision = std::pair<std::string, std::uint32_t>;  // of a kind
using Former = std::map<std::string, std::map<std::uint32_t, std::shared_ptr<const core::KindSchema>>>;

Former former_schemas(const Notes& notes);
/// Another revision than the provider has now is noted.
bool has_former(const Notes& notes, const core::ProviderInfo& info);
/// The notes with the schemas of now, and of the earlier ones those that `stored` has: of one kind at most 16, of all 8
/// MiB, the latest first. A provider may make its revision anew at each start. What is given up keeps its note without
/// a text.
Notes with_schemas(const Notes& notes, const core::ProviderInfo& info, const std::set<Revision>& stored);
/// Why what is stored of a kind may not be read as it was; empty: it is.
std::string lost_schemas_reason(const Notes& notes, const std::string& kind);

}  // namespace driftd::engine
