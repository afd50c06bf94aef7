// SPDX-License-Identifier: Apache-2.0
#include "postgres/reader.hpp"

#include <nlohmann/json.hpp>

namespace driftd::postgres {

Reader::Reader(sdk::Call& call, Client& client, const Settings& settings)
    : call_(call), client_(client), settings_(settings),
      rights_(map_rights(client.query(call, rights_query(settings.verifiers)), client.version())) {}

Listing Reader::list(std::string_view kind) {
  Listing out;
  out.missing = missing_right(kind, rights_);
  if (!out.missing.empty() && kind != "setting") return out;  // settings: the public ones are still there
  Origin from{client_.endpoint(), settings_.database, {}, settings_.verifiers != Verifiers::off};
  if (from.verifiers && !rights_.verifiers) from.verifier_right = verifier_right(settings_.verifiers);
  const std::int64_t sent = call_.now_ns();
  const Rows rows = client_.query(call_, list_query(kind, rights_, settings_));
  if (kind == "instance") out.records = map_instance(rows, from);
  if (kind == "setting") out.records = map_settings(rows);
  if (kind == "role") out.records = map_roles(rows, from);
  if (kind == "database") out.records = map_databases(rows);
  if (kind == "extension") out.records = map_extensions(rows, from);
  if (kind == "file_setting") out.records = map_file_settings(rows);
  if (kind == "hba_rule") out.records = map_hba_rules(rows);
  for (auto& record : out.records) record.observed_ns = sent;
  return out;
}

std::string Reader::cursor(const std::vector<std::string>& kinds) {
  const Rows rows = client_.query(call_, gate_query(rights_, settings_));
  const Fields row(rows, 0);
  nlohmann::json out{{"v", 1},
                     {"server", client_.endpoint() + "|" + row.text("identity") + "|" + row.text("start")},
                     {"load", row.text("load")},
                     {"database", settings_.database},
                     {"scope", settings_.scope.text()}, {"verifiers", static_cast<int>(settings_.verifiers)}};
  for (const auto& kind : kinds) {
    if (!missing_right(kind, rights_).empty()) return {};
    out["kinds"][kind] = row.text(kind);
  }
  if (settings_.verifiers != Verifiers::off) out["verifiers"] = rights_.verifiers;
  return out.dump();
}

}  // namespace driftd::postgres
