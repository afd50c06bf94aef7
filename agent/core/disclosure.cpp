// SPDX-License-Identifier: Apache-2.0
#include "core/disclosure.hpp"

#include <algorithm>

#include "base/secret_text.hpp"

namespace driftd::core {
namespace {

/// kubectl stores the whole applied object in this annotation, including the data of a Secret.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

Glob everything() { return Glob::parse_path("**").value(); }

/// A pattern covers the values at and below its path; a single name covers every attribute of that name, at any depth.
Result<Glob> parse_pattern(const std::string& text) {
  const auto end = text.ends_with("**") ? "" : ".**";
  DRIFTD_TRY(Glob plain, Glob::parse_path(text + end));
  const auto name = Path::parse(text);
  const bool single = name ? name->segments().size() == 1 : text.find_first_of(".[") == std::string::npos;
  if (!single || text.starts_with("**")) return plain;
  return Glob::parse_path((text.starts_with('[') ? "**" : "**.") + text + end);
}

const std::string* member_of(const Path::Segment& segment) { return std::get_if<std::string>(&segment); }

/// Returns the name by which a value is judged: the last member of its path that is a name.
std::string_view name_of(const ResourceId& id, const Path& path) {
  const auto& segments = path.segments();
  for (auto at = segments.rbegin(); at != segments.rend(); ++at) {
    const std::string* name = member_of(*at);
    if (name != nullptr && *name != "value") return *name;
  }
  return std::string_view(id.id).substr(id.id.rfind('.') + 1);
}

/// Returns true if the name of the value, or of the map that contains it, suggests a secret. Names further up are names
/// of things, such as a container `keycloak`.
bool any_suspicious(const Path& path) {
  const auto& segments = path.segments();
  int left = !segments.empty() && member_of(segments.back()) == nullptr ? 1 : 2;
  for (auto at = segments.rbegin(); at != segments.rend() && left > 0; ++at) {
    const std::string* name = member_of(*at);
    if (name == nullptr || *name == "value") continue;
    if (suspicious_name(*name)) return true;
    --left;
  }
  return false;
}

/// Returns true if a number under this name may be a secret, such as a PIN or a one-time password.
bool names_a_pin(std::string_view name) {
  const auto has = [&](const char* word) {
    return std::search(name.begin(), name.end(), word, word + std::char_traits<char>::length(word),
                       [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; }) != name.end();
  };
  return name == "PIN" || name == "pin" || has("pass") || has("pwd") || has("otp") || has("secret");
}

/// Returns true if an argument of a command line is shown. `--flag=value` is judged as a setting named `flag`.
bool harmless_word(std::string_view name, std::string_view text) {
  const auto equals = text.find('=');
  if (text.starts_with("--") && equals != text.npos) {
    const std::string_view flag = text.substr(2, equals - 2), value = text.substr(equals + 1);
    return !suspicious_name(flag) && (harmless_value(value) || harmless_name(flag));
  }
  if (text.starts_with("--"))
    return text.size() <= 40 && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == text.npos;
  return harmless_value(text) || harmless_name(name);
}

}  // namespace

Disclosure::Disclosure(const std::vector<FreeForm>& free_form, const std::vector<RedactRule>& rules) {
  for (const auto& form : free_form) {
    auto path = parse_pattern(form.path.find_first_of(".[*") == std::string::npos ? form.path + ".**" : form.path);
    free_form_.push_back({Glob::of_name(form.kind), Glob::of_name(form.id.empty() ? "*" : form.id),
                          path ? std::move(*path) : everything()});
  }
  for (const auto& rule : rules) {
    auto path = parse_pattern(rule.path);
    if (path || !rule.show) rules_.push_back({rule.show, path ? std::move(*path) : everything()});
  }
}

bool Disclosure::is_free_form(const ResourceId& id, const Path& path) const {
  return std::any_of(free_form_.begin(), free_form_.end(), [&](const Place& place) {
    return place.kind.matches(std::string_view(id.kind)) && place.id.matches(std::string_view(id.id)) &&
           place.path.matches(path);
  });
}

bool Disclosure::is_all_free_form(const ResourceId& id) const {
  return std::any_of(free_form_.begin(), free_form_.end(), [&](const Place& place) {
    return place.path.text() == "**" && place.kind.matches(std::string_view(id.kind)) &&
           place.id.matches(std::string_view(id.id));
  });
}

Visibility Disclosure::of(const ResourceId& id, const Path& path, const Value& leaf) const {
  return decide(id, path, leaf, is_free_form(id, path));
}

Visibility Disclosure::decide(const ResourceId& id, const Path& path, const Value& leaf, bool free_form) const {
  const auto& segments = path.segments();
  const bool applied = std::any_of(segments.begin(), segments.end(), [](const auto& segment) {
    return member_of(segment) != nullptr && *member_of(segment) == kLastApplied;
  });
  if (applied) return Visibility::withheld;
  const std::string* text = leaf.string();
  const auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const Rule& one) { return one.path.matches(path); });
  if (text != nullptr && holds_secret(*text)) return Visibility::secret;
  if (rule != rules_.end()) return rule->show ? Visibility::shown : Visibility::withheld;
  if (text != nullptr && may_hold_secret(*text)) return Visibility::withheld;
  if (!free_form || leaf.boolean() != nullptr) return Visibility::shown;
  const std::string_view name = name_of(id, path);
  if (text == nullptr) return names_a_pin(name) ? Visibility::withheld : Visibility::shown;
  if (text->empty()) return Visibility::shown;
  const bool number = text->find_first_not_of("0123456789") == std::string::npos;
  if (number && names_a_pin(name)) return Visibility::withheld;
  if (number && text->size() <= 10) return Visibility::shown;
  const bool harmless = !any_suspicious(path) && !suspicious_name(name) && harmless_word(name, *text);
  return harmless ? Visibility::shown : Visibility::withheld;
}

Value Disclosure::status(const ResourceId& id, const Value& status) const {
  return status_at(id, Path(), status, is_all_free_form(id));
}

Value Disclosure::status_at(const ResourceId& id, const Path& path, const Value& value, bool free_form) const {
  if (const auto* members = value.object()) {
    Value::Object out;
    for (const auto& [name, member] : *members) out.emplace(name, status_at(id, path.child(name), member, free_form));
    return Value(std::move(out));
  }
  if (const auto* elements = value.array()) {
    Value::Array out;
    for (std::size_t i = 0; i < elements->size(); ++i)
      out.push_back(status_at(id, path.child(i), (*elements)[i], free_form));
    return Value(std::move(out));
  }
  if (value.is_null() || decide(id, path, value, free_form) == Visibility::shown) return value;
  return Value(std::string("[REDACTED]"));
}

std::string Disclosure::shown_text(std::string_view text) {
  std::string cut = without_credentials(text);
  return may_hold_secret(cut) ? std::string("[REDACTED]") : cut;
}

}  // namespace driftd::core
