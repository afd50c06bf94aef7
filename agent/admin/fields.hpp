// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "core/resource.hpp"
#include "core/value/value.hpp"

namespace driftd::admin {

/// The members of a JSON request body. A wrong type or an unknown member is remembered and returned by check().
class Fields {
 public:
  static Result<Fields> parse(const std::string& body);  ///< an empty body counts as an empty object

  /// Each of these returns a default if the member is absent, null or of another type: an empty text, `fallback`,
  /// false, an empty list. Only check() says which.
  std::string text(const std::string& name);
  /// Returns the member `reason`, limited to 4 KiB because each list, event and audit line about the request repeats
  /// it.
  std::string reason();
  std::int64_t number(const std::string& name, std::int64_t fallback);
  bool flag(const std::string& name);
  std::vector<std::int64_t> numbers(const std::string& name);
  std::vector<std::string> texts(const std::string& name);
  /// Returns `invalid` with the first mistake, or with a member that was never read.
  Status check();

 private:
  /// Returns a member and notes that it was asked for; null if it is absent or JSON null.
  const core::Value* take(const std::string& name);
  /// Notes a mistake, unless there is one already.
  void wrong(const std::string& name, const char* expected);

  core::Value::Object members_;        ///< of the body
  std::map<std::string, bool> asked_;  ///< names that were read; any other member is a mistake
  std::string mistake_;                ///< the first one; empty: none
};

/// Returns the whole number in `text`, from `min` to `max`; `fallback` if it is empty. `invalid` names `what`.
Result<std::int64_t> parse_number(const std::string& what, const std::string& text, std::int64_t fallback,
                                  std::int64_t min, std::int64_t max);
/// Parses an RFC 3339 time in UTC (`2026-11-21T03:39:16Z`, a fraction is allowed).
/// Returns `invalid` for any other text and for a time outside the years 1677 to 2262, which does not fit into
/// nanoseconds.
Result<Nanos> parse_time(const std::string& text);
/// Parses `kind/id`; the id may contain slashes.
/// Returns `invalid` if the kind or the id is empty.
Result<core::ResourceId> parse_resource(const std::string& text);

}  // namespace driftd::admin
