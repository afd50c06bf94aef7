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

/// Failures of one kind that the server itself reports: a missing right, a value, or a time limit.
bool of_a_kind(const sdk::Failure& failure) {
  return failure.code == DRIFTD_DENIED || failure.code == DRIFTD_CORRUPT || failure.code == DRIFTD_BUDGET;
}

/// Failures that say nothing about the other kinds and databases.
bool concerns_only_this(const sdk::Failure& failure) {
  return failure.code != DRIFTD_CANCELLED && failure.code != DRIFTD_DEADLINE;
}

using Steady = std::chrono::steady_clock;
constexpr std::chrono::nanoseconds kWithoutDeadline = std::chrono::minutes(2);

std::chrono::milliseconds left_until(Steady::time_point end) {
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(end - Steady::now()),
                  std::chrono::milliseconds(1));
}

/// Reports databases that were not reached, naming only a few.
sdk::Failure left_out(const std::vector<std::string>& databases) {
  constexpr std::size_t kNamed = 20;
  std::string names;
  for (std::size_t i = 0; i < std::min(databases.size(), kNamed); ++i) names += (i == 0 ? "" : ", ") + databases[i];
  if (databases.size() > kNamed) names += " and " + std::to_string(databases.size() - kNamed) + " more";
  return {DRIFTD_BUDGET, "not read, for the databases before took all the time that they have together in a cycle: " +
                             names + ". Next time they are first"};
}

}  // namespace

std::string system_of(const std::string& cursor) {
  const auto parsed = nlohmann::json::parse(cursor, nullptr, false);
  return parsed.is_object() && parsed.contains("system") && parsed["system"].is_string()
             ? parsed["system"].get<std::string>()
             : std::string();
}

Reader::Reader(sdk::Call& call, Client& client, const Settings& settings, std::vector<std::string> kinds,
               DatabaseSchedule& schedule)
    : call_(call),
      client_(client),
      settings_(settings),
      schedule_(schedule),
      kinds_(std::move(kinds)),
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

std::optional<GucTypes> Reader::guc_types() {
  const auto has_settings = [](const std::string& kind) {
    return kind == "setting" || kind == "file_setting" || kind == "role" || kind == "database";
  };
  if (std::none_of(kinds_.begin(), kinds_.end(), has_settings)) return std::nullopt;
  try {
    return GucTypes(client_.query(call_, guc_types_query()));
  } catch (const sdk::Failure& e) {
    if (!of_a_kind(e)) throw;
    call_.log(DRIFTD_LOG_WARN, "the types of settings cannot be read, so their texts are compared",
              {{"why", e.what()}});
    return GucTypes();
  }
}

Listing Reader::list(const std::string& kind) {
  if (!is_database_kind(kind)) return list_of_server(kind);
  if (!walked_) walk();
  return std::move(of_databases_[kind]);
}

Listing Reader::list_of_server(const std::string& kind) {
  Listing out;
  if (const std::string right = missing_right(kind, rights_); !right.empty()) {
    out.missing.emplace_back(
        DRIFTD_DENIED,
        kind + " cannot be listed whole by role " + settings_.user + ": GRANT " + right + " TO " + settings_.user, kind,
        right);
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
  Origin from{client_.endpoint(),
              settings_.database,
              {},
              settings_.verifiers != Verifiers::off,
              client_.version(),
              !settings_.fingerprints.empty()};
  if (from.verifiers && !rights_.verifiers) from.verifier_right = verifier_right(settings_.verifiers);
  if (kind == "instance") return map_instance(rows, from);
  if (kind == "setting") return map_settings(rows);
  if (kind == "role") return map_roles(rows, from);
  if (kind == "database") return map_databases(rows);
  if (kind == "file_setting") return map_file_settings(rows);
  if (kind == "hba") return map_hba(rows);
  if (kind == "ident") return ident(rows);
  if (kind == "slot") return map_slots(rows);
  return map_subscriptions(rows, rights_.conninfo ? std::string() : conninfo_right());
}

Records Reader::ident(const Rows& rows) const {
  constexpr int kShownSince = 150000;
  if (rights_.ident) return map_ident(rows, {}, DRIFTD_OK);
  if (client_.version() >= kShownSince) return map_ident(rows, "needs " + ident_right(), DRIFTD_DENIED);
  return map_ident(rows, "PostgreSQL shows pg_ident.conf since version 15", DRIFTD_UNSUPPORTED);
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
      if (row.flag("template"))
        left_out_[row.text("name")] = "a template";
      else if (!row.flag("open"))
        left_out_[row.text("name")] = "closed to connections (ALLOW_CONNECTIONS false)";
      else
        add(row.text("name"));
    }
  }
  for (const auto& name : out) left_out_.erase(name);
  return out;
}

std::string Reader::unseen_reason(const std::string& kind, const std::string& id) const {
  if (!is_database_kind(kind)) return {};
  for (const auto& [name, why] : left_out_) {
    if (id.starts_with(name + ".")) return "database " + name + " is " + why + ", which `databases: \"*\"` leaves out";
  }
  return {};
}

Reader::Time Reader::deadline_for(double part) const {
  const auto now = Steady::now();
  const auto left = call_.deadline_ns() > 0 ? std::chrono::nanoseconds(call_.deadline_ns()) - now.time_since_epoch()
                                            : kWithoutDeadline;
  return now + std::chrono::duration_cast<Steady::duration>(std::max(left, std::chrono::nanoseconds(0)) * part);
}

