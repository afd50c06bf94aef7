// SPDX-License-Identifier: Apache-2.0
// Files of pairs of bodies, and the verdict of the comparison on one pair.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/judge/expected.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {

inline std::string content_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

inline Value load(const std::filesystem::path& file) {
  auto value = parse(content_of(file));
  EXPECT_TRUE(value) << file << ": " << (value ? "" : value.error().message);
  return value ? *value : Value(Value::Object{});
}

inline std::string text(const Value& value, std::string_view member) {
  const Value* found = value.find(member);
  return found != nullptr && found->string() != nullptr ? *found->string() : "";
}

/// Returns the schema of examples/schemas that `of`, a file or a pair, names. `source`: of the project.
inline Result<std::shared_ptr<const KindSchema>> schema_of(const std::filesystem::path& source, const Value& of) {
  return KindSchema::parse(content_of(source / "examples/schemas" / (text(of, "schema") + ".json")));
}

/// `drift a.b; unknown c`, or `equal`. What is filled in counts as equal.
inline std::string verdict(const Difference& difference) {
  std::string out;
  for (const auto& change : difference.changes) out += (out.empty() ? "" : "; ") + ("drift " + change.path);
  for (const auto& unknown : difference.unknown) out += (out.empty() ? "" : "; ") + ("unknown " + unknown.path);
  return out.empty() ? "equal" : out;
}

/// Compares as a declaration if the pair says so, else as a baseline.
inline Difference compare(const Value& pair, const Value& before, const Value& after, const KindSchema& schema,
                          std::vector<Step>& steps) {
  DiffOptions options;
  options.old_revision = schema.revision();
  options.trace = &steps;
  if (pair.find("declared") == nullptr) return diff(before, after, schema, options);
  return diff_expected(expand_declared(before, after, schema), after, schema, options);
}

inline std::string explanation(const std::vector<Step>& steps) {
  std::string out;
  for (const auto& step : steps) {
    if (step.verdict != "equal")
      out += "\n  " + step.path + ": " + step.reason + "\n    " + step.rule + "\n    " + step.old_norm + "\n    " +
             step.new_norm;
  }
  return out;
}

}  // namespace driftd::core
