// SPDX-License-Identifier: Apache-2.0
#include "resolver/bindings.hpp"

#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <cctype>
#include <set>

namespace driftd::resolver {
namespace {

using consumer::Code;
using consumer::Result;

constexpr std::size_t kMaxText = 1 << 20, kMaxBindings = 1'024, kMaxName = 253;
constexpr const char* kWhere = "BACKEND_BINDINGS";
constexpr const char* kForms =
    "expected names (`state_store=orders-cache,events`) or an object, slot → name or {backendRef} or {service, secret}";

tl::unexpected<consumer::Error> wrong(const std::string& where, const std::string& what) {
  return consumer::fail(Code::invalid, where + ": " + what);
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kMaxName && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

bool is_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos || colon == 0 || text.size() - colon > 6) return false;
  const std::string port = text.substr(colon + 1);
  const bool digits =
      !port.empty() && std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const bool printable = std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
  return digits && printable && std::stoi(port) >= 1 && std::stoi(port) <= 65'535;
}

/// Splits at commas and checks each part, as Kafka's lists of brokers need it.
bool are_endpoints(const std::string& text) {
  std::size_t from = 0;
  while (true) {
    const auto comma = text.find(',', from);
    if (!is_endpoint(text.substr(from, comma == text.npos ? comma : comma - from))) return false;
    if (comma == text.npos) return true;
    from = comma + 1;
  }
}

Result<Binding> check(Binding out) {
  const std::string where = std::string(kWhere) + ": " + (is_name(out.slot) ? out.slot : "a slot");
  if (!is_name(out.slot))
    return wrong(kWhere, "a slot's name has other characters than letters, digits, `-`, `_`, `.`");
  const int forms = int{!out.backend.empty()} + int{!out.service.empty()} + int{!out.mounted.empty()};
  if (forms != 1) {
    return wrong(where, "expected one of `backendRef`, `service` and `serviceBinding`, found " + std::to_string(forms));
  }
  const bool folder = is_name(out.mounted) && out.mounted.find_first_not_of('.') != out.mounted.npos;
  if (!out.mounted.empty() && !folder) return wrong(where + ".serviceBinding", "this is not a name of a folder");
  if (!out.backend.empty() && !is_name(out.backend))
    return wrong(where, "the backend's name is not a name of a backend");
  if (!out.service.empty() && !are_endpoints(out.service)) return wrong(where + ".service", "expected host:port");
  if (!out.secret.empty() && out.service.empty()) {
    return wrong(where + ".secret", "a Secret is named beside a `service` only; that of a backend is in the registry");
  }
  if (!out.key.empty() && out.secret.empty()) return wrong(where + ".key", "there is no `secret` beside it");
  if (!out.secret.empty() && !is_name(out.secret)) return wrong(where + ".secret", "this is not a name of a Secret");
  return out;
}

Result<std::string> scalar(const YAML::Node& node, const std::string& where) {
  if (node.IsScalar()) return node.Scalar();
  return wrong(where, "expected a string");
}

Result<Binding> read_members(const YAML::Node& node, Binding out) {
  const std::string where = std::string(kWhere) + ": " + out.slot;
  std::set<std::string> seen;
  for (const auto& member : node) {
    const auto name = scalar(member.first, where);
    if (!name) return tl::unexpected(name.error());
    if (!seen.insert(*name).second) return wrong(where + "." + *name, "it is there twice");
    const auto value = scalar(member.second, where + "." + *name);
    if (!value) return tl::unexpected(value.error());
    if (*name == "required") {
      if (*value != "true" && *value != "false") return wrong(where + ".required", "expected true or false");
      out.required = *value == "true";
      continue;
    }
    std::string* to = *name == "backendRef"       ? &out.backend
                      : *name == "service"        ? &out.service
                      : *name == "secret"         ? &out.secret
                      : *name == "serviceBinding" ? &out.mounted
                      : *name == "key"            ? &out.key
                      : *name == "type"           ? &out.type
                                                  : nullptr;
    if (to == nullptr) {
      return wrong(
          where,
          "there is an unknown member; expected backendRef, required, serviceBinding, service, secret, key, type");
    }
    *to = *value;
  }
  return check(std::move(out));
}

Result<Binding> read_binding(const YAML::Node& slot, const YAML::Node& value) {
  if (!slot.IsScalar()) return wrong(kWhere, kForms);
  Binding out;
  out.slot = slot.Scalar();
  if (!is_name(out.slot)) return check(std::move(out));
  if (value.IsMap()) return read_members(value, std::move(out));
  if (!value.IsScalar()) return wrong(std::string(kWhere) + ": " + out.slot, "expected a backend's name or an object");
  out.backend = value.Scalar();
  return check(std::move(out));
}

Result<std::vector<Binding>> read_object(std::string_view text) {
  std::vector<Binding> out;
  try {
    const YAML::Node whole = YAML::Load(std::string(text));
    if (!whole.IsMap()) return wrong(kWhere, kForms);
    for (const auto& entry : whole) {
      auto binding = read_binding(entry.first, entry.second);
      if (!binding) return tl::unexpected(binding.error());
      out.push_back(std::move(*binding));
    }
  } catch (const YAML::Exception& error) {  // its text may quote what it read
    return wrong(kWhere, "neither JSON nor YAML at line " + std::to_string(error.mark.line + 1) + ", column " +
                             std::to_string(error.mark.column + 1) + "; " + kForms);
  }
  return out;
}

Result<std::vector<Binding>> read_names(std::string_view text) {
  std::vector<Binding> out;
  std::string word;
  const auto is_end = [](char c) { return c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !is_end(text[i])) {
      word += text[i];
      continue;
    }
    if (word.empty()) continue;
    const auto equals = word.find('=');
    Binding one;
    one.slot = word.substr(0, equals);
    one.backend = equals == word.npos ? word : word.substr(equals + 1);
    word.clear();
    auto binding = check(std::move(one));
    if (!binding) return tl::unexpected(binding.error());
    out.push_back(std::move(*binding));
  }
  return out;
}

}  // namespace

Result<std::vector<Binding>> parse_bindings(std::string_view text) {
  if (text.size() > kMaxText) return wrong(kWhere, "larger than 1 MiB");
  const bool object = text.find_first_of(":{[") != text.npos;
  auto out = object ? read_object(text) : read_names(text);
  if (!out) return out;
  if (out->empty()) return wrong(kWhere, std::string("there is no binding; ") + kForms);
  if (out->size() > kMaxBindings) return wrong(kWhere, "more than 1,024 bindings");
  std::set<std::string> slots;
  for (const auto& one : *out) {
    if (!slots.insert(one.slot).second) return wrong(std::string(kWhere) + ": " + one.slot, "the slot is there twice");
  }
  return out;
}

}  // namespace driftd::resolver
