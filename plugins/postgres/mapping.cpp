// SPDX-License-Identifier: Apache-2.0
#include "postgres/mapping.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "common/bounded_json.hpp"
#include "postgres/catalog.hpp"
#include "postgres/guc.hpp"

namespace driftd::postgres {
namespace {

using nlohmann::json;

json parsed(const std::optional<std::string>& text, json fallback) {
  if (!text) return fallback;
  json out = json::parse(*text, nullptr, false);
  if (out.is_discarded()) throw sdk::Failure(DRIFTD_CORRUPT, "the server answered JSON that cannot be read");
  return out;
}

json nullable(const Fields& row, std::string_view column) {
  const auto found = row.find(column);
  return found ? json(*found) : json(nullptr);
}

json number(const Fields& row, std::string_view column) {
  const auto found = row.find(column);
  return found ? json::parse(*found, nullptr, false) : json(nullptr);
}

/// `prefix["a.b"]`, or `prefix.a` where the name needs no quotes.
std::string member(const std::string& prefix, const std::string& name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (!name.empty() && name.find_first_not_of(kPlain) == std::string::npos) return prefix + "." + name;
  return prefix + "[" + json(name).dump() + "]";
}

json setconfig(const json& list) {
  json out = json::object();
  for (const auto& one : list) {
    const std::string text = one.get<std::string>();
    const auto equals = text.find('=');
    out[text.substr(0, equals)] = equals == std::string::npos ? "" : text.substr(equals + 1);
  }
  return out;
}

void mark_secrets(const std::string& prefix, const json& settings, sdk::Record& record) {
  for (const auto& [name, value] : settings.items()) {
    if (secret_guc(name)) record.sensitive.push_back(member(prefix, name));
  }
}

/// Settings that this session's login or client chose; they hide the server-wide value.
bool chosen_by_session(const std::string& source) {
  return source == "client" || source == "session" || source == "interactive" || source == "user" ||
         source == "database" || source == "database user" || source == "global";
}

sdk::Unread hidden(const std::string& name, const std::string& attribute, const std::string& source) {
  if (name == "search_path")
    return {attribute, DRIFTD_DENIED, "driftd's own sessions pin it; needs SELECT ON pg_file_settings"};
  return {attribute, DRIFTD_UNSUPPORTED,
          "the monitoring role, its database or its client sets " + name + " itself (source " + source +
              "), which hides the server's value: ALTER ROLE … RESET " + name};
}

/// Which lines of the files count. If one of them has a syntax error or an unknown name, the server applies none and
/// shows all as not applied. Then the last line of each setting is the one that would count.
class CountingLines {
 public:
  explicit CountingLines(const Rows& rows) {
    bool any_applied = false, any_error = false;
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      const Fields row(rows, i);
      any_applied = any_applied || row.flag("applied");
      any_error = any_error || row.find("error");
      last_[lower(row.text("name"))] = i;
    }
    refused_ = any_error && !any_applied;
  }
  bool refused() const { return refused_; }
  bool counts(const Fields& row, std::size_t number) const {
    return refused_ ? last_.at(lower(row.text("name"))) == number : row.flag("applied");
  }

 private:
  static std::string lower(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return name;
  }
  std::map<std::string, std::size_t> last_;
  bool refused_ = false;
};

std::string file_state(const Fields& row, const Guc& now, bool counts) {
  if (!row.find("vartype")) return row.find("error") ? "error" : "unknown_setting";
  const bool same = same_value(row.text("setting"), now);
  if (row.flag("pending_restart") && !same) return "needs_restart";
  if (row.find("error")) return "error";
  const std::string source = row.text("source");
  const bool overridden = !counts || (source != "configuration file" && source != "default");
  if (overridden) return "overridden";
  return same ? "in_effect" : "edited_not_reloaded";
}

/// Returns the path of the file relative to the folder of the main configuration, so that ids do not change when the
/// cluster moves.
std::string short_file(const std::string& path, const std::string& folder) {
  if (!folder.empty() && path.starts_with(folder + "/")) return path.substr(folder.size() + 1);
  return path;
}

/// Settings of a row as an object; `column` too long: unread as `attribute`.
void put_settings(const Fields& row, std::string_view column, const std::string& attribute, json& body,
                  sdk::Record& record) {
  if (row.text(column) == kTooLong) {
    record.unread.push_back(too_long(attribute, kMaxOfList));
    return;
  }
  json settings = setconfig(parsed(row.find(column), json::array()));
  mark_secrets(attribute, settings, record);
  body[attribute] = std::move(settings);
}

/// Database → settings there; one of null is too long to be sent.
void put_database_settings(const Fields& row, json& body, sdk::Record& record) {
  json out = json::object();
  const json lists = parsed(row.find("database_settings"), json::object());
  for (const auto& [database, list] : lists.items()) {
    const std::string path = member("database_settings", database);
    if (list.is_null()) {
      record.unread.push_back(too_long(path, kMaxOfList));
      continue;
    }
    out[database] = setconfig(list);
    mark_secrets(path, out[database], record);
  }
  body["database_settings"] = std::move(out);
}

}  // namespace

