// SPDX-License-Identifier: Apache-2.0
#include "redis/reader.hpp"

#include <algorithm>

#include "redis/mapping.hpp"

namespace driftd::redis {
namespace {

bool only_this_kind(const sdk::Failure& failure) {
  return failure.code == DRIFTD_DENIED || failure.code == DRIFTD_UNSUPPORTED;
}

/// An answer that is not a list does not mean an empty list.
void must_be_list(const Reply& answer, const char* command, const char* kind) {
  if (answer.type != Reply::Type::list)
    throw sdk::Failure(DRIFTD_CORRUPT, std::string(command) + ": the answer is not a list", kind);
}

}  // namespace

Listing Reader::list(const std::string& kind) {
  Listing out;
  const std::int64_t sent = call_.now_ns();
  const bool elsewhere = deployment_.sentinel() && !deployment_.first() && (kind == "server" || kind == "acl_user");
  if (elsewhere) {
    add_sentinel_failures(out);  // each Sentinel has its own config and users
    return out;
  }
  try {
    if (kind == "server") out.records = server();
    if (kind == "acl_user") out.records = users();
    if (kind == "replication") out.records = replication();
    if (kind == "cluster") out.records = cluster();
  } catch (const sdk::Failure& failure) {
    if (!only_this_kind(failure)) throw;
    out.missing.push_back(failure);
  }
  if (kind == "sentinel_master") {
    out.records = sentinel_records(deployment_.views());
    if (deployment_.uses_sentinels()) {
      std::erase_if(out.records, [&](const auto& record) { return record.id != settings_.sentinel->master; });
    }
    add_sentinel_failures(out);
  }
  const bool from_site = kind == "replication" || kind == "cluster" || kind == "sentinel_master";
  for (auto& record : out.records) record.observed_ns = from_site ? deployment_.sent_ns() : sent;
  return out;
}

void Reader::add_sentinel_failures(Listing& out) const {
  out.missing.insert(out.missing.end(), deployment_.sentinel_failures().begin(), deployment_.sentinel_failures().end());
}

std::string Reader::change_stamp() {
  std::string out = redis::change_stamp(deployment_.info(), settings_.scope.text());
  if (out.empty()) return out;
  if (get(deployment_.info(), "cluster_enabled") == "1") {
    try {
      out += ";" + cluster_fingerprint(cluster_nodes());
    } catch (const sdk::Failure& failure) {
      if (!only_this_kind(failure)) throw;
      return {};
    }
  }
  for (const auto& pattern : settings_.config) out += ";" + pattern;
  if (!deployment_.uses_sentinels()) return out;
  if (!deployment_.sentinel_failures().empty()) return {};
  for (const auto& record : list("sentinel_master").records) out += ";" + record.id + record.body;
  return out + ";" + deployment_.client().address();
}

Records Reader::server() {
  return {server_record(deployment_.info(), config(), deployment_.sentinel() ? std::nullopt : modules(),
                        settings_.config, known_)};
}

Config Reader::config() {
  Config out;
  const auto ask = [&](const std::vector<std::string>& words, const char* right) {
    Reply answer = deployment_.client().command(call_, words, "server", right);
    must_be_list(answer, "CONFIG GET", "server");
    for (std::size_t i = 0; i + 1 < answer.list.size(); i += 2) out[answer.list[i].text] = answer.list[i + 1].text;
    wipe(answer);
  };
  if (deployment_.sentinel()) {
    ask({"SENTINEL", "CONFIG", "GET", "*"}, "+sentinel|config");
    return out;
  }
  for (const auto& pattern : settings_.config) ask({"CONFIG", "GET", pattern}, "+config|get");
  return out;
}

std::optional<std::vector<std::string>> Reader::modules() {
  try {
    std::vector<std::string> out;
    const Reply answer = deployment_.client().command(call_, {"MODULE", "LIST"}, "server", "+module|list");
    must_be_list(answer, "MODULE LIST", "server");
    for (const auto& module : answer.list) {
      if (module.list.size() > 1) out.push_back(module.list[1].text);
    }
    std::sort(out.begin(), out.end());
    return out;
  } catch (const sdk::Failure& failure) {
    if (!only_this_kind(failure)) throw;
    return std::nullopt;
  }
}

AclCategories Reader::categories(const std::vector<AclUser>& users) {
  std::set<std::string> wanted{"slow", "fast"};  // together: every command
  for (const auto& user : users) wanted.merge(categories_of(user));
  AclCategories out;
  const Reply all = deployment_.client().command(call_, {"ACL", "CAT"}, "acl_user", "+acl|cat");
  must_be_list(all, "ACL CAT", "acl_user");
  // An unknown category is a rule that only looks like one in the user's line.
  for (const auto& one : all.list) {
    if (!wanted.contains(one.text)) continue;
    const Reply answer = deployment_.client().command(call_, {"ACL", "CAT", one.text}, "acl_user", "+acl|cat");
    must_be_list(answer, "ACL CAT", "acl_user");
    for (const auto& command : answer.list) out[one.text].insert(command.text);
  }
  return out;
}

std::vector<AclUser> Reader::acl_users() {
  std::vector<AclUser> users;
  Reply answer = deployment_.client().command(call_, {"ACL", "LIST"}, "acl_user", "+acl|list");
  must_be_list(answer, "ACL LIST", "acl_user");
  for (const auto& line : answer.list) users.push_back(parse_acl_line(line.text));
  wipe(answer);
  const bool has_default =
      std::any_of(users.begin(), users.end(), [](const AclUser& user) { return user.name == "default"; });
  if (!has_default)
    throw sdk::Failure(DRIFTD_CORRUPT, "ACL LIST: the user `default`, which cannot be deleted, is not in it",
                       "acl_user");
  return users;
}

Records Reader::users() {
  const std::vector<AclUser> users = acl_users();
  AclCategories known;
  std::string missing;
  try {
    known = categories(users);
  } catch (const sdk::Failure& failure) {
    if (!only_this_kind(failure)) throw;
    missing = "+acl|cat";
  }
  Records out;
  for (const auto& user : users) {
    std::string lacks = missing;
    std::set<std::string> needed = categories_of(user);
    needed.insert({"slow", "fast"});  // together: every command
    for (const auto& name : needed) {
      if (lacks.empty() && !known.contains(name)) lacks = "the category `" + name + "`, which the server does not know";
    }
    out.push_back(acl_record(user, known, lacks));
  }
  return out;
}

Records Reader::replication() {
  if (deployment_.sentinel()) return {};
  return {replication_record(deployment_.info(),
                             deployment_.uses_sentinels() ? deployment_.client().address() : std::string())};
}

const std::string& Reader::cluster_nodes() {
  if (nodes_.empty())
    nodes_ = deployment_.client().command(call_, {"CLUSTER", "NODES"}, "cluster", "+cluster|nodes").text;
  return nodes_;
}

Records Reader::cluster() {
  const std::string enabled = get(deployment_.info(), "cluster_enabled");
  const bool unknown = enabled.empty() && !deployment_.sentinel();
  if (unknown) throw sdk::Failure(DRIFTD_UNSUPPORTED, "INFO does not say `cluster_enabled`", "cluster");
  if (enabled != "1") return {};
  Info state;
  try {
    state = parse_info(deployment_.client().command(call_, {"CLUSTER", "INFO"}, "cluster", "+cluster|info").text);
  } catch (const sdk::Failure& failure) {
    if (!only_this_kind(failure)) throw;
  }
  return {cluster_record(cluster_nodes(), state)};
}

}  // namespace driftd::redis
