// SPDX-License-Identifier: Apache-2.0
#include "store/start_check.hpp"

#include <fstream>

#include "base/log.hpp"
#include "store/checksums.hpp"
#include "store/files.hpp"
#include "store/routes.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::store {
namespace {

namespace fs = std::filesystem;

fs::path suspect_file(const fs::path& data_dir) { return data_dir / "store.suspect"; }

/// Tables whose size does not grow with time. Of `drift` only the open ones belong to the state.
constexpr std::string_view kStateTables[] = {"meta",        "backend", "established", "resource",
                                             "declaration", "sink",    "delivery",    "subscription"};

struct Check {
  std::string_view what, sql;  ///< `sql` counts what is wrong
};

/// INDEXED BY: without it, SQLite might read the ended drifts.
constexpr Check kChecks[] = {
    {"rows of meta", "SELECT count(*) FROM meta WHERE key <> 'restored' AND crc IS NOT " DRIFTD_CRC_META},
    {"backends", "SELECT count(*) FROM backend WHERE NOT " DRIFTD_WHOLE(DRIFTD_CRC_BACKEND)},
    {"kinds with a baseline", "SELECT count(*) FROM established WHERE crc IS NOT " DRIFTD_CRC_ESTABLISHED},
    {"resources", "SELECT count(*) FROM resource WHERE crc IS NOT " DRIFTD_CRC_RESOURCE},
    {"declarations", "SELECT count(*) FROM declaration WHERE crc IS NOT " DRIFTD_CRC_DECLARATION},
    {"sinks", "SELECT count(*) FROM sink WHERE NOT " DRIFTD_WHOLE(DRIFTD_CRC_SINK)},
    {"deliveries", "SELECT count(*) FROM delivery WHERE crc IS NOT " DRIFTD_CRC_DELIVERY},
    {"subscriptions", "SELECT count(*) FROM subscription WHERE crc IS NOT " DRIFTD_CRC_SUBSCRIPTION},
    {"open drifts", "SELECT count(*) FROM drift INDEXED BY drift_open WHERE open = 1 AND crc IS NOT " DRIFTD_CRC_DRIFT},
    {"open drifts that resources name",
     "SELECT count(*) FROM resource r WHERE r.has_open = 1 AND NOT EXISTS (SELECT 1 FROM drift d INDEXED BY drift_open "
     "WHERE d.resource = r.id AND d.open = 1)"},
    {"totals of sinks beside their routes", kUnbalancedSinks},
    {"deliveries without a route", kUnroutedDeliveries}};

void warn(const std::string& why) { log::room("store").warn("the whole store is checked before it is used: {}", why); }

Result<bool> is_sound(Connection& db) {
  for (const auto table : kStateTables) {
    auto check = db.statement("PRAGMA integrity_check('" + std::string(table) + "')");
    DRIFTD_TRY(const bool found, check.next());
    if (found && check.text(0) == "ok") continue;
    warn(std::string(table) + ": " + (found ? check.text(0) : "no answer of integrity_check"));
    return false;
  }
  for (const auto& [what, sql] : kChecks) {
    DRIFTD_TRY(const auto wrong, db.integer(sql));
    if (wrong == 0) continue;
    warn(std::string(what) + ": " + std::to_string(wrong) + " wrong");
    return false;
  }
  return true;
}

}  // namespace

Result<bool> must_check_whole(const Settings& settings) {
  std::error_code error;
  const auto suspect = suspect_file(settings.data_dir);
  if (is_suspect(settings.data_dir)) {
    std::ifstream in(suspect);
    std::string why;
    std::getline(in, why);
    warn(why.empty() ? suspect.string() + " is there" : why);
    return true;
  }
  const auto size = fs::file_size(settings.data_dir / "store.db", error);
  return error || static_cast<std::int64_t>(size) <= settings.checked_at_start;
}

Result<bool> is_state_sound(Connection& db) {
  auto sound = is_sound(db);
  if (sound || sound.error().code != Code::corrupt) return sound;
  warn(sound.error().message);
  return false;
}

bool is_suspect(const fs::path& data_dir) {
  std::error_code error;
  return fs::exists(suspect_file(data_dir), error);
}

Status mark_suspect(const fs::path& data_dir, const std::string& why) {
  return write_private(suspect_file(data_dir), why + "\n");
}

Status unmark_suspect(const fs::path& data_dir) {
  std::error_code error;
  const bool was = fs::remove(suspect_file(data_dir), error);
  if (error) {
    return fail(Code::internal, "cannot remove " + suspect_file(data_dir).string() + ": " + error.message());
  }
  return was ? sync(data_dir) : Status{};
}

}  // namespace driftd::store
