// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "terraform/spool.hpp"

namespace driftd::terraform {

/// What a state file of format v4 is made of, in the file's order, one piece at a time. Numbers that are no 64-bit
/// integer are marked strings (see render). In place of what nests deeper than common::kMaxNesting stands a mark, see
/// remove_deep_members(). A false answer ends the walk.
class DocumentVisitor {
 public:
  virtual ~DocumentVisitor() = default;
  /// A member of the document itself that is no object or list: version, serial, lineage, encryption_version …
  virtual bool top(const std::string& key, const nlohmann::json& value) = 0;
  virtual bool instance(const nlohmann::json& resource, const nlohmann::json& instance) = 0;
  virtual bool output(const std::string& name, const nlohmann::json& output) = 0;
  virtual bool check(const nlohmann::json& check) = 0;
  /// The member `encrypted_data` begins: what follows may be all there is.
  virtual bool encrypted() = 0;
};

/// Walks the document, in memory for its largest piece; `resource` holds the members of an entry of `resources` but its
/// instances. Throws sdk::Failure CORRUPT with line and column (no JSON, cut off, an unexpected form), never with a
/// part of the text: that may be a secret.
void walk(const Spool& state, DocumentVisitor& visitor);

/// Throws sdk::Failure CORRUPT with this text.
[[noreturn]] void corrupt(const std::string& text);

/// The whole document; for older formats. Throws as walk, and BUDGET above 64 MiB.
nlohmann::json parse_whole(const Spool& state);
/// JSON text as it stood in the document: every number with its own token.
std::string render(const nlohmann::json& value);
/// Takes the members off an object in which something nested too deep; their names. `rendered` is the object as text.
std::vector<std::string> remove_deep_members(nlohmann::json& object, const std::string& rendered);
/// The token of a number or the text of a string, as it stood; empty for anything else.
std::string scalar_text(const nlohmann::json& value);

}  // namespace driftd::terraform
