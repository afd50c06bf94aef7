// SPDX-License-Identifier: Apache-2.0
#include "keycloak/apply.hpp"

#include <algorithm>
#include <utility>

#include "common/attribute_path.hpp"
#include "http/http.hpp"
#include "keycloak/names.hpp"
#include "keycloak/rights.hpp"

namespace driftd::keycloak {
namespace {

using common::Step;
using nlohmann::json;

std::string name_of(const sdk::Identity& id) { return id.kind + "/" + id.id; }

std::string realm_of(const sdk::Identity& id) {
  const auto parts = parts_of(id.id);
  return parts.empty() ? std::string() : parts.front();
}

json with_changes(json body, const sdk::Apply& request) {
  for (const auto& change : request.changes) {
    common::assign_at(body, common::parse_attribute_path(change.path), common::parse_change_value(change.new_value));
  }
  return body;
}

/// The members that differ, as they are in one of the two states.
json members_of(const json& state, const std::vector<Leaf>& leaves) {
  json out = json::object();
  for (const auto& leaf : leaves) {
    const std::string& name = leaf.names.front();
    out[name] = state.contains(name) ? state[name] : json();
  }
  return out;
}

/// Returns true if everything in which the two states differ is in `found` as in one of them.
bool is_of_either(const json& found, const json& one, const json& other) {
  for (const auto& leaf : leaves_between(one, other)) {
    const json* at = &found;
    for (const auto& name : leaf.names) {
      const auto below = at->is_object() ? at->find(name) : at->end();
      static const json kNull;
      at = below == at->end() ? &kNull : &*below;
    }
    if (*at != leaf.now && *at != leaf.wanted) return false;
  }
  return true;
}

/// The role that allows a write: roles of a client are its own.
std::string right_of(const KindRules& rules, const json& body) {
  const auto of_client = body.find("clientRole");
  if (rules.kind == "role" && of_client != body.end() && *of_client == true) return "manage-clients";
  return std::string(rules.right);
}

}  // namespace

Found Applier::read(const sdk::Identity& id) {
  std::optional<Found> out;
  if (id.kind != "realm") {
    out = reader_.by_id(id.kind, id.id);
  } else if (auto view = reader_.realm(realm_of(id))) {
    const bool seen = view->events_enabled && settings_.use_events;
    out = Found{view->name, reader_.realm_record(*view, RealmState{.events_seen = seen})};
  }
  if (!out) throw sdk::Failure(DRIFTD_NOT_FOUND, name_of(id) + " is gone; driftd never creates it", id.kind);
  return std::move(*out);
}

sdk::Applied Applier::apply(const sdk::Apply& request) {
  const KindRules* rules = rules_of(request.id.kind);
  if (rules == nullptr) throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + request.id.kind, request.id.kind);
  if (request.changes.empty() || request.key.empty())
    throw sdk::Failure(DRIFTD_INVALID, "apply: expected at least one change and an idempotency key");
  const Found found = read(request.id);
  if (!request.dry_run) {
    if (auto done = keys_.find(request)) return *done;
  }
  const auto is_set = [&](const std::string& path) { return attributes_.is_set(request.id.kind, path); };
  if (auto there = common::compare_judged(found.record, request, is_set)) return *there;
  const json now = json::parse(found.record.body);
  const Target target{*rules, realm_of(request.id), found.uuid, now, with_changes(now, request)};
  Steps steps;
  try {
    if (!settings_.remediate) throw common::CannotSet("settings.drift_detection.auto_remediate is false");
    steps = plan(target);
  } catch (const common::CannotSet& why) {
    return common::refused(name_of(request.id) + ": " + why.what());
  }
  if (request.dry_run) return common::show(steps);
  sdk::Applied out = common::carry_out(steps, [this] { return call_.cancelled(); });
  if (!conflict_.empty() && !out.changed)
    throw sdk::Failure(DRIFTD_CONFLICT, name_of(request.id) + ": " + conflict_ + "; nothing was done", request.id.kind);
  if (out.outcome != DRIFTD_APPLY_SUCCESS) return out;
  if (const auto other = unlike(request); !other.empty()) return undo_all(steps, request, other);
  keys_.remember(request, out);
  return out;
}

std::vector<std::string> Applier::unlike(const sdk::Apply& request) {
  const Found found = read(request.id);
  std::vector<std::string> out;
  for (const auto& change : request.changes) {
    sdk::Apply one = request;
    one.expected_version.clear();
    one.changes = {change};
    one.changes.front().old_value = change.new_value;  // else a third value would be a conflict
    const auto is_set = [&](const std::string& path) { return attributes_.is_set(request.id.kind, path); };
    try {
      if (!common::compare_judged(found.record, one, is_set)) out.push_back(change.path);
    } catch (const sdk::Failure& other) {
      if (other.code != DRIFTD_CONFLICT) throw;
      out.push_back(change.path);
    }
  }
  return out;
}

