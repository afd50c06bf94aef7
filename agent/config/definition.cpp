// SPDX-License-Identifier: Apache-2.0
// Reads the definition of a manual backend, which a caller of gRPC sent: the same keys as in the file, with less trust.
#include <algorithm>
#include <array>

#include "base/escape.hpp"
#include "base/secret_text.hpp"
#include "config/parts.hpp"
#include "config/registry.hpp"
#include "config/secrets.hpp"
#include "core/disclosure.hpp"

namespace driftd::config {
namespace {

// What only the operator of the agent may say: which machine runs it, whose state it takes over, where it runs, how
// much of the machine it may use, and which of its values may be shown.
constexpr std::array<std::string_view, 5> kKeysOfTheFile = {"node", "was", "isolation", "budgets", "redact"};

bool allowed(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return core::Glob::of_name(glob).matches(std::string_view(text));
  });
}

std::string list_of(const std::vector<std::string>& globs) {
  std::string out;
  for (const auto& glob : globs) out += (out.empty() ? "" : ", ") + glob;
  return out.empty() ? "none" : out;
}

/// Reports each reference of a definition that `limits` does not allow. It comes before any of them is read.
void check_references(Report& report, const Node& node, const std::string& path, const ManualLimits& limits) {
  for (const auto& member : node.members) check_references(report, member.value, path + "." + member.key, limits);
  for (const auto& item : node.items) check_references(report, item, path + "[]", limits);
  if (node.kind != Node::Kind::scalar || !node.text.starts_with("${")) return;
  const std::string name = node.text.substr(2, node.text.size() - 2 - (node.text.ends_with("}") ? 1 : 0));
  const bool file = name.starts_with("file:");
  const std::filesystem::path read = file ? name.substr(5) : std::string();
  if (file && (!read.is_absolute() || read.lexically_normal().native() != read.native())) {
    report.error({}, path + ": a manual backend names files by their absolute path, without '.', '..' and '//'",
                 "${file:/run/secrets/NAME}", node.text);
  } else if (!allowed(limits.references, name)) {
    report.error({}, path + ": manual backends may not use this reference",
                 "one that grpc.register.references allows: " + list_of(limits.references), node.text,
                 "an operator of the agent can add it there");
  }
}

/// Reports a text that everybody may read who reads backends, and that may hold a secret. It is not repeated.
void check_public_text(Report& report, const std::string& text, const std::string& what, const std::string& expected) {
  if (!may_hold_secret(text) && without_credentials(text) == text) return;
  report.error({}, what + " may hold a secret in clear text, and whoever reads backends sees it", expected, "a text",
               "put the secret into 'settings' or 'credentials', as a reference");
}

void check_public_texts(Report& report, const Node& node) {
  const Node* endpoint = node.find("endpoint");
  if (endpoint != nullptr) {
    check_public_text(report, endpoint->text, "'endpoint'", "an address without user, password, query and fragment");
  }
  const Node *labels = node.find("labels"), *patterns = node.find("patterns");
  for (const auto& member : labels == nullptr ? std::vector<Node::Member>() : labels->members) {
    const bool named = core::suspicious_name(member.key) && !core::harmless_value(member.value.text);
    check_public_text(report, member.key, "the name of one of 'labels'", "a name");
    check_public_text(report, named ? "password=" + member.value.text : member.value.text,
                      "label '" + without_credentials(member.key) + "'", "a text without a secret");
  }
  for (const auto& item : patterns == nullptr ? std::vector<Node>() : patterns->items) {
    check_public_text(report, item.text, "one of 'patterns'", "a pattern without a secret");
  }
}

void check_definition(Report& report, const Node& node, const ManualLimits& limits) {
  for (const auto key : kKeysOfTheFile) {
    if (node.find(std::string(key)) == nullptr) continue;
    report.error({}, "'" + std::string(key) + "' is for backends of the configuration only", "a definition without it");
  }
  const Node* provider = node.find("provider");
  if (provider != nullptr && provider->kind == Node::Kind::scalar) {
    if (provider->text.find('/') != std::string::npos) {
      report.error({}, "'provider' is a path, which only the configuration may name", "the id or type of a plugin",
                   "'" + provider->text + "'", "`driftd plugin ls` lists those that are installed");
    } else if (!allowed(limits.providers, provider->text)) {
      report.error({}, "manual backends may not have this 'provider'",
                   "one that grpc.register.providers allows: " + list_of(limits.providers), "'" + provider->text + "'");
    }
  }
  const Node* name = node.find("name");
  if (name != nullptr && name->kind == Node::Kind::scalar) {
    const std::string fault = core::invalid_name_reason(name->text);
    if (!fault.empty()) {
      report.error({}, "a backend cannot be named '" + name->text + "': " + fault, "letters, digits, - _ .");
    }
  }
  check_public_texts(report, node);
  for (const auto& member : node.members) check_references(report, member.value, member.key, limits);
}

}  // namespace

tl::expected<BackendEntry, std::vector<ConfigError>> read_definition(const Config& config, const std::string& json,
                                                                     const ManualLimits& limits,
                                                                     const LoadOptions& options) {
  Report report{config.file, {}, {}, {}};
  const auto parsed = core::parse(json);
  if (!parsed || parsed->object() == nullptr) {
    report.error({}, "the definition is not a JSON object" + (parsed ? std::string() : ": " + parsed.error().message));
    return tl::unexpected(report.errors);
  }
  const std::string canonical = core::render(*parsed);
  const auto node = parse_yaml(canonical, config.file);
  if (!node) return tl::unexpected(node.error());
  check_definition(report, *node, limits);
  if (!report.errors.empty()) return tl::unexpected(report.errors);
  LoadOptions strict = options;
  strict.literal_secrets = false;
  strict.regular_files = true;  // whoever opens the other end of a FIFO would decide when the agent goes on
  Config scratch;
  scratch.file = config.file;
  scratch.agent.programs = config.agent.programs;
  bool here = true;
  const Node* name = node->find("name");
  const bool named = name != nullptr && name->kind == Node::Kind::scalar;
  Section section(report, &*node, "backends[]", named ? "backend '" + name->text + "'" : "the backend");
  BackendEntry out{read_backend(std::move(section), *config.defaults, strict, scratch, here), {}, {}, {}};
  for (const auto& registrar : out.spec.spoken_by) {
    if (registrar.source == out.spec.name) report.error({}, "'spoken_by' names the backend itself", "another backend");
  }
  if (!report.errors.empty()) return tl::unexpected(report.errors);
  out.spec.definition = canonical;
  out.spec.isolation = core::SessionSpec::Isolation::process;
  out.programs = std::move(scratch.program_uses);
  out.files = std::move(scratch.file_uses);
  out.secret_files = std::move(report.secret_files);
  out.references = std::move(scratch.credential_uses);
  return out;
}

core::Rules rules_of(const Defaults& defaults) {
  core::Rules out = defaults.rules;
  out.generation = generation_of(out);
  return out;
}

std::string render_definition(const std::vector<ConfigError>& errors) {
  std::string out;
  for (const auto& error : errors) {
    out += (out.empty() ? "" : "; and ") + error.what;
    if (!error.expected.empty()) out += "; expected " + error.expected;
    if (!error.found.empty()) out += "; found " + error.found;
    if (!error.next.empty()) out += "; " + error.next;
  }
  return escaped(out);
}

}  // namespace driftd::config
