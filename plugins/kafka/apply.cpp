// SPDX-License-Identifier: Apache-2.0
#include "kafka/apply.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/attribute_path.hpp"
#include "common/shell_text.hpp"
#include "common/wait_until.hpp"
#include "kafka/accepted.hpp"
#include "kafka/sasl_login.hpp"
#include "kafka/text.hpp"

namespace driftd::kafka {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kShown{5000}, kLook{50};
constexpr std::size_t kMaxBrokers = 3;  // that are tried for what any broker may answer
// of Kafka's protocol
constexpr int kUnknownTopic = 3, kLeaderNotAvailable = 5, kTimedOut = 7, kBrokerNotAvailable = 8, kTopicDenied = 29,
              kClusterDenied = 31, kUnsupportedVersion = 35, kNotController = 41, kThrottled = 89;

std::string resource_text(const sdk::Identity& id) { return id.kind + "/" + id.id; }

/// Returns true if every change has its new value.
bool all_hold(const json& body, const sdk::Apply& request) {
  return std::all_of(request.changes.begin(), request.changes.end(), [&](const sdk::Change& change) {
    return common::holds_at(body, common::parse_attribute_path(change.path),
                            common::parse_change_value(change.new_value));
  });
}

/// The order of a list in a configuration does not count.
bool is_unordered(const std::string&) { return true; }

/// Returns why an attribute of the request was not read; null if all were.
const sdk::Unread* unread_of(const sdk::Record& now, const sdk::Apply& request) {
  for (const auto& unread : now.unread) {
    const bool all = unread.path.ends_with(".**");
    const std::string below = all ? unread.path.substr(0, unread.path.size() - 3) : unread.path;
    for (const auto& change : request.changes) {
      const bool covers = change.path == below ||
                          (all && (change.path.starts_with(below + "[") || change.path.starts_with(below + ".")));
      if (covers) return &unread;
    }
  }
  return nullptr;
}

std::string right_of(const AlterRequest& request) {
  return request.type == ConfigResource::topic ? "AlterConfigs on Topic " + request.name : "AlterConfigs on Cluster";
}

sdk::Applied denied_outcome(const AlterRequest& request, const Settings& settings, const AlterAnswer& answer) {
  const std::string principal = settings.principal().empty() ? "User:NAME" : settings.principal();
  const std::string grant =
      "kafka-acls.sh --bootstrap-server " + settings.bootstrap.front() + " --add --allow-principal " +
      common::shell_word(principal) + " --operation AlterConfigs " +
      (request.type == ConfigResource::topic ? "--topic " + common::shell_word(request.name) : "--cluster");
  sdk::Applied out = common::refused("Kafka refuses it: the right " + right_of(request) +
                                     " is missing; nothing was changed. Grant it: " + grant +
                                     (answer.text.empty() ? "" : " (" + one_line(answer.text) + ")"));
  out.details["right"] = right_of(request);
  out.details["instead"] = grant;
  return out;
}

/// Returns the outcome of a refusal. Throws for what may work later, and for a topic that is gone.
sdk::Applied refusal_outcome(const AlterRequest& request, const Settings& settings, const AlterAnswer& answer) {
  const std::string name = rd_kafka_err2name(static_cast<rd_kafka_resp_err_t>(answer.error));
  const std::string text = name + (answer.text.empty() ? "" : ": " + one_line(answer.text));
  switch (answer.error) {
    case kUnknownTopic:
      throw sdk::Failure(DRIFTD_NOT_FOUND, "topic " + request.name + " is gone: " + text, "topic");
    case kTopicDenied:
    case kClusterDenied:
      return denied_outcome(request, settings, answer);
    case kLeaderNotAvailable:
    case kTimedOut:
    case kBrokerNotAvailable:
    case kNotController:
    case kThrottled:
      throw sdk::Failure(DRIFTD_UNAVAILABLE, "IncrementalAlterConfigs: the cluster cannot answer now: " + text);
    case kUnsupportedVersion:
      return common::refused("the broker does not know IncrementalAlterConfigs; expected Kafka 2.3 or newer");
    default:
      return common::refused("Kafka refuses the values: " + text + "; nothing was changed");
  }
}

void add_commands(sdk::Applied& to, const AlterPlan& plan, const Settings& settings) {
  to.commands.push_back(alter_command(plan.request, settings.bootstrap.front()));
  to.undo.push_back(alter_command(plan.undo, settings.bootstrap.front()));
}

}  // namespace

sdk::Record Applier::read(const sdk::Identity& id) const {
  if (std::find(kKinds.begin(), kKinds.end(), id.kind) == kKinds.end())
    throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + id.kind, id.kind);
  Listing listing = reader_.read(id.kind, {id.id});
  for (auto& record : listing.records) {
    if (record.id == id.id) return std::move(record);
  }
  for (const auto& one : listing.diagnostics) {
    if (one.id == id.id) throw sdk::Failure(one.code, resource_text(id) + ": " + one.text, id.kind, one.right);
  }
  throw sdk::Failure(DRIFTD_UNAVAILABLE, resource_text(id) + " was not read, and nothing says that it is gone");
}

