// SPDX-License-Identifier: Apache-2.0
// Group schema, second room: what a provider says in its calls is well formed and declared.
#include <driftd/ext/upgrade.h>
#include <fmt/format.h>

#include "check/fuzz.hpp"
#include "check/group_schema.hpp"
#include "check/intake.hpp"
#include "check/listing.hpp"
#include "check/stage.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace driftd::check {
namespace {

using std::chrono::milliseconds;

std::vector<Identity> identities(const Said& said, std::size_t most) {
  std::vector<Identity> out;
  for (const auto& record : said.records) {
    if (out.size() < most) out.push_back(identity_of(record));
  }
  return out;
}

/// A bit of everything: a listing, a read of what is there and what is not, health, a brief watch.
void exercise(const Instance& instance) {
  const Said said = instance.refresh();
  auto asked = identities(said, 100);
  for (const auto& kind : instance.provider().info().kinds) asked.push_back({{kind, "no-such-resource"}, {}});
  (void)instance.read(asked);
  (void)instance.health();
  if (!instance.provider().info().has_watch) return;
  Running watch = instance.start(Function::watch, Ask{}, Treatment{});
  (void)watch.returned_within(milliseconds(300));
  watch.cancel();
  (void)watch.wait();
}

void expect_kept(const Subject& subject, const char* rule) {
  const Instance instance(subject);
  exercise(instance);
  Host::get().expect_kept(rule);
}

/// The first attribute below `value` that no rule of the schema covers, or empty.
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

/// A failure whose status is known and told; `name` says of what.
void judge_failure(const Said& said, const std::string& name) {
  if (said.threw || said.status < DRIFTD_OK || said.status > DRIFTD_INTERNAL) {
    throw Broken(fmt::format("{} answered {}, which is no code of the ABI", name, said.status));
  }
  if (said.status != DRIFTD_OK && said.diagnostics.empty()) {
    throw Broken(fmt::format("{} answered {}; push a diagnostic: what, expected, found, next step", name, said.why()));
  }
  for (const auto& d : said.diagnostics) {
    if (d.text.empty()) throw Broken(fmt::format("{}: a diagnostic {} without a text", name, driftd::render(d.code)));
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
          static_cast<std::vector<std::string>*>(user)->push_back(take_text(text, "upgraded body", 4u << 20));
        },
        &out.second);
    return out;
  };
  const auto first = ask(), second = ask();
  const std::string name = fmt::format("upgrade of kind `{}` from revision {}", kind, from);
  if (first != second) throw Broken(name + " gave something else the second time; it is [pure]");
  const auto& [status, pushed] = first;
  (void)take_status(status, name.c_str());
  if (status != DRIFTD_OK && !pushed.empty())
    throw Broken(fmt::format("{} answered {} and pushed a body", name, status));
  if (status != DRIFTD_OK) return;
  const auto parsed = pushed.size() == 1 ? core::parse(pushed.front()) : Result<core::Value>(core::Value());
  if (!parsed || parsed->object() == nullptr) {
    throw Broken(fmt::format("{} answered OK and pushed {} texts; expected one JSON object", name, pushed.size()));
  }
}

}  // namespace

void bodies(const Subject& subject) { expect_kept(subject, "schema.bodies"); }
void text(const Subject& subject) { expect_kept(subject, "schema.text"); }
void unread(const Subject& subject) { expect_kept(subject, "schema.unread"); }
void metrics(const Subject& subject) { expect_kept(subject, "schema.metrics"); }

void declared_attributes(const Subject& subject) {
  const Instance instance(subject);
  for (const auto& record : list(instance).records) {
    const auto schema = instance.provider().info().schemas.find(record.id.kind);
    const auto body = core::parse(record.body);
    if (schema == instance.provider().info().schemas.end() || !body) continue;
    const auto found = undeclared(*schema->second, *body, {});
    if (!found.empty()) {
      throw Broken(
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
    if (settings.empty()) throw NotMade("no settings that its schema allows could be made from it");
    stage_note("settings made from the schema: " + settings.substr(0, 300));
    Treatment brief;
    brief.time = milliseconds(2000);
    auto [said, instance] = Instance::open(subject, settings, secrets, brief);
    judge_failure(said, "open with " + settings.substr(0, 200));
    if (instance != nullptr) instance->close();
  }
}

void statuses(const Subject& subject) {
  auto random = random_of(subject, "schema.statuses");
  const Instance instance(subject);
  const Said plain = instance.refresh();
  judge_failure(plain, "refresh");
  auto asked = identities(plain, 3);
  for (const auto& kind : instance.provider().info().kinds) asked.push_back({{kind, "no-such-resource"}, {}});
  judge_failure(instance.read(asked), "read");
  judge_failure(instance.health(), "health");
  Treatment cancelled, late, denied;
  cancelled.cancel_at = 0;
  late.time = milliseconds(-1);
  denied.deny_secrets = true;
  for (const auto& [name, treatment] :
       {std::pair("cancelled before the start", cancelled), std::pair("with a deadline that had passed", late),
        std::pair("without its secrets", denied)}) {
    judge_failure(instance.refresh({}, treatment), fmt::format("refresh {}", name));
    judge_failure(instance.read(asked, treatment), fmt::format("read {}", name));
  }
  judge_failure(instance.refresh({random_bytes(random, 40), {}, {}}), "refresh with a foreign cursor");
  for (const auto k : spread(random, plain.callbacks, 10)) {
    Treatment treatment;
    treatment.cancel_at = k;
    judge_failure(instance.refresh({}, treatment), fmt::format("refresh cancelled at host function {}", k));
  }
  Host::get().expect_kept("schema.statuses");
}

void upgrade(const Subject& subject) {
  const auto& provider = Provider::load(subject);
  const void* found = provider.query(DRIFTD_EXT_UPGRADE, DRIFTD_EXT_UPGRADE_REVISION);
  if (found == nullptr) throw NotApplicable("does not offer driftd.upgrade/1");
  const auto table = adopt<driftd_upgrade_table>(found);
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
