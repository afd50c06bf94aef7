// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/programs.hpp"
#include "config/resolve.hpp"
#include "config/rights.hpp"
#include "config/secret_file.hpp"
#include "config/section.hpp"
#include "core/value/value.hpp"

namespace driftd::config {

/// Returns true if the text contains `${env:NAME}`, `${file:path}`, `${credential:name}` or `${exec:…}`.
bool looks_like_reference(std::string_view text);

/// Returns true if the name alone says that the setting is a secret: password, secret, token, private_key … and names
/// that end in one of them (`sasl_password`), but not `password_file`.
bool is_secret_name(std::string_view key);

/// Returns true for text that base/secret_text.hpp would withhold: `scheme://user:password@host`, `?token=…`, a libpq
/// `password=…`.
bool holds_credentials(std::string_view text);

/// Returns true if the text is a token, which make_token() puts in place of a secret in settings.
bool is_token(std::string_view text);

/// Settings as JSON in two forms: with tokens instead of secrets (for the plugin or the sink), and with the references
/// as written (for display).
struct Settings {
  core::Value with_tokens, with_references;
  std::map<std::string, std::string> secrets;  ///< token → bytes
  std::vector<ProgramUse> programs;            ///< their tokens have no bytes until the program has run
  std::vector<FileUse> files;                  ///< files whose text is replaced by tokens
  std::vector<CredentialUse> references;       ///< every reference
};

/// Converts free-form YAML to settings. Numbers and booleans keep their type; quoted text stays text. References become
/// tokens. Literals in settings with a secret name, and credentials inside URLs, cause a warning and become tokens too.
/// `owner` (the name of the backend or sink) makes tokens distinct.
class SettingsReader {
 public:
  /// `programs` is what `${exec:…}` may run. Null if `${exec:…}` is not allowed here.
  SettingsReader(Report& report, const LoadOptions& options, std::string owner,
                 const std::vector<Program>* programs = nullptr);
  /// Reads a map. `skip` names members that are not settings (a sink's `type`).
  Settings read(const Node& map, const std::vector<std::string>& skip = {});
  /// Resolves a scalar that is one reference. Reports an error and returns empty text if it cannot be read.
  std::string read_reference(const Node& node);

 private:
  struct Pair {
    core::Value token, reference;
  };
  Pair convert(const Node& node, const std::string& path, std::string_view key);
  Pair convert_map(const Node& node, const std::string& path, const std::vector<std::string>& skip);
  Pair convert_text(const Node& node, const std::string& path, std::string_view key);
  Pair convert_program(const Node& node, const std::string& path);
  const Program* find_program(const Node& node, const std::string& path);
  std::string make_token(const std::string& path) const;
  std::string reference_forms() const;
  Pair add_secret(const std::string& path, std::string bytes, std::string shown);
  std::optional<std::string> resolve(const Node& node, const std::string& scheme, const std::string& rest);
  std::optional<std::string> resolve_env(const Node& node, const std::string& name);
  std::optional<std::string> resolve_credential(const Node& node, const std::string& name);
  void warn_of_rights(const Node& node, const std::string& path, const Rights& rights);
  std::optional<std::string> read_file(const Node& node, const std::string& path);
  std::optional<std::string> environment(const std::string& name) const;

  Report& report_;
  const LoadOptions& options_;
  std::string owner_;
  const std::vector<Program>* programs_;
  std::filesystem::path file_;        ///< file of the current reference, if it can be followed
  std::filesystem::path named_file_;  ///< file of the current reference, absolute
  Settings out_;
};

/// Returns a variable of the environment for `${…}` and $CREDENTIALS_DIRECTORY.
std::optional<std::string> environment_of(const LoadOptions& options, const std::string& name);

/// Reads a text that may differ between machines and is not a secret: literal, or `${env:NAME}` as the whole value.
std::string text_or_variable(Section& section, std::string_view key, const LoadOptions& options,
                             std::string fallback = "");

/// Converts a YAML value to JSON without handling secrets (for the expected values of `expect:`).
core::Value to_value(const Node& node);

}  // namespace driftd::config
