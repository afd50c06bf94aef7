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

/// Members of a JSON request body. A wrong type or an unknown member is remembered and returned by check().
class Fields {
 public:
  static Result<Fields> parse(const std::string& body);  ///< an empty body is an empty object

  std::string text(const std::string& name);
  /// Why somebody does something: at most 4 KiB, for it goes into each list, event and audit line about it.
  std::string reason();
  std::int64_t number(const std::string& name, std::int64_t fallback);
  bool flag(const std::string& name);
  std::vector<std::int64_t> numbers(const std::string& name);
  /// Fails on the first mistake, or on members that nobody asked for.
  Status check();

 private:
  const core::Value* take(const std::string& name);
  void wrong(const std::string& name, const char* expected);

  core::Value::Object members_;
  std::map<std::string, bool> asked_;
  std::string mistake_;
};

/// A whole number in `text`, from least to most; empty: fallback. `invalid` names `what`.
Result<std::int64_t> parse_number(const std::string& what, const std::string& text, std::int64_t fallback,
                                  std::int64_t least, std::int64_t most);
/// RFC 3339 UTC (`2026-11-21T03:39:16Z`, fraction allowed).
Result<Nanos> parse_time(const std::string& text);
/// `kind/id`; the id may hold slashes.
Result<core::ResourceId> parse_resource(const std::string& text);

}  // namespace driftd::admin
