// SPDX-License-Identifier: Apache-2.0
// Group schema, part 2: what a provider pushes during its calls is well formed and declared.
#include <driftd/ext/upgrade.h>
#include <fmt/format.h>

#include "check/abi_input.hpp"
#include "check/fuzz.hpp"
#include "check/group_schema.hpp"
#include "check/listing.hpp"
#include "check/progress.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace driftd::check {
namespace {

using std::chrono::milliseconds;

std::vector<Identity> identities(const CallTrace& trace, std::size_t max_count) {
  std::vector<Identity> out;
  for (const auto& record : trace.records) {
    if (out.size() < max_count) out.push_back(identity_of(record));
  }
  return out;
}

/// Makes a few calls of each kind: a listing, a read of existing and missing resources, health, a short watch.
void exercise(const Instance& instance) {
  const CallTrace trace = instance.refresh();
  auto asked = identities(trace, 100);
  for (const auto& kind : instance.provider().info().kinds) asked.push_back({{kind, "no-such-resource"}, {}});
  (void)instance.read(asked);
  (void)instance.health();
  if (!instance.provider().info().has_watch) return;
  RunningCall watch = instance.start(Function::watch, CallArguments{}, CallFaults{});
  (void)watch.returned_within(milliseconds(300));
  watch.cancel();
  (void)watch.wait();
}

void expect_no_violation(const Subject& subject, const char* rule) {
  const Instance instance(subject);
  exercise(instance);
  Host::get().expect_no_violation(rule);
}

/// Returns the path of the first attribute in `value` that no rule of the schema covers. Empty if there is none.
std::string undeclared(const core::KindSchema& schema, const core::Value& value, const core::Path& at) {
  if (!at.empty() && schema.find_rule(at) != nullptr) return {};
  if (const auto* object = value.object(); object != nullptr && (at.empty() || !object->empty())) {
    for (const auto& [key, member] : *object) {
      if (auto found = undeclared(schema, member, at.child(key)); !found.empty()) return found;
    }
    return {};
  }
  if (const auto* array = value.array(); array != nullptr && !array->empty()) {
    return undeclared(schema, array->front(), at.child(std::size_t{0}));
  }
  return at.render();
}

/// Expects a known status and, if the call failed, a diagnostic. `name` is the call in messages.
void check_failure(const CallTrace& trace, const std::string& name) {
  if (trace.threw || trace.status < DRIFTD_OK || trace.status > DRIFTD_INTERNAL) {
    throw RuleBroken(fmt::format("{} answered {}, which is no code of the ABI", name, trace.status));
  }
  if (trace.status != DRIFTD_OK && trace.diagnostics.empty()) {
    throw RuleBroken(
        fmt::format("{} answered {}; push a diagnostic: what, expected, found, next step", name, trace.why()));
  }
  for (const auto& d : trace.diagnostics) {
    if (d.text.empty())
      throw RuleBroken(fmt::format("{}: a diagnostic {} without a text", name, driftd::render(d.code)));
  }
}

void ask_upgrade(const driftd_upgrade_table& table, const std::string& kind, std::uint32_t from,
                 const std::string& body) {
  const auto ask = [&] {
    std::pair<driftd_status, std::vector<std::string>> out;
    const driftd_upgrade_args args{sizeof args, from, {kind.data(), kind.size()}, {body.data(), body.size()}};
    out.first = table.upgrade(
        &args,
        [](void* user, driftd_str text) {
          static_cast<std::vector<std::string>*>(user)->push_back(parse_text(text, "upgraded body", 4u << 20));
        },
        &out.second);
    return out;
  };
  const auto first = ask(), second = ask();
  const std::string name = fmt::format("upgrade of kind `{}` from revision {}", kind, from);
  if (first != second) throw RuleBroken(name + " gave something else the second time; it is [pure]");
  const auto& [status, pushed] = first;
  (void)parse_status(status, name.c_str());
  if (status != DRIFTD_OK && !pushed.empty())
    throw RuleBroken(fmt::format("{} answered {} and pushed a body", name, status));
  if (status != DRIFTD_OK) return;
  const auto parsed = pushed.size() == 1 ? core::parse(pushed.front()) : Result<core::Value>(core::Value());
  if (!parsed || parsed->object() == nullptr) {
    throw RuleBroken(fmt::format("{} answered OK and pushed {} texts; expected one JSON object", name, pushed.size()));
  }
}

}  // namespace

