// SPDX-License-Identifier: Apache-2.0
#include "postgres/reader.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "postgres/catalog.hpp"

namespace driftd::postgres {
namespace {

/// FNV-1a over the servers' own md5 sums.
std::string digest_of(const std::string& text) {
  std::uint64_t out = 14695981039346656037ULL;
  for (const unsigned char c : text) out = (out ^ c) * 1099511628211ULL;
  return std::to_string(out) + ":" + std::to_string(text.size());
}

/// What the server itself refuses of one kind: a right, a value, or that it takes too long.
bool of_a_kind(const sdk::Failure& failure) {
  return failure.code == DRIFTD_DENIED || failure.code == DRIFTD_CORRUPT || failure.code == DRIFTD_BUDGET;
}

/// Failures that say nothing about the other kinds and databases.
bool concerns_only_this(const sdk::Failure& failure) {
  return failure.code != DRIFTD_CANCELLED && failure.code != DRIFTD_DEADLINE;
}

}  // namespace

std::string system_of(const std::string& cursor) {
  const auto parsed = nlohmann::json::parse(cursor, nullptr, false);
  return parsed.is_object() && parsed.contains("system") && parsed["system"].is_string() ? parsed["system"].get<std::string>() : std::string();
}

Reader::Reader(sdk::Call& call, Client& client, const Settings& settings, std::vector<std::string> kinds)
    : call_(call), client_(client), settings_(settings), kinds_(std::move(kinds)),
      rights_(map_rights(client.query(call, rights_query(settings.verifiers)), client.version())) {
  for (const auto& kind : kinds_) {
    if (is_database_kind(kind)) database_kinds_.push_back(kind);
  }
}

const std::string& Reader::system() {
  if (!system_) {
    system_.emplace();
    if (rights_.identity) {
      const Rows rows = client_.query(call_, identity_query());
      system_ = Fields(rows, 0).text("identity");
    }
  }
  return *system_;
}

Listing Reader::list(const std::string& kind) {
  if (!is_database_kind(kind)) return list_of_server(kind);
  if (!walked_) walk();
  return std::move(of_databases_[kind]);
}

Listing Reader::list_of_server(const std::string& kind) {
  Listing out;
  if (const std::string right = missing_right(kind, rights_); !right.empty()) {
    out.missing.emplace_back(DRIFTD_DENIED,
                             kind + " cannot be listed whole by role " + settings_.user + ": GRANT " + right + " TO " +
                                 settings_.user,
                             kind, right);
    if (kind != "setting") return out;  // settings: the public ones are still there
  }
  const std::int64_t sent = call_.now_ns();
  try {
    out.records = map(kind, client_.query(call_, list_query(kind, rights_, settings_)));
  } catch (const sdk::Failure& e) {
    if (!of_a_kind(e)) throw;
    out.missing.emplace_back(e.code, e.what(), kind, e.code == DRIFTD_DENIED && e.right.empty() ? e.what() : e.right);
  }
  for (auto& record : out.records) record.observed_ns = sent;
  return out;
}

Records Reader::map(const std::string& kind, const Rows& rows) const {
  Origin from{client_.endpoint(), settings_.database, {}, settings_.verifiers != Verifiers::off, client_.version(), !settings_.fingerprints.empty()};
  if (from.verifiers && !rights_.verifiers) from.verifier_right = verifier_right(settings_.verifiers);
  if (kind == "instance") return map_instance(rows, from);
  if (kind == "setting") return map_settings(rows);
  if (kind == "role") return map_roles(rows, from);
  if (kind == "database") return map_databases(rows);
  if (kind == "file_setting") return map_file_settings(rows);
  if (kind == "hba_rule") return map_hba_rules(rows);
  if (kind == "slot") return map_slots(rows);
  return map_subscriptions(rows, rights_.conninfo ? std::string() : conninfo_right());
}

std::vector<std::string> Reader::databases() {
  std::vector<std::string> out{settings_.database};
  const auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  for (const auto& name : settings_.databases) {
    if (name != "*") {
      add(name);
      continue;
    }
    const Rows all = client_.query(call_, databases_query());
    for (std::size_t i = 0; i < all.rows.size(); ++i) {
      const Fields row(all, i);
      if (row.flag("template")) left_out_[row.text("name")] = "a template";
      else if (!row.flag("open")) left_out_[row.text("name")] = "closed to connections (ALLOW_CONNECTIONS false)";
      else add(row.text("name"));
    }
  }
  for (const auto& name : out) left_out_.erase(name);
  return out;
}

std::string Reader::unseen(const std::string& kind, const std::string& id) const {
  if (!is_database_kind(kind)) return {};
  for (const auto& [name, why] : left_out_) {
    if (id.starts_with(name + ".")) return "database " + name + " is " + why + ", which `databases: \"*\"` leaves out";
  }
  return {};
}

void Reader::for_each_database(const std::function<void(Client&, const std::string&)>& each,
                               const std::function<void(const sdk::Failure&)>& failed) {
  for (const auto& database : databases()) {
    try {
      if (database == settings_.database) {
        each(client_, database);
        continue;
      }
      Settings there = settings_;
      there.database = database;
      there.endpoints = {parse_endpoint(client_.endpoint())};  // the same server, not the next of the list
      const auto client = connect(call_, there, settings_.connect, settings_.statement);
      must_be_the_same(*client);
      each(*client, database);
    } catch (const sdk::Failure& e) {
      if (!concerns_only_this(e) || (database == settings_.database && !of_a_kind(e))) throw;
      // a database that was dropped meanwhile, or that a mistyped setting names, is not known to be gone
      const driftd_status code = e.code == DRIFTD_INVALID ? DRIFTD_UNAVAILABLE : e.code;
      failed(sdk::Failure(code, e.what(), {}, e.right.empty() && code == DRIFTD_DENIED ? e.what() : e.right));
    }
  }
}

void Reader::must_be_the_same(Client& client) {
  if (system().empty()) return;
  const Rows rows = client.query_within(call_, identity_query());
  if (Fields(rows, 0).text("identity") == system()) return;
  throw sdk::Failure(DRIFTD_UNAVAILABLE, client_.endpoint() + ": another server answers now than a moment ago");
}

void Reader::walk() {
  walked_ = true;
  for_each_database([&](Client& client, const std::string& database) { list_database(client, database); },
                    [&](const sdk::Failure& e) {
                      for (const auto& kind : database_kinds_) of_databases_[kind].missing.push_back(e);
                    });
}

void Reader::list_database(Client& client, const std::string& database) {
  for (const auto& kind : database_kinds_) {
    try {
      list_kind(client, database, kind);
    } catch (const sdk::Failure& e) {
      if (!of_a_kind(e)) throw;
      const std::string right = e.right.empty() && e.code == DRIFTD_DENIED ? e.what() : e.right;
      of_databases_[kind].missing.emplace_back(e.code, "database " + database + ": " + e.what(), kind, right);
    }
  }
}

void Reader::list_kind(Client& client, const std::string& database, const std::string& kind) {
  const Origin from{client.endpoint(), database, {}, false, client.version(), true};
  const std::int64_t sent = call_.now_ns();
  const Rows rows = client.query_within(call_, database_query(kind, client.version(), settings_));
  Records found;
  if (kind == "extension") found = map_extensions(rows, from);
  if (kind == "schema") found = map_schemas(rows, from);
  if (kind == "publication") found = map_publications(rows, from);
  if (kind == "default_privileges") found = map_default_privileges(rows, from);
  if (kind == "table_fingerprint") found = map_fingerprints(rows, from, settings_.fingerprints);
  Listing& to = of_databases_[kind];
  for (auto& record : found) {
    record.observed_ns = sent;
    to.records.push_back(std::move(record));
  }
  if (rows.rows.size() > kMostTables) {
    to.missing.emplace_back(DRIFTD_BUDGET, database + ": settings.fingerprints covers more than " +
                                               std::to_string(kMostTables) + " tables; name fewer schemas");
  }
}

std::string Reader::cursor() {
  try {
    return hashes();
  } catch (const sdk::Failure& e) {
    if (!of_a_kind(e)) throw;
    return {};  // a catalogue that everybody may read by default was closed, or holds what cannot be sent: the kinds say which
  }
}

std::string Reader::hashes() {
  const Rows rows = client_.query(call_, gate_query(rights_, settings_));
  const Fields row(rows, 0);
  system_ = row.text("identity");
  snapshot_ = row.text("snapshot");
  nlohmann::json out{{"v", 3},
                     {"server", client_.endpoint() + "|" + row.text("identity") + "|" + row.text("start")},
                     {"system", row.text("identity")},
                     {"load", row.text("load")},
                     {"database", settings_.database},
                     {"scope", settings_.scope.text()},
                     {"by", static_cast<int>(settings_.verifiers)}};
  for (const auto& kind : kinds_) {
    if (!missing_right(kind, rights_).empty()) return {};
    if (!is_database_kind(kind)) out["kinds"][kind] = row.text(kind);
  }
  if (settings_.verifiers != Verifiers::off) out["verifiers"] = rights_.verifiers;
  out["conninfo"] = rights_.conninfo;
  if (database_kinds_.empty()) return out.dump();
  std::string sums;  // one digest for all databases: a cursor has its bounds
  bool whole = true;
  for_each_database(
      [&](Client& client, const std::string& database) {
        const Rows hash = client.query_within(call_, database_gate_query(database_kinds_, client.version(), settings_));
        sums += database + "\n";
        for (const auto& cell : hash.rows.at(0)) sums += cell.value_or("") + "\n";
      },
      [&](const sdk::Failure&) { whole = false; });
  out["databases"] = digest_of(sums);
  return whole ? out.dump() : std::string();
}

}  // namespace driftd::postgres
