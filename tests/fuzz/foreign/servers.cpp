// SPDX-License-Identifier: Apache-2.0
// Answers of servers, with contents that their users control.
#include <nlohmann/json.hpp>

#include "core/value/parse_limits.hpp"
#include "fuzz/foreign/foreign.hpp"
#include "kafka/mapping.hpp"
#include "postgres/guc.hpp"
#include "postgres/mapping.hpp"
#include "redis/acl.hpp"
#include "redis/config.hpp"
#include "redis/info.hpp"
#include "redis/topology.hpp"

namespace driftd::fuzz {
namespace {

void judged(const sdk::Record& record) { (void)core::parse(record.body, core::kBodyLimits); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t start = 0; start <= text.size() && out.size() < 1'000;) {
    const auto end = std::min(text.find('\n', start), text.size());
    out.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return out;
}

std::string at(const std::vector<std::string>& lines, std::size_t i) {
  return i < lines.size() ? lines[i] : std::string();
}

}  // namespace

void redis_acl(std::string_view text) {
  for (const auto& line : lines_of(text)) {
    try {
      const auto user = redis::parse_acl_line(line);
      judged(redis::acl_record(user, {{"read", {"get", "mget"}}, {"write", {"set"}}}, ""));
      (void)redis::categories_of(user);
    } catch (const std::exception&) {
    }
    (void)redis::ordered(line);
  }
}

void redis_info(std::string_view text) {
  const auto info = redis::parse_info(std::string(text));
  (void)redis::health_of(info);
  (void)redis::primary_of(info);
  (void)redis::change_stamp(info, "all");
  redis::Config config;
  for (const auto& line : lines_of(text)) {
    const auto colon = std::min(line.find(':'), line.size());
    config[line.substr(0, colon)] = line.substr(std::min(colon + 1, line.size()));
  }
  try {
    (void)redis::config_object(config);
    (void)redis::persistence(config);
    (void)redis::cluster_fingerprint(std::string(text));
    judged(redis::cluster_record(std::string(text), info));
  } catch (const std::exception&) {
  }
}

/// One row for each mapping; its columns are the lines.
void postgres(std::string_view text) {
  const auto lines = lines_of(text);
  postgres::Rows rows;
  rows.columns = {"name", "settings", "database_settings", "memberships", "setting", "unit",   "vartype",
                  "acl",  "owner",    "options",           "verifier",    "address", "netmask"};
  auto& row = rows.rows.emplace_back();
  for (std::size_t i = 0; i < rows.columns.size(); ++i) row.emplace_back(at(lines, i));
  const postgres::Origin from{"h:5432", "db", "", true, 150004, true};
  try {
    for (const auto& record : postgres::map_roles(rows, from)) judged(record);
    for (const auto& record : postgres::map_databases(rows)) judged(record);
    for (const auto& record : postgres::map_settings(rows)) judged(record);
    for (const auto& record : postgres::map_schemas(rows, from)) judged(record);
    for (const auto& record : postgres::map_hba(rows)) judged(record);
    for (const auto& record : postgres::map_subscriptions(rows, "")) judged(record);
  } catch (const std::exception&) {
  }
  try {
    (void)postgres::render_setconfig(at(lines, 1));
    (void)postgres::same_value(at(lines, 0), {at(lines, 4), at(lines, 5), at(lines, 6)});
    (void)postgres::typed({at(lines, 4), at(lines, 5), at(lines, 6)});
  } catch (const std::exception&) {
  }
}

void kafka(std::string_view text) {
  const auto lines = lines_of(text);
  try {
    judged(kafka::map_group({at(lines, 0), at(lines, 1), false}));
    judged(kafka::map_acl({at(lines, 0), at(lines, 1), "READ", "ALLOW", "TOPIC", at(lines, 2), "LITERAL"}));
    kafka::Configs configs;
    configs.entries.push_back({at(lines, 3), at(lines, 4), kafka::Source::topic, false, {}});
    judged(kafka::map_topic({at(lines, 2), {}, {{0, 1, {1, 2}, {1}}}}, configs, at(lines, 5)));
    judged(kafka::map_broker({1, at(lines, 2), 9092}, configs));
    (void)kafka::value_json(at(lines, 3), at(lines, 4));
    (void)kafka::is_scram_id(at(lines, 0));
  } catch (const std::exception&) {
  }
}

}  // namespace driftd::fuzz
