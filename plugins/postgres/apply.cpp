// SPDX-License-Identifier: Apache-2.0
#include "postgres/apply.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/apply_steps.hpp"
#include "common/attribute_path.hpp"
#include "common/wait_until.hpp"
#include "postgres/apply_mapping.hpp"
#include "postgres/guc.hpp"
#include "postgres/staged_edits.hpp"

namespace driftd::postgres {
namespace {

using common::CannotSet;
using nlohmann::json;
using std::chrono::milliseconds;

/// How long a reload may take until the value is in force, and how often it is looked at.
constexpr milliseconds kReload{3000}, kLook{50};
constexpr std::int64_t kAfterReload = 1000;  // ms
constexpr std::size_t kNamed = 10;           // edits that a refusal names

bool is_set(const std::string& path) { return path == "memberships" || path == "grants"; }

/// What pg_settings and the files say about one setting.
struct Present {
  std::string setting, unit, vartype, context, source;
  std::string boot;                      ///< the built-in default
  std::optional<std::string> by_system;  ///< its text in postgresql.auto.conf, which ALTER SYSTEM writes
  std::optional<std::string> by_files;   ///< its last text in the other files
  bool refused = false;                  ///< a mistake in the files keeps the server from applying any
};

sdk::Record get(Reader& reader, const sdk::Identity& id) {
  const Listing listing = reader.list(id.kind);
  for (const auto& record : listing.records) {
    if (record.id == id.id) return record;
  }
  if (!listing.missing.empty()) throw sdk::Failure(listing.missing.front());  // not seen is not gone
  throw sdk::Failure(DRIFTD_NOT_FOUND, id.kind + "/" + id.id + " is gone; driftd never creates it", id.kind);
}

class Applier {
 public:
  Applier(sdk::Call& call, Client& client, Reader& reader, const Settings& settings)
      : call_(call),
        client_(client),
        reader_(reader),
        settings_(settings) {}

  sdk::Applied run(const sdk::Apply& request) {
    const sdk::Record now = get(reader_, request.id);
    if (auto there = common::compare_judged(now, request, is_set)) return *there;
    const std::string& kind = request.id.kind;
    if (kind != "setting" && kind != "role" && kind != "database")
      throw CannotSet(kind + " is not set by driftd: change it where it comes from");
    writer_ = connect_writer(call_, settings_, client_.endpoint());
    if (kind == "setting") return put_setting(now, request);
    const json body = json::parse(now.body);
    return put_all(kind == "role" ? role_statements(quote(), request, body, client_.version())
                                  : database_statements(quote(), request, body),
                   request.dry_run);
  }

 private:
  Quote quote() {
    return {[this](const std::string& name) { return writer_->identifier(name); },
            [this](const std::string& text) { return writer_->literal(text); }};
  }

  /// Runs the statements in one transaction, which the server carries out whole or not at all.
  sdk::Applied put_all(const Statements& statements, bool dry_run) {
    sdk::Applied out;
    const bool several = statements.size() > 1;
    for (const auto& one : statements) out.commands.push_back(one.sql);
    for (auto one = statements.rbegin(); one != statements.rend(); ++one) out.undo.push_back(one->undo);
    for (auto* list : {&out.commands, &out.undo}) {
      if (!several) continue;
      list->insert(list->begin(), "BEGIN");
      list->push_back("COMMIT");
    }
    if (dry_run) return out;
    for (const auto& sql : out.commands) {
      if (call_.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "cancelled before " + sql);
      try {
        writer_->execute(call_, sql);
      } catch (const sdk::Failure& why) {
        if (unknown(why)) throw;
        // closing the connection rolls the transaction back
        return common::refused(reason(sql, why) + "; nothing was changed");
      }
    }
    out.changed = !statements.empty();
    return out;
  }
  static bool unknown(const sdk::Failure& why) {
    return why.code == DRIFTD_UNAVAILABLE || why.code == DRIFTD_DEADLINE || why.code == DRIFTD_CANCELLED ||
           why.code == DRIFTD_INTERNAL;
  }
  std::string reason(const std::string& sql, const sdk::Failure& why) const {
    const bool denied = why.code == DRIFTD_DENIED;
    return sql + ": " + why.what() +
           (denied ? "; grant the right to role " + settings_.user + " as the README's \"To put values back\" says"
                   : "");
  }

