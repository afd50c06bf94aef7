// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/judge/diff.hpp"
#include "core/value/path.hpp"

namespace driftd::core {

/// Attributes that must hold, by path. null: the attribute must not be there, or is null. An object says what must hold
/// of its members, as if each were written as a path of its own; an empty one says that there are none. Every other
/// value is the whole of its path: a list, and what the schema reads as one value (a JSON document, a secret).
using ExpectedAttributes = std::vector<std::pair<Path, Value>>;

/// Adds one line of `where:`. `invalid`: `key` is no path (patterns are none), or is there already.
Status add_expected(ExpectedAttributes& to, std::string_view key, Value value);
/// `value`, wanted at `path`, by the paths that it asks something of.
ExpectedAttributes expand_expected(const Path& path, const Value& value, const Value& body, const KindSchema& schema);

/// What a source's `declared` asks of `body`, by its paths: as an expectation, but null says nothing.
ExpectedAttributes expand_declared(const Value& declared, const Value& body, const KindSchema& schema);

/// Compares what is wanted with what was read; says nothing of attributes that nobody wants. This is how the agent
/// judges `expect:` and declarations, `driftd explain` shows them and `driftd diff --partial` compares offline. Of two
/// that add_expected the same path the first counts, of a path and one below it the one below. A secret is known by its
/// digest alone, so a value in clear that is wanted of it is compared by its digest, where `options` has id and keys,
/// else unknown; it appears nowhere. `options.old_revision` and `.declared_only` are set here. Pure; any thread.
Difference diff_expected(const ExpectedAttributes& wanted, const Value& body, const KindSchema& schema,
                         DiffOptions options = {});

/// What the agent says of `body`, were this its only rule: judge() itself is asked. `body` is sealed under `keys`.
Difference judge_expected(const ExpectedAttributes& where, const Value& body,
                          const std::shared_ptr<const KindSchema>& schema, const ResourceId& id,
                          const std::shared_ptr<const RedactionKeys>& keys);

/// One path is the other or lies above it; a trailing `**` covers what is below.
bool related(std::string_view a, std::string_view b);
bool related_to_any(std::string_view path, const std::vector<std::string>& paths);

}  // namespace driftd::core
