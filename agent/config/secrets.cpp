// SPDX-License-Identifier: Apache-2.0
#include "config/secrets.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/digest.hpp"
#include "base/secret_text.hpp"
#include "config/secret_file.hpp"

namespace driftd::config {
namespace {

constexpr std::array<std::string_view, 4> kSchemes = {"env", "file", "credential", "exec"};  // `exec` is the last
constexpr std::string_view kTokenStart = "driftd-secret-";

/// Returns true if the text is a JSON number (RFC 8259); 007, 0x10 and 1_000 are text.
bool is_json_number(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) ++at;
    return at - from;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const bool zero = at < text.size() && text[at] == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

core::Value scalar_value(const Node& node) {
  if (node.quoted) return core::Value(node.text);
  if (node.text == "true" || node.text == "false") return core::Value(node.text == "true");
  if (is_json_number(node.text)) return core::Value(core::Value::Number{node.text});
  return core::Value(node.text);
}

}  // namespace

std::optional<std::string> environment_of(const LoadOptions& options, const std::string& name) {
  if (options.environment) return options.environment(name);
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string text_or_variable(Section& section, std::string_view key, const LoadOptions& options, std::string fallback) {
  const Node* node = section.find(key);
  const bool reference = node != nullptr && node->kind == Node::Kind::scalar && looks_like_reference(node->text);
  if (!reference) return section.text(key, std::move(fallback));
  const std::string& text = node->text;
  constexpr std::string_view kOpen = "${env:";
  if (!text.starts_with(kOpen) || text.find('}') != text.size() - 1) {
    section.report().error(node->at, "'" + std::string(key) + "' is no secret: only a variable can stand here",
                           "text, or ${env:NAME} as the whole value", "'" + text + "'");
    return fallback;
  }
  if (!options.resolve_secrets) return "unresolved";
  const std::string name = text.substr(kOpen.size(), text.size() - kOpen.size() - 1);
  const auto value = environment_of(options, name);
  if (value && !value->empty()) return *value;
  section.report().error(node->at, "environment variable " + name + " is " + (value ? "empty" : "not set"),
                         "a text in it", "",
                         "set it in the environment of the agent (Kubernetes: fieldRef spec.nodeName)");
  return fallback;
}

bool looks_like_reference(std::string_view text) {
  return std::any_of(kSchemes.begin(), kSchemes.end(), [&](std::string_view scheme) {
    return text.find("${" + std::string(scheme) + ":") != std::string_view::npos;
  });
}

bool is_token(std::string_view text) { return text.starts_with(kTokenStart); }

bool holds_credentials(std::string_view text) {
  return text.find("password=") != std::string_view::npos || may_hold_secret(text);
}

bool is_secret_name(std::string_view key) {
  static constexpr std::array<std::string_view, 14> kEndings = {
      "password", "passwords", "passwd",  "passphrase", "secret",     "secrets",     "token",
      "tokens",   "apikey",    "api_key", "access_key", "secret_key", "private_key", "credential"};
  std::string lower(key);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(c == '-' ? '_' : std::tolower(c)); });
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
    if (!lower.ends_with(ending)) return false;
    return lower.size() == ending.size() || lower[lower.size() - ending.size() - 1] == '_' ||
           lower[lower.size() - ending.size() - 1] == '.';
  });
}

core::Value to_value(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return nullptr;
    case Node::Kind::scalar:
      return scalar_value(node);
    case Node::Kind::list: {
      core::Value::Array list;
      for (const auto& item : node.items) list.push_back(to_value(item));
      return list;
    }
    case Node::Kind::map:
      break;
  }
  core::Value::Object object;
  for (const auto& member : node.members) object.insert_or_assign(member.key, to_value(member.value));
  return object;
}

SettingsReader::SettingsReader(Report& report, const LoadOptions& options, std::string owner,
                               const std::vector<Program>* programs)
    : report_(report),
      options_(options),
      owner_(std::move(owner)),
      programs_(programs) {}