std::optional<sdk::Applied> Applier::decided(const sdk::Record& now, const sdk::Apply& request,
                                             const AlterPlan& plan) const {
  if (const sdk::Unread* unread = unread_of(now, request)) {
    if (unread->code == DRIFTD_UNAVAILABLE) throw sdk::Failure(DRIFTD_UNAVAILABLE, unread->reason, request.id.kind);
    return common::refused(resource_text(request.id) + ": " + unread->path +
                           " cannot be set, because it cannot be read: " + unread->reason);
  }
  if (auto done = common::compare_judged(now, request, &is_unordered)) return done;
  if (!plan.impossible.empty()) {
    sdk::Applied out = common::refused(plan.impossible);
    if (!plan.instead.empty()) out.details["instead"] = plan.instead;
    return out;
  }
  if (const std::string why = hidden(plan); !why.empty())
    return common::refused(resource_text(request.id) + ": " + why);
  return std::nullopt;
}

std::string Applier::hidden(const AlterPlan& plan) const {
  const AlterRequest& request = plan.request;
  std::vector<Configs> all;
  if (request.type == ConfigResource::topic)
    all = client_.topic_configs(call_, {request.name});
  else if (!request.name.empty())
    all = client_.broker_configs(call_, {std::stoi(request.name)});
  else if (!reader_.metadata().brokers.empty())
    all = client_.broker_configs(call_, {reader_.metadata().brokers.front().id});
  if (all.empty() || !all.front().outcome.ok()) {
    const Outcome why = all.empty() ? Outcome{DRIFTD_UNAVAILABLE, "no broker is alive"} : all.front().outcome;
    throw sdk::Failure(why.code, "asking for the configurations that can be set: " + why.text);
  }
  for (const auto& one : request.alterations) {
    const auto& entries = all.front().entries;
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const ConfigEntry& entry) { return entry.name == one.name; });
    if (found == entries.end())
      return one.name + " cannot be set: the broker does not list it, so it may be a secret or another version's";
    if (found->sensitive) return one.name + " cannot be set: Kafka calls it sensitive, and secrets are never put back";
  }
  return {};
}

AlterAnswer Applier::send_to(const std::string& endpoint, const AlterRequest& request, bool& sent) const {
  call_.permit("requests");
  BrokerConnection connection(call_, settings_, endpoint, "apply", settings_.connect + settings_.call);
  sasl_login(call_, settings_, connection);
  sent = true;
  connection.send(alter_request(7, request));
  return parse_alter(connection.answer(kMaxAlterAnswer), 7, request);
}

/// Topics and defaults: any broker, which passes it on to the controller. What is set at one broker: that broker, as
/// Kafka's own tools do, because only it can check the value.
AlterAnswer Applier::send(const AlterRequest& request) const {
  std::vector<std::string> endpoints;
  const bool one_broker = request.type == ConfigResource::broker && !request.name.empty();
  for (const auto& broker : reader_.metadata().brokers) {
    if (!one_broker || std::to_string(broker.id) == request.name) endpoints.push_back(endpoint_of(broker));
  }
  if (endpoints.empty()) {
    throw sdk::Failure(DRIFTD_UNAVAILABLE,
                       one_broker ? "broker " + request.name + " is not alive" : std::string("no broker is alive"));
  }
  for (std::size_t i = 0;; ++i) {
    bool sent = false;
    try {
      return send_to(endpoints[i], request, sent);
    } catch (const sdk::Failure& failure) {
      const bool more = i + 1 < std::min(endpoints.size(), kMaxBrokers);
      if (failure.code != DRIFTD_UNAVAILABLE || sent || !more) throw;
    }
  }
}

bool Applier::shown(const sdk::Apply& request) const {
  const auto until = net::Steady::now() + kShown;
  for (;;) {
    Reader reader(call_, client_, settings_, reader_.hellos());  // a new one: a reader asks only once
    const Listing listing = reader.read(request.id.kind, {request.id.id});
    for (const auto& record : listing.records) {
      if (record.id == request.id.id && all_hold(json::parse(record.body), request)) return true;
    }
    if (net::Steady::now() >= until || common::wait_until(call_, net::Steady::now() + kLook)) return false;
  }
}

sdk::Applied Applier::apply(const sdk::Record& now, const sdk::Apply& request) const {
  if (request.changes.empty() || request.key.empty())
    throw sdk::Failure(DRIFTD_INVALID, "apply: expected at least one change and an idempotency key");
  AlterPlan plan = plan_alteration(request.id, request.changes, settings_.bootstrap.front());
  if (!request.dry_run) {
    if (auto done = answer_repeated(keys_, request, now)) return *done;
  }
  if (auto out = decided(now, request, plan)) return *out;
  plan.request.validate_only = request.dry_run;
  const AlterAnswer answer = send(plan.request);
  if (answer.error != 0) return refusal_outcome(plan.request, settings_, answer);
  sdk::Applied out;
  add_commands(out, plan, settings_);
  if (request.dry_run) return out;
  return answer_accepted(keys_, request, std::move(out), [&] { return shown(request); });
}

}  // namespace driftd::kafka
