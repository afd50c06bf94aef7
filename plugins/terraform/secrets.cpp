// SPDX-License-Identifier: Apache-2.0
#include "terraform/secrets.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace driftd::terraform {
namespace {

using nlohmann::json;

/// Attributes that providers' schemas call sensitive although their names do not show it; the state does not mark them.
struct Known {
  std::string_view type, attribute;
};
constexpr std::array<Known, 17> kKnown = {{
    {"kubernetes_secret*", "data"},
    {"kubernetes_secret*", "binary_data"},
    {"kubernetes_config_map*", "sensitive_data"},
    {"helm_release", "repository_password"},
    {"random_password", "result"},
    {"random_password", "bcrypt_hash"},
    {"tls_*", "private_key*"},
    {"aws_iam_access_key", "secret"},
    {"aws_iam_access_key", "ses_smtp_password*"},
    {"aws_secretsmanager_secret_version", "secret_*"},
    {"aws_ssm_parameter", "value"},
    {"google_service_account_key", "private_key"},
    {"google_secret_manager_secret_version", "secret_data"},
    {"azurerm_key_vault_secret", "value"},
    {"vault_*", "data_json"},
    {"confluent_api_key", "secret"},
    {"local_sensitive_file", "content*"},
}};

bool plain(const std::string& segment) {
  return !segment.empty() && std::all_of(segment.begin(), segment.end(),
                                         [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

/// One entry of `sensitive_attributes`: a list of {type: get_attr | index, value}.
std::string marked_path(const json& steps) {
  std::string out;
  for (const auto& step : steps) {
    const auto value = step.find("value");
    if (value == step.end()) return out;
    // An index step wraps its key: {"type":"index","value":{"value":"k","type":"string"}}.
    const json& key = value->is_object() && value->contains("value") ? (*value)["value"] : *value;
    if (key.is_string()) {
      out = child_path(out, key.get<std::string>());
    } else if (key.is_number_integer()) {
      out += "[" + key.dump() + "]";
    } else {
      return out;  // an element of a set has no path of its own: the whole set is secret
    }
  }
  return out;
}

/// Returns the value at a marked path; null if the path leads through a set or to nothing.
const json* marked_value(const json& attributes, const json& steps) {
  const json* at = &attributes;
  for (const auto& step : steps) {
    const auto value = step.find("value");
    if (value == step.end()) return nullptr;
    const json& key = value->is_object() && value->contains("value") ? (*value)["value"] : *value;
    if (at->is_object() && key.is_string() && at->contains(key.get<std::string>())) {
      at = &(*at)[key.get<std::string>()];
    } else if (at->is_array() && key.is_number_unsigned() && key.get<std::size_t>() < at->size()) {
      at = &(*at)[key.get<std::size_t>()];
    } else {
      return nullptr;
    }
  }
  return at;
}

/// Returns true if the text is so long that it does not occur elsewhere by accident.
bool telling(const json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().size() >= 4 : value.is_structured() && !value.empty();
}

class Search {
 public:
  Search(const Instance& instance, const Settings& settings) : instance_(instance), settings_(settings) {}

  std::vector<std::string> run() {
    const auto marks = instance_.object.find("sensitive_attributes");
    if (marks != instance_.object.end() && marks->is_array()) {
      for (const auto& steps : *marks) {
        add(marked_path(steps));
        const json* value = marked_value(instance_.attributes, steps);
        if (value != nullptr && telling(*value)) marked_.push_back(value);
      }
    }
    for (const auto& [name, value] : instance_.attributes.items()) {
      if (!value.is_null() && of_type(name)) out_.push_back(child_path({}, name));
    }
    named(instance_.attributes, {});
    return std::move(out_);
  }

 private:
  void add(const std::string& path) {
    if (!path.empty()) return out_.push_back(path);
    for (const auto& item : instance_.attributes.items()) out_.push_back(child_path({}, item.key()));  // all of it
  }
  bool of_type(const std::string& attribute) const {
    return std::any_of(kKnown.begin(), kKnown.end(), [&](const Known& known) {
      return sdk::glob_match(known.type, instance_.type) && sdk::glob_match(known.attribute, attribute);
    });
  }
  bool secret(const std::string& name) const {
    const auto& globs = settings_.sensitive;
    if (std::any_of(globs.begin(), globs.end(), [&](const auto& glob) { return sdk::glob_match(glob, name); }))
      return true;
    return secret_name(name) || secret_name(name.substr(name.rfind('.') + 1));  // flat: `rule.0.password`
  }
  /// Providers copy marked values into computed attributes, and the copies are not marked.
  bool copied(const json& value) const {
    return std::any_of(marked_.begin(), marked_.end(), [&value](const json* marked) { return *marked == value; });
  }
  void named(const json& value, const std::string& path) {
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) named(value[i], path + "[" + std::to_string(i) + "]");
    }
    if (!value.is_object()) return;
    for (const auto& [name, member] : value.items()) {
      if (!member.is_null() && (secret(name) || copied(member))) {
        out_.push_back(child_path(path, name));
      } else {
        named(member, child_path(path, name));
      }
    }
  }

  const Instance& instance_;
  const Settings& settings_;
  std::vector<const json*> marked_;
  std::vector<std::string> out_;
};

}  // namespace

bool secret_name(std::string_view attribute) {
  static constexpr std::array<std::string_view, 22> kWhole = {"password",
                                                              "passwd",
                                                              "secret",
                                                              "token",
                                                              "private_key",
                                                              "private_key_pem",
                                                              "private_key_openssh",
                                                              "access_key",
                                                              "secret_key",
                                                              "api_key",
                                                              "client_secret",
                                                              "auth_token",
                                                              "kube_config_raw",
                                                              "connection_string",
                                                              "client_key",
                                                              "passphrase",
                                                              "bearer_token",
                                                              "sas_token",
                                                              "primary_key",
                                                              "secondary_key",
                                                              "password_wo",
                                                              "passwords"};
  std::string name(attribute);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(kWhole.begin(), kWhole.end(), name) != kWhole.end()) return true;
  for (const std::string_view tail : {"_password", "_secret", "_token", "_private_key", "_passphrase", "_secret_key",
                                      "_connection_string", "_access_key", "_api_key"}) {
    if (name.size() > tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0) return true;
  }
  return false;
}

std::vector<std::string> secret_paths(const Instance& instance, const Settings& settings) {
  std::vector<std::string> out = Search(instance, settings).run();
  std::sort(out.begin(), out.end());
  std::vector<std::string> least;  // what lies below a secret is secret with it
  for (auto& path : out) {
    const auto covers = [&path](const std::string& above) {
      return path.starts_with(above) &&
             (path.size() == above.size() || path[above.size()] == '.' || path[above.size()] == '[');
    };
    if (std::none_of(least.begin(), least.end(), covers)) least.push_back(std::move(path));
  }
  return least;
}

std::string child_path(const std::string& path, const std::string& member) {
  if (!plain(member)) {
    return path + "[" + json(member).dump(-1, ' ', false, json::error_handler_t::replace) + "]";
  }
  return path.empty() ? member : path + "." + member;
}

}  // namespace driftd::terraform
