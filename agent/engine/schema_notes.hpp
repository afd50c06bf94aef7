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

/// The texts of schemas, as notes of a backend's row: the provider's current ones, and earlier ones under which
/// something is still stored and which are needed to read it.
using Notes = std::map<std::string, std::string>;
using Revision = std::pair<std::string, std::uint32_t>;  // kind and revision
using Former = std::map<std::string, std::map<std::uint32_t, std::shared_ptr<const core::KindSchema>>>;

Former former_schemas(const Notes& notes);
/// Returns true if a schema revision is noted that the provider does not have now.
bool has_former(const Notes& notes, const core::ProviderInfo& info);
/// Returns the notes with the current schemas and those earlier ones that `stored` names: the latest first, at most 16
/// for each kind and 8 MiB in all, because a provider may come with a new revision at each start. A schema over the
/// limit keeps its note without the text.
Notes with_schemas(const Notes& notes, const core::ProviderInfo& info, const std::set<Revision>& stored);
/// Returns why stored resources of a kind may not be read under their own schema. Empty if they are.
std::string lost_schemas_reason(const Notes& notes, const std::string& kind);

}  // namespace driftd::engine
