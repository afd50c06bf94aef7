// SPDX-License-Identifier: Apache-2.0
// Audit lines about changed rules: policies, ignore rules, expectations and `enforce` of each backend.
#include "base/escape.hpp"
#include "core/value/value.hpp"
#include "store/audit.hpp"

namespace driftd::store {
namespace {

using core::Value;

constexpr std::size_t kMaxRules = 16 << 10;  // bytes of one side of a change

using RulesByBackend = std::map<std::string, std::string>;

Result<RulesByBackend> read_rules(Connection& db) {
  RulesByBackend out;
  auto query = db.statement("SELECT backend, rules FROM audited_rules");
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out[query.text(0)] = query.text(1);
  }
}

/// Returns a member of the rules as text; absent if they have none of this name.
std::optional<std::string> side(const std::string& rules, const std::string& name) {
  const auto parsed = core::parse(rules);
  const Value* found = parsed ? parsed->find(name) : nullptr;
  return found == nullptr ? std::nullopt : std::optional(core::render(*found));
}

/// A side that had to be cut becomes a text.
Value shown(const std::string& cut, const std::string& whole) {
  auto value = cut == whole ? core::parse(whole) : Result<Value>(Value(cut));
  return value ? std::move(*value) : Value(cut);
}

std::string changes_of(const std::string& before, const std::string& now) {
  Value::Array out;
  for (const char* name : {"defaults", "policy", "ignore", "expect", "enforce"}) {
    const auto old_side = side(before, name), new_side = side(now, name);
    if (old_side == new_side) continue;
    const std::string was = old_side.value_or(""), is = new_side.value_or("");
    const auto cut = around_difference(was, is, kMaxRules);
    Value::Object one{{"path", std::string(name)}};
    if (old_side) one.emplace("old", shown(cut.first, was));
    if (new_side) one.emplace("new", shown(cut.second, is));
    out.emplace_back(std::move(one));
  }
  return out.empty() ? std::string() : core::render(Value(std::move(out)));
}

/// Writes the line and remembers what it says. `now` is empty for a backend that is no longer configured.
Status write_change(SqliteStore::State& state, core::AuditEntry line, const std::string& before,
                    const std::string& now) {
  line.verb = before.empty() ? "set rules" : now.empty() ? "removed rules" : "changed rules";
  line.changes = changes_of(before, now);
  DRIFTD_CHECK(write_audit(state, line));
  if (now.empty()) {
    return state.db->statement("DELETE FROM audited_rules WHERE backend = ?").bind(line.backend).run();
  }
  return state.db->statement("INSERT OR REPLACE INTO audited_rules (backend, rules) VALUES (?, ?)")
      .bind(line.backend, now)
      .run();
}

std::string known_rules(const RulesByBackend& known, const std::string& backend) {
  const auto found = known.find(backend);
  return found == known.end() ? std::string() : found->second;
}

/// An empty text in `rules` leaves what is known of that backend as it is.
Status write_changes(SqliteStore::State& state, const RulesByBackend& rules, const std::string& from) {
  DRIFTD_TRY(const RulesByBackend known, read_rules(*state.db));
  core::AuditEntry line;
  line.at_ns = state.clock.wall();
  line.actor = "driftd";
  line.reason = "read from " + from;
  for (const auto& [backend, now] : rules) {
    const std::string before = known_rules(known, backend);
    if (now.empty() || before == now) continue;
    line.backend = line.subject = backend;
    DRIFTD_CHECK(write_change(state, line, before, now));
  }
  for (const auto& [backend, before] : known) {
    if (rules.contains(backend)) continue;
    line.backend = line.subject = backend;
    DRIFTD_CHECK(write_change(state, line, before, ""));
  }
  return {};
}

}  // namespace

Status write_rules(SqliteStore::State& state, core::AuditEntry line) {
  DRIFTD_TRY(const RulesByBackend known, read_rules(*state.db));
  const std::string before = known_rules(known, line.backend), now = line.rules.value_or("");
  if (before == now) return {};
  return write_change(state, std::move(line), before, now);
}

Task<Status> SqliteStore::audit_rules(std::map<std::string, std::string> rules, std::string from) {
  const auto state = state_;
  const auto in = std::make_shared<RulesByBackend>(std::move(rules));
  auto look = [in](Connection& db) -> Result<bool> {
    DRIFTD_TRY(const RulesByBackend known, read_rules(db));
    return known == *in;
  };
  DRIFTD_CO_TRY(const bool same, co_await on_store(state, std::move(look)));
  if (same) co_return Status{};
  Work work = [state, in, from] { return write_changes(*state, *in, from); };
  auto outcome = co_await in_group(state, std::move(work));
  co_return outcome;
}

}  // namespace driftd::store
