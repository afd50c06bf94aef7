// SPDX-License-Identifier: Apache-2.0
#include "redis/apply.hpp"

#include <algorithm>
#include <array>

#include "common/apply_steps.hpp"
#include "redis/apply_mapping.hpp"
#include "redis/mapping.hpp"
#include "redis/reader.hpp"

namespace driftd::redis {
namespace {

using common::Step;
using Steps = std::vector<Step>;

constexpr const char* kUserRights = "+acl|setuser +acl|getuser +acl|deluser +multi +exec";

/// Attributes that the schema calls sets.
bool is_set(const std::string& path) {
  constexpr std::array kSets{"modules",
                             "config.save",
                             "config.notify-keyspace-events",
                             "config.tls-protocols",
                             "config.latency-tracking-info-percentiles",
                             "flags",
                             "commands",
                             "keys",
                             "channels",
                             "selectors",
                             "selector_rules"};
  return std::find(kSets.begin(), kSets.end(), path) != kSets.end();
}

class Applier {
 public:
  Applier(sdk::Call& call, Deployment& deployment, const Settings& settings, const std::vector<std::string>& known)
      : call_(call),
        deployment_(deployment),
        settings_(settings),
        reader_(call, deployment, settings, known) {}

  sdk::Applied run(const sdk::Apply& request) {
    const sdk::Record now = get(request.id);
    if (auto there = common::compare_judged(now, request, is_set)) return *there;
    const bool user = request.id.kind == "acl_user";
    if (!user && request.id.kind != "server") throw common::CannotSet(request.id.kind + " is not set by driftd");
    if (deployment_.sentinel()) throw common::CannotSet("the configuration of a Sentinel is not set by driftd");
    const Steps steps = user ? user_steps(request) : server_steps(request);
    sdk::Applied out =
        request.dry_run ? common::show(steps) : common::carry_out(steps, [this] { return call_.cancelled(); });
    if (!steps.empty() && !steps.back().seals) out.details["not saved"] = "a restart of the server loses the change";
    return out;
  }

 private:
  sdk::Record get(const sdk::Identity& id) {
    const Listing listing = reader_.list(id.kind);
    for (const auto& record : listing.records) {
      if (record.id == id.id) return record;
    }
    if (!listing.missing.empty()) throw sdk::Failure(listing.missing.front());  // not seen is not gone
    throw sdk::Failure(DRIFTD_NOT_FOUND, id.kind + "/" + id.id + " is gone; driftd never creates it", id.kind);
  }

  Step step(const Words& words, const Words& undo, std::vector<std::string> paths, const char* right) {
    return {command_text(words), command_text(undo), std::move(paths), [this, words, right] { run(words, right); },
            [this, undo, right] { run(undo, right); }};
  }
  void run(const Words& words, const std::string& right) {
    const std::string kind = words.front() == "ACL" ? "acl_user" : "server";
    const Reply reply = deployment_.client().command(call_, words, kind, right);
    if (reply.text != "OK") throw sdk::Failure(DRIFTD_CORRUPT, words.front() + ": the answer is not OK", kind);
  }
  /// ACL SETUSER creates a user that is not there, and knows no condition: what was there before is asked in the same
  /// transaction, and a user that it created is deleted again. Until then that one had no password.
  void set_user(const Words& words) {
    const std::string& name = words.at(2);
    Client& client = deployment_.client();
    auto answers = client.transaction(call_, {{"ACL", "GETUSER", name}, words}, "acl_user", kUserRights);
    const bool was_there = answers[0].type == Reply::Type::list, done = answers[1].text == "OK";
    wipe(answers[0]);
    if (!done) throw sdk::Failure(DRIFTD_CORRUPT, "ACL: the answer is not OK", "acl_user");
    if (was_there) return;
    const std::string gone = "the user was removed while it was being put back";
    try {
      client.command(call_, {"ACL", "DELUSER", name}, "acl_user", "+acl|deluser");
    } catch (const sdk::Failure& why) {
      throw sdk::Failure(DRIFTD_INTERNAL,
                         gone + "; ACL SETUSER created it again, without a password, and that could not be undone (" +
                             why.what() + "): run ACL DELUSER",
                         "acl_user");
    }
    throw sdk::Failure(DRIFTD_NOT_FOUND, gone + "; driftd never creates it, and nothing was done", "acl_user");
  }
  void seal(Steps& steps, const Words& words, const char* right) {
    Step out{.command = command_text(words), .run = [this, words, right] { run(words, right); }};
    out.seals = true;
    steps.push_back(std::move(out));
  }

