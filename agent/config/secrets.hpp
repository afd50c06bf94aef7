// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/programs.hpp"
#include "config/rights.hpp"
#include "config/secret_file.hpp"
#include "config/section.hpp"
#include "core/value/value.hpp"

namespace driftd::config {

/// `${env:NAME}`, `${file:path}`, `${credential:name}`, `${exec:…}` anywhere in the text.
bool looks_like_reference(std::string_view text);

/// Whether a setting of this name holds a secret by its very name: password, secret, token, private_key … and names
/// that end in one of them (`sasl_password`), but not `password_file`.
bool is_secret_name(std::string_view key);

/// `scheme://user:password@host`, `?token=…`, a libpq `password=…`: what base/secret_text.hpp would withhold.
bool holds_credentials(std::string_view text);

/// A token that stands for a secret in settings.
bool is_token(std::string_view text);

/// Settings as JSON, twice: with tokens in place of secrets (for the plugin or the sink) and with references (for
/// people).
struct Settings {
  core::Value with_tokens, with_references;
  std::map<std::string, std::string> secrets;  ///< token → bytes
  std::vector<ProgramUse> programs;            ///< their tokens have no bytes yet
  std::vector<FileUse> files;                  ///< whose text the tokens stand for
};

/// Turns free-form YAML into settings. Numbers and booleans keep their type, quoted text stays text. References become
/// tokens; literals in secret-named settings and credentials inside URLs warn and become tokens as well. `owner` (the
/// backend's or sink's name) makes tokens distinct.
class SettingsReader {
 public:
  /// `programs`: what `${exec:…}` may run; null: it cannot stand here.
  SettingsReader(Report& report, const LoadOptions& options, std::string owner,
                 const std::vector<Program>* programs = nullptr);
  /// Reads a map; `skip` names members that are not settings (a sink's `type`).
  Settings read(const Node& map, const std::vector<std::string>& skip = {});
  /// The text that a scalar of one whole reference stands for. Empty and reported where it cannot be read.
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
  std::filesystem::path file_;  ///< that the reference at hand was read from, where it can be followed
  Settings out_;
};

/// What `${…}` and $CREDENTIALS_DIRECTORY are read from.
std::optional<std::string> environment_of(const LoadOptions& options, const std::string& name);

/// Text that differs from machine to machine and is no secret: as written, or `${env:NAME}` as the whole value.
std::string text_here(Section& section, std::string_view key, const LoadOptions& options, std::string fallback = "");

/// A YAML value as JSON without any secret handling (expected values of `expect:`).
core::Value to_value(const Node& node);

}  // namespace driftd::config