Settings SettingsReader::read(const Node& map, const std::vector<std::string>& skip) {
  Pair pair = convert_map(map, "", skip);
  out_.with_tokens = std::move(pair.token);
  out_.with_references = std::move(pair.reference);
  return std::move(out_);
}

std::string SettingsReader::read_reference(const Node& node) {
  const std::string& text = node.text;
  const std::size_t colon = text.find(':');
  return resolve(node, text.substr(2, colon - 2), text.substr(colon + 1, text.size() - colon - 2)).value_or("");
}

SettingsReader::Pair SettingsReader::convert(const Node& node, const std::string& path, std::string_view key) {
  switch (node.kind) {
    case Node::Kind::null:
      return {};
    case Node::Kind::map:
      return convert_map(node, path, {});
    case Node::Kind::scalar:
      return convert_text(node, path, key);
    case Node::Kind::list:
      break;
  }
  core::Value::Array tokens, references;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    Pair item = convert(node.items[i], path + "[" + std::to_string(i) + "]", key);
    tokens.push_back(std::move(item.token));
    references.push_back(std::move(item.reference));
  }
  return {std::move(tokens), std::move(references)};
}

SettingsReader::Pair SettingsReader::convert_map(const Node& node, const std::string& path,
                                                 const std::vector<std::string>& skip) {
  core::Value::Object tokens, references;
  for (const auto& member : node.members) {
    if (std::find(skip.begin(), skip.end(), member.key) != skip.end()) continue;
    if (member.key == "<<") {
      report_.error(member.at, "merge keys (<<) are not supported", "each key written out");
      continue;
    }
    Pair value = convert(member.value, path + "." + member.key, member.key);
    tokens.insert_or_assign(member.key, std::move(value.token));
    references.insert_or_assign(member.key, std::move(value.reference));
  }
  return {std::move(tokens), std::move(references)};
}

SettingsReader::Pair SettingsReader::convert_text(const Node& node, const std::string& path, std::string_view key) {
  const std::string& text = node.text;
  const std::size_t colon = text.find(':');
  const bool alone = text.starts_with("${") && text.ends_with("}") && text.find("${", 2) == std::string::npos;
  if (alone && text.starts_with("${exec:")) return convert_program(node, path);  // arguments may contain braces
  const bool whole = alone && colon != std::string::npos && text.find('}') == text.size() - 1;
  if (whole) {
    file_.clear();
    named_file_.clear();
    const auto bytes = resolve(node, text.substr(2, colon - 2), text.substr(colon + 1, text.size() - colon - 2));
    if (!file_.empty()) out_.files.push_back({owner_, path.substr(1), make_token(path), file_});
    const bool variable = text.starts_with("${env:");
    out_.references.push_back({owner_, text, variable ? CredentialUse::Kind::env : CredentialUse::Kind::file,
                               variable ? text.substr(6, text.size() - 7) : std::string(), named_file_});
    return add_secret(path, bytes.value_or(""), text);
  }
  if (looks_like_reference(text)) {
    report_.error(node.at, "a secret reference inside other text", "the reference as the whole value", "",
                  "put the whole text into the file, variable or credential");
    return {};
  }
  core::Value value = scalar_value(node);
  const bool is_text = value.boolean() == nullptr && !text.empty();
  if (is_text && (is_secret_name(key) || (value.string() != nullptr && holds_credentials(text)))) {
    const std::string what = "a secret is in clear text in setting '" + path.substr(1) + "' of '" + owner_ + "'";
    if (!options_.literal_secrets) {
      report_.error(node.at, what, reference_forms(), "a text", "put the secret where the reference leads");
      return {};
    }
    report_.warn(node.at, what, "use " + reference_forms());
    return add_secret(path, text, "[REDACTED]");
  }
  return {value, value};
}

