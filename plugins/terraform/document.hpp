// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "terraform/spool.hpp"

namespace driftd::terraform {

/// Maximum number of values of a resource without its instances, an instance, an output. A tree takes up to fifty times
/// its text.
inline constexpr std::size_t kMaxPartValues = 1'000'000;

/// Members of an entry of `resources`. A member that is not a text counts as empty.
struct Resource {
  std::string module, mode, type, name, provider;
};

/// What a reading of the attributes of an instance noticed.
struct AttributeTraits {
  bool blanks = false;      ///< white space between tokens
  bool unordered = false;   ///< keys are not sorted, so that one may stand twice
  bool escaped = false;     ///< a key has a backslash
  bool deep = false;        ///< something nests deeper than common::kMaxNesting levels, counted from the instance on
  bool secret_key = false;  ///< the name of a member suggests a secret
};

/// An entry of `instances`: parts of its text, which kPadding bytes follow. A part is empty if there is no such member.
struct InstanceText {
  std::string_view text;
  std::string_view attributes, attributes_flat, index_key, deposed, status, sensitive_attributes;
  AttributeTraits traits;  ///< of the attributes
};

/// Returns the member of InstanceText for a member of an instance; null if it has none.
std::string_view InstanceText::*part_of(std::string_view key);

/// Where the attributes of an instance end, learned by a first walk: a second one need not scan them again.
struct OutlineEntry {
  std::uint32_t size = 0;  ///< bytes of the `attributes` of the next instance that has any
  AttributeTraits traits;
};
using Outline = std::vector<OutlineEntry>;

/// Visits the parts of a state file of format v4 in the file's order, as text. All views are valid for the call only. A
/// visitor that returns false ends the walk.
class DocumentVisitor {
 public:
  virtual ~DocumentVisitor() = default;
  /// A scalar member of the document itself: version, serial, lineage, encryption_version …
  virtual bool top(const std::string& key, std::string_view value) = 0;
  virtual bool instance(const Resource& resource, const InstanceText& instance) = 0;
  virtual bool output(const std::string& name, std::string_view output) = 0;
  /// An entry of `check_results`.
  virtual bool check(std::string_view check) = 0;
  /// The member `encrypted_data` begins; an encrypted state holds little else.
  virtual bool encrypted() = 0;
};

/// Walks the document and checks all of it; memory use is that of its largest part. Throws CORRUPT with line and column
/// (invalid JSON, truncated) or with the place (unexpected form), never with a part of the text, which may be a secret;
/// BUDGET if one part has more than 1,000,000 values. Fills `outline`.
void walk(const Spool& state, DocumentVisitor& visitor, Outline& outline);
/// Walks a document that was walked before to its end. `outline` is what that walk filled.
void walk_again(const Spool& state, DocumentVisitor& visitor, const Outline& outline);
/// Walks a text, which may be cut off.
void walk(std::string_view text, DocumentVisitor& visitor);

/// Returns what a scanner noticed of the attributes of an instance.
AttributeTraits traits_of(const struct Traits& seen);

/// Throws CORRUPT with this text.
[[noreturn]] void corrupt(const std::string& text);
/// Throws BUDGET: one part of the state has more values than are read.
[[noreturn]] void too_many_values(std::size_t max_values);

/// Returns the value of a text, `"a\n"` → `a` and a line end; empty if it is not a text. `token` is valid JSON.
std::string text_value(std::string_view token);

}  // namespace driftd::terraform
