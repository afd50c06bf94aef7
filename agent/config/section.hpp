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

/// Collects everything that is wrong with a file. Not thread-safe.
struct Report {
  std::string file;
  std::vector<ConfigError> errors, warnings;
  std::vector<std::filesystem::path> secret_files;  ///< that references named
  /// Which keys were asked for, by generic path (`backends[].budgets`): what json_schema() is checked against.
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

/// A map of the file being read: each key is asked for by name and type; close() reports those that nobody asked for.
/// An absent node reads as an empty map. A wrong value is reported and the fallback returned, so that reading goes on.
class Section {
 public:
  /// `path` is generic (`backends[].budgets`); `title` is what messages call it (`budgets of backend 'x'`).
  Section(Report& report, const Node* node, std::string path, std::string title);

  /// The value of `key`, or nullptr when it is absent or null. Marks the key as known.
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
  /// The items of a list of maps (or whatever they are); empty when absent.
  std::vector<const Node*> items(std::string_view key);

  /// Reports unknown keys, with the nearest known one.
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

/// Reports every key that stands twice in one map, in the whole tree.
void check_duplicates(Report& report, const Node& root);

/// The text of a scalar; nothing (and an error) for anything else and for secret references, which stand only in
/// settings.
std::optional<std::string> plain_text(Report& report, const Node& node, std::string_view what,
                                      std::string_view expected = "text");

/// "one of a, b, c"
std::string one_of(const std::vector<std::string>& names);
/// "did you mean 'x'?" or the list of what there is.
std::string suggest(std::string_view word, const std::vector<std::string>& known);

}  // namespace driftd::config