void bodies(const Subject& subject) { expect_no_violation(subject, "schema.bodies"); }
void text(const Subject& subject) { expect_no_violation(subject, "schema.text"); }
void unread(const Subject& subject) { expect_no_violation(subject, "schema.unread"); }
void metrics(const Subject& subject) { expect_no_violation(subject, "schema.metrics"); }

void declared_attributes(const Subject& subject) {
  const Instance instance(subject);
  for (const auto& record : list(instance).records) {
    const auto schema = instance.provider().info().schemas.find(record.id.kind);
    const auto body = core::parse(record.body);
    if (schema == instance.provider().info().schemas.end() || !body) continue;
    const auto found = undeclared(*schema->second, *body, {});
    if (!found.empty()) {
      throw RuleBroken(
          fmt::format("{}: attribute `{}` is not declared by the schema of kind `{}`; without a type it is compared "
                      "byte by byte",
                      render(identity_of(record)), found, record.id.kind));
    }
  }
}

void settings_fuzz(const Subject& subject) {
  auto random = random_of(subject, "schema.settings_fuzz");
  const auto& provider = Provider::load(subject);
  std::map<std::string, std::string> secrets = subject.secrets;
  std::vector<std::string> tokens;
  for (const std::size_t size : {0u, 1u, 20u, 100'000u})
    secrets["fuzzed-" + std::to_string(size)] = random_bytes(random, size);
  for (const auto& [token, bytes] : secrets) tokens.push_back(token);
  SettingsFuzz fuzz(provider.loaded().settings_schema, subject.settings_json, tokens, random);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(25);
  for (int i = 0; i < 300 && std::chrono::steady_clock::now() < until; ++i) {
    const std::string settings = fuzz.next();
    if (settings.empty()) throw CheckNotMade("no settings that its schema allows could be made from it");
    set_progress_note("settings made from the schema: " + settings.substr(0, 300));
    CallFaults brief;
    brief.time = milliseconds(2000);
    auto [trace, instance] = Instance::open(subject, settings, secrets, brief);
    check_failure(trace, "open with " + settings.substr(0, 200));
    if (instance != nullptr) instance->close();
  }
}

void statuses(const Subject& subject) {
  auto random = random_of(subject, "schema.statuses");
  const Instance instance(subject);
  const CallTrace plain = instance.refresh();
  check_failure(plain, "refresh");
  auto asked = identities(plain, 3);
  for (const auto& kind : instance.provider().info().kinds) asked.push_back({{kind, "no-such-resource"}, {}});
  check_failure(instance.read(asked), "read");
  check_failure(instance.health(), "health");
  CallFaults cancelled, late, denied;
  cancelled.cancel_at = 0;
  late.time = milliseconds(-1);
  denied.deny_secrets = true;
  for (const auto& [name, faults] :
       {std::pair("cancelled before the start", cancelled), std::pair("with a deadline that had passed", late),
        std::pair("without its secrets", denied)}) {
    check_failure(instance.refresh({}, faults), fmt::format("refresh {}", name));
    check_failure(instance.read(asked, faults), fmt::format("read {}", name));
  }
  check_failure(instance.refresh({random_bytes(random, 40), {}, {}}), "refresh with a foreign cursor");
  for (const auto k : spread(random, plain.callbacks, 10)) {
    CallFaults faults;
    faults.cancel_at = k;
    check_failure(instance.refresh({}, faults), fmt::format("refresh cancelled at host function {}", k));
  }
  Host::get().expect_no_violation("schema.statuses");
}

void upgrade(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const void* found = provider.query(DRIFTD_EXT_UPGRADE, DRIFTD_EXT_UPGRADE_REVISION);
  if (found == nullptr) throw CheckNotApplicable("does not offer driftd.upgrade/1");
  const auto table = copy_struct<driftd_upgrade_table>(found);
  std::map<std::string, std::string> bodies;
  {
    const Instance instance(subject);
    for (const auto& record : instance.refresh().records) bodies.try_emplace(record.id.kind, record.body);
  }
  for (const auto& [kind, schema] : provider.info().schemas) {
    for (std::uint32_t from = 0; from <= schema->revision() + 1; ++from) {
      for (const std::string& body : {bodies[kind], std::string("{}"), std::string(R"({"a":{"$hmac":"0:1:00"}})"),
                                      std::string("[1]"), std::string(), std::string("\xff{")}) {
        ask_upgrade(table, kind, from, body);
      }
    }
  }
  ask_upgrade(table, "no-such-kind", 1, "{}");
}

}  // namespace driftd::check
