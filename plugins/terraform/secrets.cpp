// SPDX-License-Identifier: Apache-2.0
#include "terraform/secrets.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/bounded_json.hpp"
#include "terraform/text_members.hpp"
#include "terraform/tree.hpp"

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

/// The same of plain text; null for nothing.
const char* marked_text(const char* at, const json& steps) {
  for (const auto& step : steps) {
    const auto value = step.find("value");
    if (value == step.end()) return nullptr;
    const json& key = value->is_object() && value->contains("value") ? (*value)["value"] : *value;
    const char* found = nullptr;
    if (*at == '{' && key.is_string()) {
      each_member(at, [&](std::string_view name, const char* member) {
        if (name == key.get_ref<const std::string&>()) found = member;
        return end_of_value(member);
      });
    } else if (*at == '[' && key.is_number_unsigned()) {
      std::uint64_t index = 0;
      each_element(at, [&](const char* element) {
        if (index++ == key.get<std::uint64_t>()) found = element;
        return end_of_value(element);
      });
    }
    if (found == nullptr) return nullptr;
    at = found;
  }
  return at;
}

/// Returns true if the text is so long that it does not occur elsewhere by accident.
bool telling(const json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().size() >= 4 : value.is_structured() && !value.empty();
}

bool known_of_type(const Known& known, const std::string& type) { return sdk::glob_match(known.type, type); }

/// Returns true if an attribute is secret in instances of this type.
bool secret_of_type(const std::string& type, std::string_view attribute) {
  return std::any_of(kKnown.begin(), kKnown.end(), [&](const Known& known) {
    return known_of_type(known, type) && sdk::glob_match(known.attribute, attribute);
  });
}

/// Returns true if the settings or its name make a member secret.
bool secret_member(const Settings& settings, std::string_view name) {
  const auto& globs = settings.sensitive;
  if (std::any_of(globs.begin(), globs.end(), [&](const auto& glob) { return sdk::glob_match(glob, name); }))
    return true;
  return secret_name(name);
}

/// Searches the tree of attributes that are not plain.
class Search {
 public:
  Search(const Instance& instance, const Settings& settings)
      : instance_(instance),
        settings_(settings),
        attributes_(instance.tree()),
        marks_(instance.sensitive.empty() ? json() : parse_tree(instance.sensitive, common::kMaxNesting)) {}

  std::vector<std::string> run() {
    if (marks_.is_array()) {
      for (const auto& steps : marks_) {
        add(marked_path(steps));
        const json* value = marked_value(attributes_, steps);
        if (value != nullptr && telling(*value)) marked_.push_back(value);
      }
    } else if (!marks_.is_null()) {
      add({});  // marks that cannot be read
    }
    for (const auto& [name, value] : attributes_.items()) {
      if (!value.is_null() && secret_of_type(instance_.type, name)) out_.push_back(child_path({}, name));
    }
    named(attributes_, {});
    return std::move(out_);
  }

 private:
  void add(const std::string& path) {
    if (!path.empty()) return out_.push_back(path);
    for (const auto& item : attributes_.items()) out_.push_back(child_path({}, item.key()));  // all of it
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
      if (!member.is_null() && (secret_member(settings_, name) || copied(member))) {
        out_.push_back(child_path(path, name));
      } else {
        named(member, child_path(path, name));
      }
    }
  }

  const Instance& instance_;
  const Settings& settings_;
  const json& attributes_;
  const json marks_;
  std::vector<const json*> marked_;
  std::vector<std::string> out_;
};

/// Searches the text of plain attributes.
class TextSearch {
 public:
  TextSearch(const Instance& instance, const Settings& settings) : instance_(instance), settings_(settings) {}

  std::vector<std::string> run() {
    const bool known = std::any_of(kKnown.begin(), kKnown.end(),
                                   [this](const Known& one) { return known_of_type(one, instance_.type); });
    if (known) {
      each_member(instance_.attributes.data(), [this](std::string_view name, const char* value) {
        if (*value != 'n' && secret_of_type(instance_.type, name)) out_.push_back(child_path({}, std::string(name)));
        return end_of_value(value);
      });
    }
    read_marks();
    if (instance_.traits.secret_key || !settings_.sensitive.empty() || !marked_.empty())
      named(instance_.attributes.data());
    return std::move(out_);
  }

 private:
  struct Step {
    std::string_view name;  ///< of a member; else:
    std::size_t index = 0;  ///< of an element
    bool member = true;
  };

