// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"

namespace driftd::common {

/// Throws INVALID with a text such as `settings.tls.ca: expected text, found a number; write it in quotes`. `where` is
/// the path of the setting. `found` and `next_step` are left out if they are empty. Operators see the text, so `found`
/// must not quote a value that may be a secret.
[[noreturn]] void refuse_setting(const std::string& where, const std::string& expected, const std::string& found = {},
                                 const std::string& next_step = {});

/// Parses the JSON that open() gets. Throws INVALID unless it is a JSON object.
nlohmann::json parse_settings_json(std::string_view text);

/// The smallest and the largest number that a setting accepts.
struct Range {
  std::uint64_t min = 0;  ///< both are accepted themselves
  std::uint64_t max = 0;
};

/// Reads the members of one JSON object of a provider's settings. A method returns its fallback if the member is
/// absent, and throws INVALID with the member's path if it has another type, null included (see refuse_setting).
/// Every member that a method was called for counts as known, and finish() refuses the others. The reader copies
/// nothing: the JSON must outlive it and the readers that it returns. [one thread]
class SettingsReader {
 public:
  /// `where` is the path of the object, for example `settings.tls`. Throws INVALID unless `from` is an object.
  explicit SettingsReader(const nlohmann::json& from, std::string where = "settings");

  /// Returns true if the member is present, whatever its type.
  bool has(const char* name);
  /// Returns the member, which may be an empty text.
  std::string text(const char* name, std::string fallback = {});
  /// Throws INVALID if the member is absent or an empty text; `expected` describes it in the error.
  std::string required_text(const char* name, const std::string& expected);
  /// Returns the member, which must be true or false.
  bool flag(const char* name, bool fallback);
  /// Reads a whole number. Throws INVALID if it is outside of `range`; the fallback is not checked.
  std::uint64_t number(const char* name, std::uint64_t fallback, Range range);
  /// Reads a whole number of milliseconds. Throws INVALID unless it is from 1 to `max`; the fallback is not checked.
  std::chrono::milliseconds ms(const char* name, std::chrono::milliseconds fallback, std::chrono::milliseconds max);
  /// Reads a whole number of seconds. Throws INVALID unless it is from 1 to `max`; the fallback is not checked.
  std::chrono::seconds seconds(const char* name, std::chrono::seconds fallback, std::chrono::seconds max);
  /// Reads a list of texts.
  std::vector<std::string> texts(const char* name, std::vector<std::string> fallback = {});
  /// Reads a list of texts or a single text, which is returned as a list of one. Empty if the member is absent.
  std::vector<std::string> text_or_texts(const char* name);
  /// Reads an object whose members are all texts. Empty if the member is absent.
  std::map<std::string, std::string> text_map(const char* name);
  /// Returns a reader of the member, or of an empty object if the member is absent.
  SettingsReader object(const char* name);
  /// Returns a reader for each element of a list of objects; its path ends with the index. Empty if the member is
  /// absent.
  std::vector<SettingsReader> objects(const char* name);
  /// Returns the member unread, for code that reads it later with a reader of its own. Null if the member is absent.
  const nlohmann::json& raw(const char* name);
  /// Throws INVALID with the known names if the object has a member that no method was called for.
  void finish() const;

  /// Returns the path of the object, for example `settings.declares[0]`.
  const std::string& where() const { return where_; }
  /// Throws INVALID about the member `name` of this object; see refuse_setting.
  [[noreturn]] void refuse(const std::string& name, const std::string& expected, const std::string& found = {},
                           const std::string& next_step = {}) const;

 private:
  /// Returns the member and counts it as known; null if it is absent.
  const nlohmann::json* find(const char* name);
  /// `unit` is for the error: ` of seconds`.
  std::uint64_t number(const char* name, std::uint64_t fallback, Range range, const std::string& unit);
  /// Errors name the index of the element.
  std::vector<std::string> read_texts(const char* name, const nlohmann::json& list) const;

  const nlohmann::json* from_;   ///< borrowed; never null
  std::string where_;            ///< path of the object
  std::set<std::string> known_;  ///< names that a method was called for
};

/// Reads `include` and `exclude`, which every provider has.
/// Both are lists of texts, empty if absent. Throws INVALID like the reader's methods.
sdk::Scope read_scope(SettingsReader& from);

}  // namespace driftd::common
