// SPDX-License-Identifier: Apache-2.0
#include "terraform/mapping.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace driftd::terraform {
namespace {

/// A JSON tree whose numbers keep their token: nlohmann's parser calls this with the text of each float and integer.
/// Integers beyond 64 bits and every float are marked strings, unmarked again when rendered.
using nlohmann::json;

/// Marks a raw number token inside a string value; U+FDD0 is a noncharacter, so no text holds it by accident.
const std::string kRaw = "\xEF\xB7\x90";

class RawNumbers : public nlohmann::detail::json_sax_dom_parser<json> {
  using Base = nlohmann::detail::json_sax_dom_parser<json>;

 public:
  explicit RawNumbers(json& root) : Base(root, false) {}
  bool number_float(double, const std::string& token) {
    std::string raw = kRaw + token;
    return Base::string(raw);
  }
  bool string(std::string& value) {
    if (value.rfind(kRaw, 0) != 0) return Base::string(value);
    error = "a string starts with the noncharacter U+FDD0";
    return false;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) {
    error = e.what();
    return false;
  }
  std::string error;
};

[[noreturn]] void corrupt(const std::string& text) { throw sdk::Failure(DRIFTD_CORRUPT, text); }

std::string render(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  const std::string open = "\"" + kRaw;
  for (auto at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    text.erase(at, open.size());
    text.erase(text.find('"', at), 1);
  }
  return text;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// `module.m.aws_x.y["k"]`, `data.aws_x.y[0]`.
std::string address(const json& resource, const json& instance) {
  std::string out = text_of(resource, "module");
  if (!out.empty()) out += ".";
  if (text_of(resource, "mode") == "data") out += "data.";
  out += text_of(resource, "type") + "." + text_of(resource, "name");
  const auto key = instance.find("index_key");
  if (key != instance.end() && !key->is_null()) out += "[" + key->dump() + "]";
  const std::string deposed = text_of(instance, "deposed");
  if (!deposed.empty()) out += " (deposed " + deposed + ")";
  return out;
}

bool plain(const std::string& segment) {
  return !segment.empty() && std::all_of(segment.begin(), segment.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-';
         });
}

std::string child(const std::string& path, const std::string& member) {
  if (!plain(member)) return path + "[" + json(member).dump() + "]";
  return path.empty() ? member : path + "." + member;
}

/// One entry of `sensitive_attributes`: a list of {type: get_attr | index, value}.
std::string sensitive_path(const json& steps) {
  std::string out;
  for (const auto& step : steps) {
    const auto value = step.find("value");
    if (value == step.end()) return {};
    // An index step wraps its key: {"type":"index","value":{"value":"k","type":"string"}}.
    const json& key = value->is_object() && value->contains("value") ? (*value)["value"] : *value;
    if (key.is_string()) {
      out = child(out, key.get<std::string>());
    } else if (key.is_number_integer()) {
      out += "[" + key.dump() + "]";
    } else {
      return out;  // an element of a set has no path of its own: the whole set is secret
    }
  }
  return out;
}

void well_known(const json& value, const std::string& path, const Settings& settings, std::vector<std::string>& out) {
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) well_known(value[i], path + "[" + std::to_string(i) + "]", settings, out);
  }
  if (!value.is_object()) return;
  for (const auto& [name, member] : value.items()) {
    const bool mine = std::any_of(settings.sensitive.begin(), settings.sensitive.end(),
                                  [&, &attribute = name](const auto& glob) { return sdk::glob_match(glob, attribute); });
    if (!member.is_null() && (mine || secret_name(name))) {
      out.push_back(child(path, name));
    } else {
      well_known(member, child(path, name), settings, out);
    }
  }
}

json parse_text(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) corrupt("the state file is empty");
  json root;
  RawNumbers sax(root);
  if (!json::sax_parse(text, &sax)) corrupt("the state file is no JSON: " + sax.error);
  if (!root.is_object()) corrupt("the state file holds no JSON object");
  return root;
}

