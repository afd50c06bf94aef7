// SPDX-License-Identifier: Apache-2.0
// Columns about approvals: who gave one, and what it replaced.
#include <nlohmann/json.hpp>

#include "base/escape.hpp"
#include "store/fields.hpp"

namespace driftd::store {
namespace {

using Json = nlohmann::json;  // texts, times and a revision: no compared number passes through it

std::string valid_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool has_text(const Json& object, const char* name) { return object.contains(name) && object.at(name).is_string(); }

bool has_number(const Json& object, const char* name) {
  return object.contains(name) && object.at(name).is_number_integer();
}

}  // namespace

std::string to_text(const std::vector<core::Approval>& values) {
  if (values.empty()) return {};
  Json out = Json::array();
  for (const auto& approval : values) {
    Json one{{"actor", approval.actor}, {"at", approval.at_ns}, {"digest", approval.digest}};
    if (approval.expires_ns) one["expires"] = *approval.expires_ns;
    if (approval.uid >= 0) one["uid"] = approval.uid;
    if (!approval.claimed.empty()) one["claimed"] = approval.claimed;
    out.push_back(std::move(one));
  }
  return valid_text(out);
}

Result<std::vector<core::Approval>> parse_approvals(const std::string& text) {
  std::vector<core::Approval> out;
  if (text.empty()) return out;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return corrupt_column("JSON array of approvals");
  for (const auto& item : json) {
    if (!item.is_object() || !has_text(item, "actor") || !has_text(item, "digest") || !has_number(item, "at"))
      return corrupt_column("JSON array of approvals");
    core::Approval one{
        item["actor"].get<std::string>(), item["digest"].get<std::string>(), item["at"].get<Nanos>(), {}, -1, {}};
    if (has_number(item, "expires")) one.expires_ns = item["expires"].get<Nanos>();
    if (has_number(item, "uid")) one.uid = item["uid"].get<std::int64_t>();
    if (has_text(item, "claimed")) one.claimed = item["claimed"].get<std::string>();
    out.push_back(std::move(one));
  }
  return out;
}

std::string to_text(const std::optional<core::FormerBaseline>& value) {
  if (!value) return {};
  Json values = Json::array();
  for (const auto& [path, json] : value->values) {
    values.push_back(Json::array({path, json ? Json(*json) : Json(nullptr)}));
  }
  return valid_text(Json{{"values", std::move(values)},
                         {"external_name", value->external_name},
                         {"schema_revision", value->schema_revision},
                         {"accepted", value->accepted}});
}

Result<std::optional<core::FormerBaseline>> parse_former(const std::string& text) {
  if (text.empty()) return std::optional<core::FormerBaseline>();
  const Json json = Json::parse(text, nullptr, false);
  const bool whole = json.is_object() && has_text(json, "external_name") && has_text(json, "accepted") &&
                     has_number(json, "schema_revision") && json.contains("values") && json.at("values").is_array();
  if (!whole) return corrupt_column("JSON object of a former baseline");
  core::FormerBaseline out;
  out.external_name = json["external_name"].get<std::string>();
  out.accepted = json["accepted"].get<std::string>();
  out.schema_revision = json["schema_revision"].get<std::uint32_t>();
  for (const auto& item : json["values"]) {
    const bool pair = item.is_array() && item.size() == 2 && item[0].is_string();
    if (!pair || !(item[1].is_string() || item[1].is_null())) return corrupt_column("JSON object of a former baseline");
    out.values.emplace_back(item[0].get<std::string>(), std::nullopt);
    if (item[1].is_string()) out.values.back().second = item[1].get<std::string>();
  }
  return std::optional(std::move(out));
}

}  // namespace driftd::store
