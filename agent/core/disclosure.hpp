// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/redact.hpp"
#include "core/value/path.hpp"

namespace driftd::core {

/// How one value of a record is shown (ADR 0013).
enum class Visibility {
  shown,
  /// a digest that keeps the class of its attribute: the value is known neither as a secret nor as harmless
  withheld,
  secret  ///< a digest of a credential
};

/// Decides for each value whether it may be shown. The configuration's rules come first, then the form of the value, in
/// every attribute. Where the provider declares values as free-form, only those that are harmless by name or form are
/// shown. Immutable; any thread.
class Disclosure {
 public:
  Disclosure() = default;
  /// A pattern that cannot be parsed covers everything if it hides values or marks them as free-form, and nothing if it
  /// shows values.
  Disclosure(const std::vector<FreeForm>& free_form, const std::vector<RedactRule>& rules);

  /// Decides about a text, a number or a boolean of the body.
  Visibility of(const ResourceId& id, const Path& path, const Value& leaf) const;
  /// Returns a record's status with `[REDACTED]` for each value that would be withheld in a body. If the whole body of
  /// a kind is free-form, so is its status.
  Value status(const ResourceId& id, const Value& status) const;
  /// Returns a text (of metadata, of an endpoint, of an error) with its URLs stripped of user-info and query, or
  /// `[REDACTED]` if it still may contain a secret.
  static std::string shown_text(std::string_view text);

 private:
  struct Place {
    Glob kind, id, path;
  };
  struct Rule {
    bool show;
    Glob path;
  };
  bool is_free_form(const ResourceId& id, const Path& path) const;
  bool is_all_free_form(const ResourceId& id) const;
  Visibility decide(const ResourceId& id, const Path& path, const Value& leaf, bool free_form) const;
  Value status_at(const ResourceId& id, const Path& path, const Value& value, bool free_form) const;

  std::vector<Place> free_form_;
  std::vector<Rule> rules_;
};

// The table of names and forms, for free-form values [disclosure_names.cpp].

/// Returns true if the name suggests a secret: `DB_PASS`, `signingKey`, `tunnel1_preshared_key`.
bool suspicious_name(std::string_view name);
/// Returns true if values of this name are shown unless their form suggests a secret: image, region, `*_id`, LOG_LEVEL.
bool harmless_name(std::string_view name);
/// Returns true if the value is shown under any name that is not suspicious: numbers, sizes, durations, versions,
/// addresses without credentials, paths, common words of configurations.
bool harmless_value(std::string_view text);

}  // namespace driftd::core