sdk::Applied Applier::undo_all(const Steps& steps, const sdk::Apply& request, const std::vector<std::string>& unlike) {
  Steps back;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->take_back)
      back.push_back({.command = step->undo, .paths = step->paths, .run = step->take_back, .take_back = step->run});
  }
  sdk::Applied out = common::refused(name_of(request.id) + ": Keycloak accepted it and keeps another value of " +
                                     unlike.front() + "; what was changed was taken back");
  const sdk::Applied undone = common::carry_out(back, [] { return false; });
  for (const auto& step : steps) out.commands.push_back(step.command);
  if (undone.outcome == DRIFTD_APPLY_SUCCESS) return out;
  out.text = name_of(request.id) + ": Keycloak accepted it and keeps another value of " + unlike.front() +
             ", and it could not be taken back: " + undone.text;
  out.changed = true;
  for (const auto& step : steps) out.left.insert(out.left.end(), step.paths.begin(), step.paths.end());
  return out;
}

Applier::Steps Applier::plan(const Target& target) {
  const auto leaves = leaves_between(target.now, target.wanted);
  if (const std::string why = forbidden(target.rules, attributes_, target.now, leaves, settings_.turn_on_admin_events);
      !why.empty())
    throw common::CannotSet(why);
  std::vector<Leaf> own;
  std::vector<std::string> apart;
  for (const auto& leaf : leaves) {
    const auto& rules = target.rules.apart;
    const std::string& member = leaf.names.front();
    if (std::find(rules.begin(), rules.end(), member) == rules.end())
      own.push_back(leaf);
    else if (std::find(apart.begin(), apart.end(), member) == apart.end())
      apart.push_back(member);
  }
  Steps out;
  if (!own.empty()) add_members(target, own, out);
  for (const auto& member : apart) add_parts(target, member, out);
  return out;
}

void Applier::add_members(const Target& target, const std::vector<Leaf>& leaves, Steps& to) {
  const Part part{path_by_uuid(std::string(target.rules.kind), target.uuid),
                  {},
                  members_of(target.now, leaves),
                  members_of(target.wanted, leaves),
                  &target.rules};
  std::vector<std::string> paths;
  for (const auto& leaf : leaves) paths.push_back(leaf.text());
  to.push_back(part_step(target, part, std::move(paths)));
}

Step Applier::part_step(const Target& target, const Part& part, std::vector<std::string> paths) {
  const Part back{part.path, part.prefix, part.wanted, part.now, part.rules, true};
  const auto command = [&](const Part& of) {
    return update_command(target.realm, of.path, leaves_between(of.now, of.wanted),
                          of.rules != nullptr && of.rules->merges_maps);
  };
  return {command(part), command(back), std::move(paths), [this, target, part] { put(target, part); },
          [this, target, back] { put(target, back); }};
}

Step Applier::link_step(const Target& target, const Write& make, const Write& unmake, const std::string& attribute) {
  const auto command = [&](const Write& of) {
    const char* verb = of.method == "POST" ? "create" : of.method == "PUT" ? "update" : "delete";
    return body_command(verb, target.realm, of.path, of.body);
  };
  return {command(make),
          command(unmake),
          {attribute},
          [this, target, make] { send(target, make); },
          [this, target, unmake] { send(target, unmake); }};
}

void Applier::put(const Target& target, const Part& part) {
  const Answer answer = reader_.need(std::string(target.rules.kind), target.realm, part.path);
  for (const auto& [name, before] : part.now.items()) {
    const auto there = answer.body.find(name);
    const json found = there == answer.body.end() ? json() : *there;
    if (found == before || (part.back && is_of_either(found, before, part.wanted[name]))) continue;
    conflict_ = part.prefix + (part.prefix.empty() ? "" : ".") + name + " changed while it was being put back";
    throw sdk::Failure(DRIFTD_CONFLICT, conflict_);
  }
  static const KindRules kWhole;
  send(target, {"PUT", part.path, put_body(part.rules ? *part.rules : kWhole, answer.body, part.wanted)});
}

void Applier::send(const Target& target, const Write& write) {
  const std::string kind(target.rules.kind);
  const std::string path = "/" + http::escape(target.realm) + write.path;
  const Answer answer = api_.change(call_, {write.method, path, write.body});
  if (answer.ok()) return;
  const std::string message = message_of(answer.body);
  const std::string status = "HTTP status " + std::to_string(answer.status);
  if (answer.status == 403) {
    const std::string right = right_of(target.rules, target.now);
    throw sdk::Failure(DRIFTD_DENIED,
                       status + ": the role " + right + " is missing in realm " + target.realm + "; grant it by `" +
                           grant_command(settings_.login, target.realm, right) + "`",
                       kind, right);
  }
  if (answer.status == 404) throw sdk::Failure(DRIFTD_NOT_FOUND, "it is gone; driftd never creates it", kind);
  throw sdk::Failure(DRIFTD_INVALID,
                     status + ": Keycloak refuses it: " + (message.empty() ? "it says no reason" : message), kind);
}

}  // namespace driftd::keycloak