std::optional<sdk::Failure> Reader::in_database(const std::string& database, Time end,
                                                const std::function<void(Client&)>& each) {
  try {
    if (database == settings_.database) {
      each(client_);
      return std::nullopt;
    }
    Settings there = settings_;
    there.database = database;
    there.endpoints = {parse_endpoint(client_.endpoint())};  // the same server, not the next of the list
    const auto client = connect(call_, there, std::min(settings_.connect, left_until(end)), settings_.statement);
    check_same_system(*client, left_until(end));
    each(*client);
    return std::nullopt;
  } catch (const sdk::Failure& e) {
    if (!concerns_only_this(e) || (database == settings_.database && !of_a_kind(e))) throw;
    // a database that was dropped meanwhile, or that a mistyped setting names, is not known to be gone
    const driftd_status code = e.code == DRIFTD_INVALID ? DRIFTD_UNAVAILABLE : e.code;
    const std::string what = "database " + database + ": " + e.what();
    return sdk::Failure(code, what, {}, e.right.empty() && code == DRIFTD_DENIED ? what : e.right);
  }
}

void Reader::check_same_system(Client& client, std::chrono::milliseconds timeout) {
  if (system().empty()) return;
  const Rows rows = client.query_within(call_, identity_query(), timeout);
  if (Fields(rows, 0).text("identity") == system()) return;
  throw sdk::Failure(DRIFTD_UNAVAILABLE, client_.endpoint() + ": another server answers now than a moment ago");
}

// Others may create databases and make them slow, so all of them together get half of the remaining time and the cycle
// ends in time. The share of each cheap one is chosen so that all cheap ones fit beside the part of the expensive ones.
void Reader::walk() {
  walked_ = true;
  auto names = databases();
  const Time end = deadline_for(0.5);
  const auto ours = deadline_for(0.25);
  const auto of_ours =
      in_database(settings_.database, ours, [&](Client& client) { list_database(client, settings_.database, ours); });
  if (of_ours) fail_all_kinds(*of_ours);
  names.erase(std::remove(names.begin(), names.end(), settings_.database), names.end());
  if (names.empty()) return;
  const auto all = end - Steady::now();
  const auto of_the_dear = all / 4;
  const auto [order, cheap] = schedule_.order(names, (all - of_the_dear) / static_cast<int>(names.size()));
  std::vector<std::string> without;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Time until = i < cheap && cheap < order.size() ? end - of_the_dear : end;
    const auto begun = Steady::now();
    if (begun >= until) {
      without.push_back(order[i]);
      continue;
    }
    const auto failure = in_database(order[i], until, [&](Client& client) { list_database(client, order[i], until); });
    const auto ended = Steady::now();
    if (failure && ended < until) fail_all_kinds(*failure);
    if (failure && ended >= until) without.push_back(order[i]);
    // else it was no turn of its own
    if (ended < until || until - begun >= of_the_dear) schedule_.record(order[i], ended - begun);
  }
  if (!without.empty()) fail_all_kinds(left_out(without));
}

void Reader::fail_all_kinds(const sdk::Failure& failure) {
  for (const auto& kind : database_kinds_) of_databases_[kind].missing.push_back(failure);
}

void Reader::list_database(Client& client, const std::string& database, Time end) {
  for (const auto& kind : database_kinds_) {
    try {
      if (Steady::now() >= end) throw sdk::Failure(DRIFTD_BUDGET, "no time is left for it in this cycle");
      list_kind(client, database, kind, end);
    } catch (const sdk::Failure& e) {
      if (!of_a_kind(e)) throw;
      const std::string right = e.right.empty() && e.code == DRIFTD_DENIED ? e.what() : e.right;
      of_databases_[kind].missing.emplace_back(e.code, "database " + database + ": " + e.what(), kind, right);
    }
  }
}

void Reader::list_kind(Client& client, const std::string& database, const std::string& kind, Time end) {
  const Origin from{client.endpoint(), database, {}, false, client.version(), true};
  const std::int64_t sent = call_.now_ns();
  const Rows rows = client.query_within(call_, database_query(kind, client.version(), settings_), left_until(end));
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
  if (rows.rows.size() > kMaxTables) {
    to.missing.emplace_back(DRIFTD_BUDGET, database + ": settings.fingerprints covers more than " +
                                               std::to_string(kMaxTables) + " tables; name fewer schemas");
  }
}

std::string Reader::cursor() {
  try {
    return hashes();
  } catch (const sdk::Failure& e) {
    if (!of_a_kind(e)) throw;
    // a catalogue that everybody may read by default was closed, or holds what cannot be sent: the kinds say which
    return {};
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
  const Time end = deadline_for(0.25);
  for (const auto& database : databases()) {
    if (Steady::now() >= end) return {};
    const auto failure = in_database(database, end, [&](Client& client) {
      const std::string query = database_gate_query(database_kinds_, client.version(), settings_);
      const Rows hash = client.query_within(call_, query, left_until(end));
      sums += database + "\n";
      for (const auto& cell : hash.rows.at(0)) sums += cell.value_or("") + "\n";
    });
    if (failure) return {};  // of one that is not known nothing is; the listing says why
  }
  out["databases"] = digest_of(sums);
  return out.dump();
}

}  // namespace driftd::postgres