/// Returns the references that may be written here, for an error.
std::string SettingsReader::reference_forms() const {
  return programs_ == nullptr ? "${env:…}, ${file:…} or ${credential:…}"
                              : "${env:…}, ${file:…}, ${credential:…} or ${exec:…}";
}

std::string SettingsReader::make_token(const std::string& path) const {
  return std::string(kTokenStart) + to_hex(sha256(owner_ + '\0' + path)).substr(0, 24);
}

SettingsReader::Pair SettingsReader::add_secret(const std::string& path, std::string bytes, std::string shown) {
  const std::string token = make_token(path);
  out_.secrets[token] = std::move(bytes);
  return {core::Value(token), core::Value(std::move(shown))};
}

std::optional<std::string> SettingsReader::resolve(const Node& node, const std::string& scheme,
                                                   const std::string& rest) {
  if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) {
    report_.error(node.at, "unknown secret reference '${" + scheme + ":…}'", reference_forms(), "",
                  suggest(scheme, {kSchemes.begin(), kSchemes.end() - (programs_ == nullptr ? 1 : 0)}));
    return std::nullopt;
  }
  if (rest.empty()) {
    report_.error(node.at, "a secret reference that names nothing", "${" + scheme + ":NAME}");
    return std::nullopt;
  }
  if (!options_.resolve_secrets) return "";
  if (scheme == "env") return resolve_env(node, rest);
  if (scheme == "credential") return resolve_credential(node, rest);
  const std::filesystem::path path(rest);
  return read_file(node,
                   path.is_absolute() ? rest : (std::filesystem::path(report_.file).parent_path() / path).string());
}

std::optional<std::string> SettingsReader::environment(const std::string& name) const {
  return environment_of(options_, name);
}

std::optional<std::string> SettingsReader::resolve_env(const Node& node, const std::string& name) {
  auto value = environment(name);
  if (value && !value->empty()) return value;
  report_.error(node.at, "environment variable " + name + " is " + (value ? "empty" : "not set"), "the secret in it",
                "", "set it in the environment of the agent, for instance in its systemd unit");
  return std::nullopt;
}

std::optional<std::string> SettingsReader::resolve_credential(const Node& node, const std::string& name) {
  const auto folder = environment("CREDENTIALS_DIRECTORY");
  if (name.find('/') != std::string::npos) {
    report_.error(node.at, "credential '" + name + "' has a slash in its name", "a name as in LoadCredential=");
    return std::nullopt;
  }
  if (folder && !folder->empty()) return read_file(node, *folder + "/" + name);
  report_.error(node.at, "credential '" + name + "' cannot be read: $CREDENTIALS_DIRECTORY is not set",
                "to be started by systemd", "", "add LoadCredential=" + name + ":/path to the unit, or use ${file:…}");
  return std::nullopt;
}

/// A user who can replace a secret decides as whom the agent logs in. A user who can read it can log in as the agent.
void SettingsReader::warn_of_rights(const Node& node, const std::string& path, const Rights& rights) {
  if (!rights.replaced.empty()) report_.warn(node.at, replaceable_warning(path, rights), "");
  if (!rights.read.empty()) report_.warn(node.at, "secret file " + rights.read, "");
}

std::optional<std::string> SettingsReader::read_file(const Node& node, const std::string& path) {
  const auto absolute = std::filesystem::absolute(path);
  report_.secret_files.push_back(absolute);
  named_file_ = absolute;
  auto read = options_.regular_files ? read_regular_secret_file(path) : read_secret_file(path);
  if (read && read->mark.regular) file_ = absolute;
  if (read) warn_of_rights(node, path, read->rights);
  if (read) return std::move(read->text);
  const bool unreadable = read.error().code == Code::unavailable, unfit = read.error().code == Code::invalid;
  report_.error(node.at, read.error().message,
                unreadable ? "a file that the agent's user may read"
                : unfit    ? "a regular file of 1 byte to 64 KiB"
                           : "",
                "", unreadable ? "check that it exists and its owner and mode" : "");
  return std::nullopt;
}

}  // namespace driftd::config
