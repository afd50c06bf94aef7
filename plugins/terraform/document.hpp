// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "terraform/spool.hpp"

namespace driftd::terraform {

/// Visits the parts of a state file of format v4 in the file's order. Numbers that are not 64-bit integers are marked
/// strings (see render). What nests deeper than common::kMaxNesting is replaced by a mark, see remove_deep_members(). A
/// visitor that returns false ends the walk.
class DocumentVisitor {
 public:
  virtual ~DocumentVisitor() = default;
  /// A scalar member of the document itself: version, serial, lineage, encryption_version …
  virtual bool top(const std::string& key, const nlohmann::json& value) = 0;
  /// An entry of `instances`, with the resource that holds it.
  virtual bool instance(const nlohmann::json& resource, const nlohmann::json& instance) = 0;
  virtual bool output(const std::string& name, const nlohmann::json& output) = 0;
  /// An entry of `check_results`.
  virtual bool check(const nlohmann::json& check) = 0;
  /// The member `encrypted_data` begins; an encrypted state holds little else.
  virtual bool encrypted() = 0;
};

/// Walks the document; memory use is that of its largest part. `resource` holds the members of an entry of `resources`
/// without its instances. Throws CORRUPT with line and column (invalid JSON, truncated, unexpected form), never with a
/// part of the text, which may be a secret.
void walk(const Spool& state, DocumentVisitor& visitor);

/// Throws CORRUPT with this text.
[[noreturn]] void corrupt(const std::string& text);

/// Parses the whole document; for older formats. Throws like walk(), and BUDGET above 64 MiB.
nlohmann::json parse_whole(const Spool& state);
/// Renders JSON as it was in the document: every number keeps its own digits.
std::string render(const nlohmann::json& value);
/// Removes the members of an object that nest too deep and returns their names. `rendered` is the object as text.
std::vector<std::string> remove_deep_members(nlohmann::json& object, const std::string& rendered);
/// Returns the digits of a number or the text of a string as in the document; empty for anything else.
std::string scalar_text(const nlohmann::json& value);

}  // namespace driftd::terraform