  // ---- settings

  Present present(const std::string& name) {
    const std::string wanted = writer_->literal(name);
    const Rows rows = client_.query(
        call_,
        "SELECT s.setting, s.unit, s.vartype, s.context, s.source, s.boot_val, "
        "(SELECT f.setting FROM pg_file_settings f WHERE lower(f.name) = lower(s.name) AND f.sourcefile ~ "
        "'/postgresql[.]auto[.]conf$' ORDER BY f.seqno DESC LIMIT 1) AS by_system, "
        "(SELECT f.setting FROM pg_file_settings f WHERE lower(f.name) = lower(s.name) AND f.sourcefile !~ "
        "'/postgresql[.]auto[.]conf$' ORDER BY f.seqno DESC LIMIT 1) AS by_files, "
        "(SELECT count(error) > 0 AND NOT coalesce(bool_or(applied), false) FROM pg_file_settings) AS refused "
        "FROM pg_settings s WHERE s.name = " +
            wanted);
    if (rows.rows.empty()) throw sdk::Failure(DRIFTD_NOT_FOUND, "setting/" + name + " is gone");
    const Fields row(rows, 0);
    return {row.text("setting"),  row.text("unit"),      row.text("vartype"),  row.text("context"), row.text("source"),
            row.text("boot_val"), row.find("by_system"), row.find("by_files"), row.flag("refused")};
  }

  static void refuse_unless_settable(const std::string& name, const Present& is) {
    if (secret_guc(name)) throw CannotSet(name + " may hold a credential, which driftd never sets");
    if (is.context == "internal") throw CannotSet(name + " cannot be set: it is fixed in this server or cluster");
    if (is.source != "default" && is.source != "configuration file")
      throw CannotSet(name + " cannot be set by ALTER SYSTEM: its source is " + is.source + ", which counts more");
    if (is.refused)
      throw CannotSet(name +
                      " cannot be set: a mistake in the configuration files keeps the server from applying any "
                      "line; correct it first (file_setting, state error)");
  }

  /// Returns true if this text of a file means the wanted value.
  static bool means(const std::string& text, const Present& is, const sdk::Change& change) {
    const json wanted = common::parse_change_value(change.new_value);
    std::string base = text;
    if (is.vartype == "bool") {
      const auto truth = truth_of(text);
      base = truth ? (*truth ? "on" : "off") : text;
    } else if (is.vartype == "integer") {
      const auto number = number_in_base_unit({is.vartype, is.unit, {}}, text);
      if (number) base = std::to_string(static_cast<std::int64_t>(*number));
    }
    const TypedGuc typed_text = typed({base, is.unit, is.vartype});
    return typed_text.attribute == change.path && json::parse(typed_text.json, nullptr, false) == wanted;
  }

  std::string set_sql(const std::string& name, const std::string& text) {
    return "ALTER SYSTEM SET " + guc_name(quote(), name) + " = " + guc_literals(quote(), name, text);
  }

  /// RESET where the line of ALTER SYSTEM is all that stands against the wanted value, so that no line of ours is left.
  common::Step setting_step(const std::string& name, const Present& is, const sdk::Change& change) {
    const std::string reset = "ALTER SYSTEM RESET " + guc_name(quote(), name);
    const std::string text = guc_text(change.path, common::parse_change_value(change.new_value));
    const bool reset_suffices = is.by_system && means(is.by_files.value_or(is.boot), is, change);
    common::Step out;
    out.command = reset_suffices ? reset : set_sql(name, text);
    out.undo = is.by_system ? set_sql(name, *is.by_system) : reset;
    out.paths = {change.path};
    out.run = [this, sql = out.command] { execute(sql); };
    out.take_back = [this, sql = out.undo] { execute(sql); };
    return out;
  }
  void execute(const std::string& sql) {
    try {
      writer_->execute(call_, sql);
    } catch (sdk::Failure& why) {
      if (why.code == DRIFTD_DENIED && why.right.empty())
        why.right = sql.starts_with("SELECT") ? "EXECUTE ON FUNCTION pg_reload_conf()" : "ALTER SYSTEM ON PARAMETER …";
      throw;
    }
  }