  /// One CONFIG SET of all from 7.0 on, which the server carries out whole or not at all.
  Steps server_steps(const sdk::Apply& request) {
    const auto changes = directive_changes(reader_.config(), request.changes);
    const bool together = std::atoi(redis::get(deployment_.info(), "redis_version").c_str()) >= 7;
    Words words{"CONFIG", "SET"}, undo = words;
    std::vector<std::string> paths;
    Steps out;
    for (const auto& one : changes) {
      if (!together) {
        out.push_back(step({"CONFIG", "SET", one.name, one.value}, {"CONFIG", "SET", one.name, one.old_value},
                           one.paths, "+config|set"));
        continue;
      }
      words.insert(words.end(), {one.name, one.value});
      undo.insert(undo.end(), {one.name, one.old_value});
      paths.insert(paths.end(), one.paths.begin(), one.paths.end());
    }
    if (together && !changes.empty()) out.push_back(step(words, undo, paths, "+config|set"));
    if (has_file()) seal(out, {"CONFIG", "REWRITE"}, "+config|rewrite");
    return out;
  }

  /// One ACL SETUSER, which the server carries out whole or not at all.
  Steps user_steps(const sdk::Apply& request) {
    const auto users = reader_.acl_users();
    const auto user = std::find_if(users.begin(), users.end(), [&](const AclUser& one) {
      return one.name == request.id.id || (one.name.empty() && request.id.id == "(no name)");
    });
    if (user == users.end()) throw sdk::Failure(DRIFTD_NOT_FOUND, "the user is gone; driftd never creates it");
    const UserChange change = user_change(*user, request.changes);
    Words words{"ACL", "SETUSER", raw_name(user->name)}, undo = words;
    words.insert(words.end(), change.rules.begin(), change.rules.end());
    undo.insert(undo.end(), change.undo.begin(), change.undo.end());
    std::vector<std::string> paths;
    for (const auto& one : request.changes) paths.push_back(one.path);
    Steps out;
    out.push_back({command_text(words), command_text(undo), std::move(paths), [this, words] { set_user(words); },
                   [this, undo] { set_user(undo); }});
    if (settings_.rewrite == Rewrite::never) return out;
    if (!acl_file().empty())
      seal(out, {"ACL", "SAVE"}, "+acl|save");
    else if (has_file())
      seal(out, {"CONFIG", "REWRITE"}, "+config|rewrite");
    return out;
  }

  bool has_file() const {
    return settings_.rewrite == Rewrite::automatic && !redis::get(deployment_.info(), "config_file").empty();
  }
  std::string acl_file() {
    const Reply answer = deployment_.client().command(call_, {"CONFIG", "GET", "aclfile"}, "acl_user", "+config|get");
    return answer.list.size() > 1 ? answer.list[1].text : std::string();
  }

  sdk::Call& call_;
  Deployment& deployment_;
  const Settings& settings_;
  Reader reader_;
};

}  // namespace

sdk::Applied apply(sdk::Call& call, Deployment& deployment, const Settings& settings,
                   const std::vector<std::string>& known, const sdk::Apply& request) {
  try {
    return Applier(call, deployment, settings, known).run(request);
  } catch (const common::CannotSet& why) {
    return common::refused(why.what());
  }
}

}  // namespace driftd::redis