sdk::Unread too_long(const std::string& attribute, int bytes) {
  return {attribute, DRIFTD_BUDGET, "it is longer than " + std::to_string(bytes >> 10) + " KiB, which is not read"};
}

void put_list(const Fields& row, std::string_view column, const std::string& attribute, json& body,
              sdk::Record& record) {
  if (row.text(column) == kTooLong)
    record.unread.push_back(too_long(attribute, kMaxOfCell));
  else
    body[attribute] = parsed(row.find(column), json::array());
}

void fit(sdk::Record& record, json body) {
  std::vector<std::string> left_out;
  record.body = common::fit_members(body, common::kMaxBody, left_out);
  for (const auto& name : left_out) {
    record.unread.push_back(
        {name, DRIFTD_BUDGET, "it is too long to be read: the record would be larger than 4 MiB or 90,000 values"});
  }
  common::bound_paths(record.sensitive);
  if (left_out.empty()) return;
  std::erase_if(record.sensitive, [&](const std::string& path) {
    return std::any_of(left_out.begin(), left_out.end(), [&](const auto& name) { return path.starts_with(name); });
  });
}

std::string render_setconfig(const std::string& json_list) {
  return setconfig(parsed(json_list, json::array())).dump();
}

Records map_instance(const Rows& rows, const Origin& from) {
  if (rows.rows.size() != 1)
    throw sdk::Failure(DRIFTD_CORRUPT, "the instance query answered no single row", "instance");
  const Fields row(rows, 0);
  sdk::Record out;
  out.kind = "instance";
  out.id = "instance";
  json body{{"version", row.text("version")},
            {"role", row.text("role")},
            {"endpoint", from.endpoint},
            {"timeline", number(row, "timeline")},
            {"upstream", nullable(row, "upstream")},
            {"system_identifier", nullable(row, "system_identifier")}};
  if (const auto right = row.find("identity_right")) {
    body.erase("system_identifier");
    out.unread.push_back({"system_identifier", DRIFTD_DENIED, "needs " + *right});
  }
  const std::string stream = row.text("stream");
  if (stream == "denied" || stream == "silent") {  // the timeline of the last checkpoint may be behind the stream's
    const bool denied = stream == "denied";
    for (const char* attribute : {"upstream", "timeline"}) {
      body.erase(attribute);
      out.unread.push_back({attribute, denied ? DRIFTD_DENIED : DRIFTD_UNAVAILABLE,
                            denied ? "needs pg_read_all_stats" : "the standby receives no WAL now"});
    }
  }
  out.body = body.dump();
  json status{{"accepting", true},
              {"postmaster_start", row.text("postmaster_start")},
              {"conf_load", row.text("conf_load")},
              {"archive_failing", row.flag("archive_failing")}};
  if (row.find("lag_seconds")) status["lag_seconds"] = number(row, "lag_seconds");
  out.status = status.dump();
  out.version = row.text("version");
  if (from.fingerprints) {  // so that the event of an upgrade says what becomes of table_fingerprint
    out.metadata["definitions"] = "printed by PostgreSQL " + std::to_string(from.version / 10000) +
                                  "; digests of what another major version printed are taken again, not compared";
  }
  return {out};
}

