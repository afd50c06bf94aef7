// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/redact.hpp"
#include "core/value/path.hpp"

namespace driftd::core {

/// What becomes of one value of a record (ADR 0013).
enum class Visibility {
  shown,
  /// a digest that keeps the class of its attribute: nobody says that it is a secret, and nobody that it is none
  withheld,
  secret  ///< a digest of a credential
};

/// Decides, value by value, what may be shown. First the configuration's rules; then what a value is by its form, in
/// every attribute; then, where the provider says that values are free-form, only what is harmless by name or by form
/// is shown. Immutable; any thread.
class Disclosure {
 public:
  Disclosure() = default;
  /// A pattern that cannot be read covers everything, where it hides or names free-form values, and nothing where it
  /// shows.
  Disclosure(const std::vector<FreeForm>& free_form, const std::vector<RedactRule>& rules);

  /// Of a text, a number or a boolean of the body.
  Visibility of(const ResourceId& id, const Path& path, const Value& leaf) const;
  /// A record's status: what would be withheld in a body stands as `[REDACTED]`. The status of a kind whose whole body
  /// is free-form is free-form, too.
  Value status(const ResourceId& id, const Value& status) const;
  /// A text of metadata, of an endpoint or for people: URLs without user-info and query, `[REDACTED]` where it still
  /// may hold a secret.
  static std::string shown_text(std::string_view text);

 private:
  struct Place {
    Glob kind, id, path;
  };
  struct Rule {
    bool show;
    Glob path;
  };
  bool free(const ResourceId& id, const Path& path) const;
  bool all_free(const ResourceId& id) const;
  Visibility judge(const ResourceId& id, const Path& path, const Value& leaf, bool free) const;
  Value status_at(const ResourceId& id, const Path& path, const Value& value, bool free) const;

  std::vector<Place> free_form_;
  std::vector<Rule> rules_;
};

// The table of names and forms, for free-form values [harmless.cpp].

/// A name that speaks of secrets: `DB_PASS`, `signingKey`, `tunnel1_preshared_key`.
bool suspicious_name(std::string_view name);
/// A name whose values are shown, unless their form says otherwise: image, region, `*_id`, LOG_LEVEL.
bool harmless_name(std::string_view name);
/// A value that is shown under any name that is not suspicious: numbers, sizes, durations, versions, addresses without
/// credentials, paths, words that configurations are made of.
bool harmless_value(std::string_view text);

}  // namespace driftd::core