  static std::string_view text_at(const char* value) {
    return {value, static_cast<std::size_t>(end_of_value(value) - value)};
  }
  void read_marks() {
    const char* at = instance_.sensitive.data();
    if (instance_.sensitive.empty() || *at == 'n') return;
    if (*at != '[') return add_all();  // marks that cannot be read
    if (*behind_blanks(at + 1) == ']') return;
    for (const auto& steps : parse_tree(instance_.sensitive, common::kMaxNesting)) {
      const std::string path = marked_path(steps);
      if (!path.empty()) out_.push_back(path);
      if (path.empty()) add_all();
      const char* value = marked_text(instance_.attributes.data(), steps);
      json marked = value == nullptr ? json() : parse_tree(text_at(value), common::kMaxNesting);
      if (telling(marked)) marked_.push_back({*value, text_value(text_at(value)), std::move(marked)});
    }
  }
  void add_all() {
    each_member(instance_.attributes.data(), [this](std::string_view name, const char* value) {
      out_.push_back(child_path({}, std::string(name)));
      return end_of_value(value);
    });
  }
  /// Providers copy marked values into computed attributes, and the copies are not marked.
  bool copied(const char* value) const {
    return std::any_of(marked_.begin(), marked_.end(), [value](const Marked& marked) {
      if (*value != marked.first) return false;
      const std::string_view text = text_at(value);
      if (*value == '"' && text.find('\\') == text.npos) return text.substr(1, text.size() - 2) == marked.text;
      if (*value == '"') return text_value(text) == marked.text;
      return marked.value == parse_tree(text, common::kMaxNesting);
    });
  }

  const char* named(const char* at) {
    if (*at == '[') {
      std::size_t index = 0;
      return each_element(at, [&](const char* element) {
        return below({{}, index++, false}, [&] { return named(element); });
      });
    }
    if (*at != '{') return end_of_value(at);
    return each_member(at, [this](std::string_view name, const char* value) {
      return below({name}, [&] {
        if (*value == 'n' || !(secret_member(settings_, name) || copied(value))) return named(value);
        out_.push_back(path());
        return end_of_value(value);
      });
    });
  }
  template <class F>
  const char* below(const Step& step, F read) {
    steps_.push_back(step);
    const char* end = read();
    steps_.pop_back();
    return end;
  }
  std::string path() const {
    std::string out;
    for (const auto& step : steps_)
      out = step.member ? child_path(out, std::string(step.name)) : out + "[" + std::to_string(step.index) + "]";
    return out;
  }

  const Instance& instance_;
  const Settings& settings_;
  struct Marked {
    char first;        ///< byte of its text
    std::string text;  ///< its value if it is a text
    json value;
  };
  std::vector<Marked> marked_;  ///< values that the state marks and that do not occur elsewhere by accident
  std::vector<Step> steps_;     ///< from the attributes to the value
  std::vector<std::string> out_;
};

}  // namespace

namespace {

constexpr std::array<std::string_view, 22> kWhole = {
    "password",      "passwd",     "secret",      "token",         "private_key",     "private_key_pem",
    "access_key",    "secret_key", "api_key",     "client_secret", "auth_token",      "private_key_openssh",
    "client_key",    "passphrase", "sas_token",   "bearer_token",  "kube_config_raw", "connection_string",
    "secondary_key", "passwords",  "primary_key", "password_wo"};
constexpr std::array<std::string_view, 9> kTails = {"_password",          "_secret",     "_token",
                                                    "_private_key",       "_passphrase", "_secret_key",
                                                    "_connection_string", "_access_key", "_api_key"};

/// The last four bytes of a name as a number. All bytes have the bit that makes a letter small.
constexpr std::uint32_t tail_of(std::string_view name) {
  std::uint32_t out = 0;
  for (const char c : name.substr(name.size() - 4)) out = out << 8 | static_cast<unsigned char>(c);
  return out | 0x20202020u;
}

/// Few names end like one of the secret ones, so most need one comparison.
bool ends_like_a_secret(std::string_view name) {
  switch (tail_of(name)) {
    case tail_of("password"):
    case tail_of("passwd"):
    case tail_of("secret"):
    case tail_of("token"):
    case tail_of("_key"):
    case tail_of("_pem"):
    case tail_of("openssh"):
    case tail_of("_raw"):
    case tail_of("string"):
    case tail_of("phrase"):
    case tail_of("password_wo"):
    case tail_of("passwords"):
      return true;
    default:
      return false;
  }
}

}  // namespace

bool secret_name(std::string_view attribute) {
  if (attribute.size() < 4 || !ends_like_a_secret(attribute)) return false;
  const auto equal = [](std::string_view name, std::string_view known) {
    return std::equal(name.begin(), name.end(), known.begin(), known.end(),
                      [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  };
  const auto ends = [&](std::string_view tail) {
    return attribute.size() > tail.size() && equal(attribute.substr(attribute.size() - tail.size()), tail);
  };
  const std::string_view last = attribute.substr(attribute.rfind('.') + 1);  // flat: `rule.0.password`
  return std::any_of(kTails.begin(), kTails.end(), ends) ||
         std::any_of(kWhole.begin(), kWhole.end(),
                     [&](std::string_view whole) { return equal(attribute, whole) || equal(last, whole); });
}

std::vector<std::string> secret_paths(const Instance& instance, const Settings& settings) {
  std::vector<std::string> out =
      !instance.is_plain() ? Search(instance, settings).run() : TextSearch(instance, settings).run();
  if (out.empty()) return out;
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
