// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/errors.hpp"
#include "config/yaml.hpp"

namespace driftd::config {

/// Collects all errors and warnings of a file. Not thread-safe.
struct Report {
  std::string file;
  std::vector<ConfigError> errors, warnings;
  std::vector<std::filesystem::path> secret_files;  ///< files that references name
  /// The keys that readers asked for, by generic path (`backends[].budgets`). A test compares them with json_schema().
  std::map<std::string, std::set<std::string>> known;

  void error(Position at, std::string what, std::string expected = "", std::string found = "", std::string next = "") {
    errors.push_back({file, at, std::move(what), std::move(expected), std::move(found), std::move(next)});
  }
  void warn(Position at, std::string what, std::string next) {
    warnings.push_back({file, at, std::move(what), "", "", std::move(next)});
  }
  /// `driftd.yaml:14:17`
  std::string where(Position at) const {
    return file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  }
};

/// Reads one map of the file. Each key is asked for by name and type; close() reports the keys that no reader asked
/// for. A missing node reads as an empty map. A wrong value is reported and its fallback returned, so that reading
/// continues.
class Section {
 public:
  /// `path` is generic (`backends[].budgets`). `title` is the name in messages (`budgets of backend 'x'`).
  Section(Report& report, const Node* node, std::string path, std::string title);

  /// Returns the value of `key`, or null if it is missing or null. Marks the key as known.
  const Node* find(std::string_view key);
  Section section(std::string_view key);

  std::string text(std::string_view key, std::string fallback = "");
  std::string required_text(std::string_view key, std::string_view expected);
  std::string choice(std::string_view key, std::string fallback, const std::vector<std::string>& allowed);
  bool boolean(std::string_view key, bool fallback);
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t lowest, std::int64_t highest);
  std::int64_t bytes(std::string_view key, std::int64_t fallback, std::int64_t lowest);
  std::chrono::milliseconds duration(std::string_view key, std::chrono::milliseconds fallback,
                                     std::chrono::milliseconds lowest, std::chrono::milliseconds highest);
  std::vector<std::string> texts(std::string_view key);
  std::map<std::string, std::string> text_map(std::string_view key);
  /// Returns the items of a list, whatever their type. Empty if the list is missing.
  std::vector<const Node*> items(std::string_view key);

  /// Reports each unknown key with the nearest known one.
  void close();
  bool present() const { return node_ != nullptr && node_->kind == Node::Kind::map; }
  Position at() const { return node_ == nullptr ? Position{} : node_->at; }
  Position at(std::string_view key) const;
  const std::string& title() const { return title_; }
  const std::string& path() const { return path_; }
  Report& report() { return report_; }
  void wrong(std::string_view key, const Node& node, std::string_view expected, std::string next = "");

 private:
  Report& report_;
  const Node* node_;
  std::string path_, title_;
};

/// Reports every key that occurs twice in one map of the tree.
void check_duplicates(Report& report, const Node& root);

/// Returns the text of a scalar. Reports an error and returns nothing for any other node, and for secret references,
/// which are allowed only in settings.
std::optional<std::string> plain_text(Report& report, const Node& node, std::string_view what,
                                      std::string_view expected = "text");

/// "one of a, b, c"
std::string one_of(const std::vector<std::string>& names);
/// Returns "did you mean 'x'?", or the list of known names.
std::string suggest(std::string_view word, const std::vector<std::string>& known);

}  // namespace driftd::config
