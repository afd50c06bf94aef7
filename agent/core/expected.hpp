// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/diff.hpp"
#include "core/path.hpp"

namespace driftd::core {

/// Attributes that must hold, by path. null: the attribute must not be there.
using Wanted = std::vector<std::pair<Path, Value>>;

/// Compares what is wanted with what was read; says nothing of attributes that nobody wants. This is how the agent judges
/// `expect:` and declarations, `driftd explain` shows them and `driftd diff --partial` compares offline. A wanted object,
/// list or value stands for the whole of its path. A secret is known by its digest alone, so a value in clear that is
/// wanted of it is compared by its digest, where `options` has id and keys, else unknown; it appears nowhere. `options.old_revision` and `.declared_only` are set here. Pure; any thread.
Difference diff_expected(const Wanted& wanted, const Value& body, const KindSchema& schema, DiffOptions options = {});

/// One path is the other or lies above it; a trailing `**` covers what is below.
bool related(std::string_view a, std::string_view b);
bool related_to_any(std::string_view path, const std::vector<std::string>& paths);

}  // namespace driftd::core
