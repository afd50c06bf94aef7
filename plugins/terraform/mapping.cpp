// SPDX-License-Identifier: Apache-2.0
#include "terraform/mapping.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

#include "common/bounded_json.hpp"
#include "terraform/scanner.hpp"
#include "terraform/secrets.hpp"
#include "terraform/text_members.hpp"
#include "terraform/tree.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

constexpr const char* kEncryptedValue = "the state is encrypted by OpenTofu; driftd has no key for it";

/// If the host would reject a body, its short and flat members are kept. What is left out is unread, so it never looks
/// deleted.
void fit(sdk::Record& out, json attributes) {
  out.body = render(attributes);
  const auto deep = remove_deep_members(attributes, out.body);
  for (const auto& name : deep) {
    out.unread.push_back({child_path({}, name), DRIFTD_CORRUPT,
                          "it nests deeper than " + std::to_string(common::kMaxNesting) + " levels"});
  }
  if (!deep.empty()) out.body = render(attributes);
  if (out.body.size() < common::kMaxBody) return;
  std::vector<std::string> left_out;
  (void)common::fit_members(attributes, common::kMaxBody - 1, left_out);
  for (const auto& name : left_out) {
    out.unread.push_back(
        {child_path({}, name), DRIFTD_BUDGET, "the record is larger than 4 MiB; its longest attributes are left out"});
  }
  out.body = render(attributes);
}

/// Sets the body to the text of the attributes. Only what the host would reject becomes a tree.
void fit(sdk::Record& out, const Instance& instance) {
  if (!instance.is_plain()) return fit(out, instance.tree());
  if (instance.traits.blanks) {
    out.body = minified(instance.attributes, out.body);
  } else {
    out.body = instance.attributes;
  }
  if (out.body.size() >= common::kMaxBody) fit(out, instance.tree());
}

std::string status_of(const Instance& instance) {
  if (instance.status.empty()) return R"({"status":""})";
  return json{{"status", instance.status}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::int64_t number(const std::string& text) {
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

sdk::Record base_record(const Reading& reading, std::string kind, std::string id) {
  sdk::Record out;
  out.kind = std::move(kind);
  out.id = std::move(id);
  out.version = reading.head.serial;
  out.origin = "terraform-state";
  out.observed_ns = reading.sent_ns;
  out.metadata = reading.provenance;
  out.metadata["lineage"] = reading.head.lineage;
  out.metadata["serial"] = reading.head.serial;
  if (!reading.history.empty()) out.metadata["history"] = reading.history;
  return out;
}

sdk::Record state_record(const Reading& reading) {
  const Head& head = reading.head;
  sdk::Record out = base_record(reading, "state", "state");
  json body = {{"lineage", head.lineage}};
  json status = {{"serial", head.serial}, {"lock_age_s", reading.lock_age_s}, {"bytes", reading.size}};
  if (head.encrypted) {
    out.unread.push_back({"terraform_version", DRIFTD_UNSUPPORTED, kEncryptedValue});
    status["encrypted"] = true;
  } else {
    body["terraform_version"] = head.terraform_version;
    status["format"] = head.version;
    status["instances"] = head.managed;
    status["deposed"] = head.deposed;
    status["data_sources"] = head.data;
    status["outputs"] = head.outputs;
  }
  if (!head.checks.empty()) status["checks"] = head.checks;
  if (!head.failing.empty()) status["failing_checks"] = head.failing;
  if (!reading.history.empty()) status["history"] = reading.history;
  for (const auto& [key, value] : reading.provenance) status[key] = value;
  out.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  out.status = status.dump(-1, ' ', false, json::error_handler_t::replace);
  return out;
}

sdk::Record instance_record(const Reading& reading, const Instance& instance, const Settings& settings) {
  sdk::Record out = base_record(reading, "instance", instance.id());
  out.sensitive = secret_paths(instance, settings);
  common::bound_paths(out.sensitive);
  fit(out, instance);
  out.metadata["resource_type"] = instance.type;
  out.metadata["provider"] = instance.resource.provider;
  out.status = status_of(instance);
  return out;
}

sdk::Record output_record(const Reading& reading, const std::string& name, const json& output) {
  sdk::Record out = base_record(reading, "output", name);
  json body = {{"value", output.value("value", json())}};
  const auto type = output.find("type");
  if (type != output.end()) body["type"] = type->is_string() ? *type : json(render(*type));
  fit(out, std::move(body));
  const auto sensitive = output.find("sensitive");
  const bool open = sensitive == output.end() || sensitive->is_null() || *sensitive == false;
  if (!open || secret_name(name)) out.sensitive.push_back("value");
  return out;
}

sdk::Record declared_record(const Reading& reading, const Instance& instance, const Declaration& declared,
                            const std::string& backend) {
  sdk::Record out = base_record(reading, declared.kind, declared.id);
  out.backend = backend;
  fit(out, declared.body);
  out.sensitive = declared.sensitive;
  out.metadata["address"] = instance.address;
  out.metadata["resource_type"] = instance.type;
  return out;
}

std::string history_of(const Head& before, const Head& now) {
  if (before.lineage.empty() || before.lineage != now.lineage) return {};
  if (number(now.serial) < number(before.serial)) return "rolled back";
  const bool told = !before.digest.empty() && !now.digest.empty();
  return told && before.serial == now.serial && before.digest != now.digest ? "tampered" : "";
}

}  // namespace driftd::terraform
