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

/// Attributes that must hold, by path. null means that the attribute must be absent or null. An object means that its
/// members must hold, as if each were written as a path of its own; an empty object means that there must be no
/// members. Every other value must equal the whole attribute: a list, and what the schema reads as one value (a JSON
/// document, a secret).
using ExpectedAttributes = std::vector<std::pair<Path, Value>>;

/// Adds one line of `where:`. Returns `invalid` if `key` is not a path (a pattern is not one) or is there already.
Status add_expected(ExpectedAttributes& to, std::string_view key, Value value);
/// Splits `value`, expected at `path`, into one entry for each attribute that is compared on its own.
ExpectedAttributes expand_expected(const Path& path, const Value& value, const Value& body, const KindSchema& schema);

/// Splits a source's declaration like an expectation, but null members are left out: they declare nothing.
ExpectedAttributes expand_declared(const Value& declared, const Value& body, const KindSchema& schema);

/// Compares expected attributes with the body that was read; other attributes are not reported. The agent judges
/// `expect:` and declarations by it, `driftd explain` shows its steps, and `driftd diff --partial` compares offline. If
/// a path is expected twice, the first entry counts; of a path and one below it, the one below counts. A secret is
/// known only by its digest. A clear-text value that is expected of it is compared by its digest if `options` has id
/// and keys, and is unknown otherwise; it never appears in the result. Sets `options.old_revision` and
/// `.declared_only`. Pure; any thread.
Difference diff_expected(const ExpectedAttributes& wanted, const Value& body, const KindSchema& schema,
                         DiffOptions options = {});

/// Returns the topmost attributes of `body` about which `wanted` says nothing, sorted: an expectation does not compare
/// them.
std::vector<std::string> not_expected(const ExpectedAttributes& wanted, const Value& body, const KindSchema& schema);

/// Returns what judge() finds in `body` if `expected` is the only rule. `body` must be sealed under `keys`.
Difference judge_expected(const ExpectedAttributes& expected, const Value& body,
                          const std::shared_ptr<const KindSchema>& schema, const ResourceId& id,
                          const std::shared_ptr<const RedactionKeys>& keys, const KnownNames* known = nullptr);

/// Returns true if the paths are equal or one lies above the other. A trailing `**` covers everything below.
bool related(std::string_view a, std::string_view b);
bool related_to_any(std::string_view path, const std::vector<std::string>& paths);

}  // namespace driftd::core