  /// A line that waits for a restart is a change that nobody sees until the day of the restart.
  static sdk::Applied needs_restart(const std::string& name, const common::Step& step) {
    sdk::Applied out = common::refused(name + " cannot be set: it takes effect only when the server is started; run " +
                                       step.command + " and restart the server");
    out.details["instead"] = step.command + "; then restart the server";
    return out;
  }

  /// A reload loads all that is in the files, so nobody else's edits may wait in them.
  void refuse_if_staged(const std::string& name) {
    const auto staged = staged_edits(call_, client_, reader_, name);
    if (staged.empty()) return;
    std::string names;
    for (std::size_t i = 0; i < std::min(staged.size(), kNamed); ++i) names += (i == 0 ? "" : ", ") + staged[i];
    if (staged.size() > kNamed) names += " and " + std::to_string(staged.size() - kNamed) + " more";
    throw CannotSet(name + " cannot be set: the reload that it needs would also put in force what was edited and not " +
                    "loaded: " + names + "; load it (SELECT pg_reload_conf()) or undo it first; nothing was changed");
  }

  sdk::Applied put_setting(const sdk::Record& now, const sdk::Apply& request) {
    const std::string& name = now.id;
    if (request.changes.size() != 1) throw CannotSet("a setting has one value; expected one change");
    const sdk::Change& change = request.changes.front();
    const Present is = present(name);
    refuse_unless_settable(name, is);
    if (typed({is.setting, is.unit, is.vartype}).attribute != change.path)
      throw CannotSet(change.path + " cannot be set: " + name + " has another type");
    std::vector<common::Step> steps{setting_step(name, is, change)};
    if (is.context == "postmaster") return needs_restart(name, steps.front());
    refuse_if_staged(name);
    common::Step reload;
    reload.command = "SELECT pg_reload_conf()";
    reload.run = [this] { execute("SELECT pg_reload_conf()"); };
    reload.seals = true;
    steps.push_back(std::move(reload));
    sdk::Applied out =
        request.dry_run ? common::show(steps) : common::carry_out(steps, [this] { return call_.cancelled(); });
    if (request.dry_run || out.outcome != DRIFTD_APPLY_SUCCESS || in_force(request)) return out;
    out.outcome = DRIFTD_APPLY_REQUEUE_AFTER;
    out.requeue_after_ms = kAfterReload;
    out.text = name + " is written, and the server has not applied it yet after its reload";
    return out;
  }

  /// Waits until a reload has reached a session. pg_reload_conf() only sends a signal.
  bool in_force(const sdk::Apply& request) {
    const auto end = std::chrono::steady_clock::now() + kReload;
    while (true) {
      const sdk::Record now = get(reader_, request.id);
      const json body = json::parse(now.body);
      const sdk::Change& change = request.changes.front();
      if (body.contains(change.path) && body[change.path] == common::parse_change_value(change.new_value)) return true;
      const auto at = std::chrono::steady_clock::now();
      if (at >= end || common::wait_until(call_, std::min(end, at + kLook))) return false;
    }
  }

  sdk::Call& call_;
  Client& client_;
  Reader& reader_;
  const Settings& settings_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace

sdk::Applied apply(sdk::Call& call, Client& client, Reader& reader, const Settings& settings,
                   const sdk::Apply& request) {
  try {
    return Applier(call, client, reader, settings).run(request);
  } catch (const CannotSet& why) {
    return common::refused(why.what());
  }
}

std::optional<sdk::Applied> settled(Reader& reader, const sdk::Apply& request) {
  return common::compare_judged(get(reader, request.id), request, is_set);
}

}  // namespace driftd::postgres