void check_format(const json& root) {
  if (root.contains("encrypted_data")) {
    throw sdk::Failure(DRIFTD_UNSUPPORTED, "the state is encrypted by OpenTofu; driftd cannot read it");
  }
  const auto version = root.find("version");
  if (version == root.end() || !version->is_number_integer()) corrupt("the state file has no 'version'");
  if (*version != 4) {
    throw sdk::Failure(DRIFTD_UNSUPPORTED, "state format version " + version->dump() +
                                               "; this provider reads version 4 (Terraform 0.12 and newer)");
  }
  if (!root.contains("resources") || !root["resources"].is_array()) corrupt("the state file has no 'resources' list");
}

sdk::Record base(const State& state, const char* kind, std::string id) {
  sdk::Record out;
  out.kind = kind;
  out.id = std::move(id);
  out.version = state.serial;
  out.origin = "terraform-state";
  out.metadata = {{"lineage", state.lineage}, {"serial", state.serial}};
  return out;
}

sdk::Record instance_record(const State& state, const json& resource, const json& instance, const Settings& settings) {
  sdk::Record out = base(state, "instance", address(resource, instance));
  json attributes = instance.value("attributes", json::object());
  if (attributes.is_null()) attributes = instance.value("attributes_flat", json::object());
  if (!attributes.is_object()) corrupt(out.id + ": 'attributes' is no object");
  const json declared = instance.value("sensitive_attributes", json::array());
  for (const auto& steps : declared) {
    const std::string path = sensitive_path(steps);
    if (!path.empty()) out.sensitive.push_back(path);
  }
  well_known(attributes, {}, settings, out.sensitive);
  out.body = render(attributes);
  out.metadata["resource_type"] = text_of(resource, "type");
  out.metadata["provider"] = text_of(resource, "provider");
  out.status = json{{"status", text_of(instance, "status")}}.dump();
  return out;
}

sdk::Record output_record(const State& state, const std::string& name, const json& output) {
  sdk::Record out = base(state, "output", name);
  json body = {{"value", output.value("value", json())}};
  if (output.contains("type")) body["type"] = output["type"].is_string() ? output["type"] : json(render(output["type"]));
  out.body = render(body);
  if (output.value("sensitive", false) || secret_name(name)) out.sensitive.push_back("value");
  return out;
}

}  // namespace

bool secret_name(std::string_view attribute) {
  static constexpr std::array<std::string_view, 20> kWhole = {
      "password", "passwd", "secret", "token", "private_key", "private_key_pem", "private_key_openssh", "access_key",
      "secret_key", "api_key", "client_secret", "auth_token", "kube_config_raw", "connection_string", "client_key",
      "passphrase", "bearer_token", "sas_token", "primary_key", "secondary_key"};
  std::string name(attribute);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(kWhole.begin(), kWhole.end(), name) != kWhole.end()) return true;
  for (const std::string_view tail : {"_password", "_secret", "_token", "_private_key", "_passphrase", "_secret_key"}) {
    if (name.size() > tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0) return true;
  }
  return false;
}

State parse_state(const std::string& text, const Settings& settings, std::int64_t lock_age_s) {
  const json root = parse_text(text);
  check_format(root);
  State out;
  out.lineage = text_of(root, "lineage");
  out.terraform_version = text_of(root, "terraform_version");
  out.serial = root.contains("serial") ? root["serial"].dump() : "0";
  if (out.lineage.empty()) corrupt("the state file has no 'lineage'");
  sdk::Record state = base(out, "state", "state");
  state.body = json{{"lineage", out.lineage}, {"terraform_version", out.terraform_version}}.dump();
  state.status = json{{"serial", out.serial}, {"lock_age_s", lock_age_s}}.dump();
  out.records.push_back(std::move(state));
  try {
    for (const auto& resource : root["resources"]) {
      for (const auto& instance : resource.at("instances")) {
        out.records.push_back(instance_record(out, resource, instance, settings));
      }
    }
    const json outputs = root.value("outputs", json::object());
    for (const auto& [name, output] : outputs.items()) {
      out.records.push_back(output_record(out, name, output));
    }
  } catch (const json::exception& e) {
    corrupt(std::string("the state file has an unexpected form: ") + e.what());
  }
  return out;
}

}  // namespace driftd::terraform
