// SPDX-License-Identifier: Apache-2.0
// Group schema: how a sink describes itself, its settings, and what it answers.
#include <fmt/format.h>

#include "check/documents.hpp"
#include "check/fuzz.hpp"
#include "check/progress.hpp"
#include "check/random.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/stand.hpp"
#include "ipc/text.hpp"

namespace driftd::check::sink {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void describe(const Subject& subject) {
  const auto& plugin = SinkPlugin::load(subject);
  const SinkInfo info = parse_sink_info(expect_document("describe", plugin.describe(), plugin.describe()));
  (void)EventMaker(info, 0);  // it must ask for a body form that the host can produce
}

void settings(const Subject& subject) {
  const auto& plugin = SinkPlugin::load(subject);
  const std::string text =
      expect_document("schema(\"settings\")", plugin.schema("settings"), plugin.schema("settings"));
  expect_settings_schema(text, {"{}", subject.settings_json, R"({"no-such-setting":[1]})"});
}

void unknown(const Subject& subject) {
  const auto& plugin = SinkPlugin::load(subject);
  auto random = random_of(subject, "schema.unknown");
  for (const std::string& what :
       {std::string(), std::string("event"), std::string("setting"), std::string("settings\0", 9),
        random_word(random, 100'000), random_bytes(random, 64)}) {
    const CallTrace trace = plugin.schema(what);
    if (trace.status == DRIFTD_NOT_FOUND && trace.pushed.empty() && !trace.threw) continue;
    throw RuleBroken(fmt::format("schema(\"{}\") answered {} and pushed {} documents; expected NOT_FOUND and none",
                                 ipc::printable(what.substr(0, 40), 40), trace.status, trace.pushed.size()));
  }
}

/// Expects a known status and, if the call failed, a diagnostic. `name` is the call in messages.
void check_failure(const CallTrace& trace, const std::string& name) {
  if (trace.threw || trace.status < DRIFTD_OK || trace.status > DRIFTD_INTERNAL)
    throw RuleBroken(fmt::format("{} answered {}, which is no code of the ABI", name, trace.status));
  if (trace.status != DRIFTD_OK && trace.diagnostics.empty()) {
    throw RuleBroken(
        fmt::format("{} answered {}; push a diagnostic: what, expected, found, next step", name, trace.why()));
  }
  for (const auto& d : trace.diagnostics) {
    if (d.text.empty())
      throw RuleBroken(fmt::format("{}: a diagnostic {} without a text", name, driftd::render(d.code)));
  }
}

void settings_fuzz(const Subject& subject) {
  constexpr int kTries = 300;
  Stand stand(subject, "schema.settings_fuzz");
  auto random = random_of(subject, "schema.settings_fuzz");
  std::map<std::string, std::string> secrets = subject.secrets;
  std::vector<std::string> tokens;
  for (const std::size_t size : {0U, 1U, 20U, 100'000U})
    secrets["fuzzed-" + std::to_string(size)] = random_bytes(random, size);
  for (const auto& [token, bytes] : secrets) tokens.push_back(token);
  SettingsFuzz fuzz(stand.plugin().settings_schema(), stand.subject().settings_json, tokens, random);
  const auto until = std::chrono::steady_clock::now() + seconds(30);
  for (int i = 0; i < kTries && std::chrono::steady_clock::now() < until; ++i) {
    const std::string made = fuzz.next();
    if (made.empty()) throw CheckNotMade("no settings that its schema allows could be made from it");
    set_progress_note("settings made from the schema: " + made.substr(0, 300));
    CallFaults brief;
    brief.time = milliseconds(2000);
    const auto [trace, instance] = SinkInstance::open(stand.subject(), {made, secrets}, brief);
    check_failure(trace, "open with " + made.substr(0, 200));
    if (instance == nullptr) continue;
    brief.time = milliseconds(100);
    (void)instance->deliver(stand.events().batch(1), brief);
    instance->close();
  }
}

void statuses(const Subject& subject) {
  Stand stand(subject, "schema.statuses");
  const auto instance = SinkInstance::open_plain(stand.subject());
  CallFaults cancelled, late, denied;
  cancelled.cancel_at = 0;
  late.time = milliseconds(-1);
  denied.deny_secrets = true;
  check_failure(instance->probe(), "probe");
  if (instance->has_flush()) check_failure(instance->flush(), "flush");
  const CallTrace plain = instance->deliver(stand.events().full_batch(8));
  check_failure(plain, "deliver");
  for (const auto& [name, faults] :
       {std::pair("cancelled before the start", cancelled), std::pair("with a deadline that had passed", late),
        std::pair("without its secrets", denied)}) {
    check_failure(instance->deliver(stand.events().full_batch(8), faults), fmt::format("deliver {}", name));
    check_failure(instance->probe(faults), fmt::format("probe {}", name));
  }
  auto random = random_of(subject, "schema.statuses");
  for (const auto k : spread(random, plain.callbacks, 10)) {
    CallFaults faults;
    faults.cancel_at = k;
    check_failure(instance->deliver(stand.events().full_batch(8), faults),
                  fmt::format("deliver cancelled at host function {}", k));
  }
  Host::get().expect_no_violation("schema.statuses");
}

void text(const Subject& subject) {
  Stand stand(subject, "schema.text");
  exercise(stand);
  Host::get().expect_no_violation("schema.text");
}

constexpr Check kSchemaChecks[] = {
    {"schema.describe", Level::must, "describe is one JSON object with what the host needs, the same each time",
     seconds(20), &describe},
    {"schema.settings", Level::must, "the settings have a JSON Schema that the host understands", seconds(20),
     &settings},
    {"schema.unknown", Level::must, "another name is NOT_FOUND and pushes nothing", seconds(20), &unknown},
    {"schema.settings_fuzz", Level::must, "settings made from the schema open or are refused with a reason; no crash",
     seconds(120), &settings_fuzz},
    {"schema.statuses", Level::must, "every status is a known code, and a failure comes with a diagnostic", seconds(90),
     &statuses},
    {"schema.text", Level::must, "every text is UTF-8 and within its limit", seconds(100), &text},
};

}  // namespace

std::span<const Check> schema_checks() { return kSchemaChecks; }

}  // namespace driftd::check::sink