Records map_settings(const Rows& rows) {
  Records out;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const Fields row(rows, i);
    sdk::Record record;
    record.kind = "setting";
    record.id = row.text("name");
    const TypedGuc value = typed({row.text("setting"), row.text("unit"), row.text("vartype")});
    if (chosen_by_session(row.text("source"))) {
      record.unread.push_back(hidden(record.id, value.attribute, row.text("source")));
    } else if (row.flag("too_long")) {
      record.unread.push_back(too_long(value.attribute, kMaxOfCell));
    } else {
      record.body = "{\"" + value.attribute + "\":" + value.json + "}";
    }
    if (value.attribute == "value" && secret_guc(record.id)) record.sensitive.push_back("value");
    record.status = json{{"pending_restart", row.flag("pending_restart")}}.dump();
    record.metadata["source"] = row.text("source");
    record.metadata["context"] = row.text("context");
    if (row.find("unit")) record.metadata["unit"] = row.text("unit");
    if (row.find("sourcefile")) {
      record.metadata["sourcefile"] = row.text("sourcefile");
      record.metadata["sourceline"] = row.text("sourceline");
    }
    out.push_back(std::move(record));
  }
  return out;
}

Records map_roles(const Rows& rows, const Origin& from) {
  Records out;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const Fields row(rows, i);
    sdk::Record record;
    record.kind = "role";
    record.id = row.text("name");
    record.external_name = row.text("oid");
    json body{{"connection_limit", number(row, "connection_limit")}, {"valid_until", nullable(row, "valid_until")}};
    put_list(row, "memberships", "memberships", body, record);
    for (const auto* flag :
         {"superuser", "inherit", "create_role", "create_db", "login", "replication", "bypass_rls"}) {
      body[flag] = row.flag(flag);
    }
    put_settings(row, "settings", "settings", body, record);
    put_database_settings(row, body, record);
    if (!from.verifier_right.empty()) {
      record.unread.push_back({"verifier", DRIFTD_DENIED, "needs " + from.verifier_right});
      record.unread.push_back({"password_type", DRIFTD_DENIED, "needs " + from.verifier_right});
    } else if (from.verifiers) {
      body["verifier"] = row.find("verifier").value_or("none");
      body["password_type"] = row.find("password_type").value_or("none");
    }
    fit(record, std::move(body));
    out.push_back(std::move(record));
  }
  return out;
}

Records map_databases(const Rows& rows) {
  Records out;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const Fields row(rows, i);
    sdk::Record record;
    record.kind = "database";
    record.id = row.text("name");
    record.external_name = row.text("oid");
    json body{{"owner", row.text("owner")},
              {"encoding", row.text("encoding")},
              {"collation", row.text("collation")},
              {"ctype", row.text("ctype")},
              {"tablespace", row.text("tablespace")},
              {"is_template", row.flag("is_template")},
              {"allow_connections", row.flag("allow_connections")},
              {"connection_limit", number(row, "connection_limit")}};
    put_list(row, "grants", "grants", body, record);
    put_settings(row, "settings", "settings", body, record);
    fit(record, std::move(body));
    out.push_back(std::move(record));
  }
  return out;
}

Records map_file_settings(const Rows& rows) {
  Records out;
  std::map<std::string, int> seen;
  const CountingLines lines(rows);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const Fields row(rows, i);
    const std::string file = short_file(row.text("sourcefile"), row.text("folder"));
    sdk::Record record;
    record.kind = "file_setting";
    record.id = file + ":" + row.find("name").value_or("line-" + row.text("sourceline"));
    if (const int nth = ++seen[record.id]; nth > 1) record.id += "#" + std::to_string(nth);
    const Guc now{row.text("current"), row.text("unit"), row.text("vartype")};
    json body{{"error", nullable(row, "error")}};
    if (row.flag("too_long")) {
      for (const char* attribute : {"setting", "state"}) record.unread.push_back(too_long(attribute, kMaxOfCell));
    } else {
      body.update({{"setting", nullable(row, "setting")}, {"state", file_state(row, now, lines.counts(row, i))}});
    }
    fit(record, std::move(body));
    if (secret_guc(row.text("name"))) record.sensitive.push_back("setting");
    record.metadata["sourcefile"] = row.text("sourcefile");
    record.metadata["sourceline"] = row.text("sourceline");
    if (lines.refused() && row.find("error"))
      record.metadata["refused"] = "the server applies no line of its files until this one is corrected";
    out.push_back(std::move(record));
  }
  return out;
}

}  // namespace driftd::postgres
