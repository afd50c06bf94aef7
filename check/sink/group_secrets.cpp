// SPDX-License-Identifier: Apache-2.0
// Group secrets: a sink keeps the secrets of its settings to itself.
#include <fmt/format.h>

#include "check/progress.hpp"
#include "check/secret_finder.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Opens, delivers, probes, fails to reach its peer, and closes. Returns the traces of the calls.
std::vector<CallTrace> run_script(Stand& stand, const Subject& subject, const SecretSettings& settings,
                                  const CallFaults& faults = {}) {
  std::vector<CallTrace> out;
  auto [opened, instance] = SinkInstance::open(subject, settings, faults);
  out.push_back(std::move(opened));
  if (instance == nullptr) return out;
  CallFaults brief = faults;
  brief.time = milliseconds(2000);
  for (int i = 0; i < 2; ++i) out.push_back(instance->deliver(stand.events().full_batch(8), brief));
  out.push_back(instance->probe(brief));
  if (instance->has_flush()) out.push_back(instance->flush(brief));
  instance->close();
  return out;
}

/// Runs the script with each pair of settings and secrets, with the receiver and with a peer that refuses connections.
template <class F>
void with_secrets(Stand& stand, const char* id, const CallFaults& faults, const F& look) {
  std::vector<Subject> subjects{stand.subject()};
  const BlackHole refusing = stand.black_hole(BlackHole::Kind::refusing);
  try {
    subjects.push_back(stand.pointed_at(refusing));
  } catch (const CheckNotMade&) {
    set_progress("it has no peer that could refuse");
  }
  for (const auto& subject : subjects) {
    for (const auto& given : secret_settings(subject, stand.plugin().settings_schema(), id))
      look(given, run_script(stand, subject, given, faults));
  }
}

/// Returns all texts of one call that leave the worker in clear text, each with the name of its place.
std::vector<std::pair<const char*, std::string>> visible_texts(const CallTrace& trace) {
  std::vector<std::pair<const char*, std::string>> out;
  for (const auto& line : trace.logs) out.emplace_back("a log line", line);
  for (const auto& d : trace.diagnostics)
    out.emplace_back("a diagnostic", d.text + '\n' + d.right + '\n' + d.path + '\n' + d.kind + '\n' + d.id);
  for (const auto& h : trace.health) {
    out.emplace_back("a report of probe",
                     h.reason + '\n' + h.role + '\n' + h.system_identity + '\n' + h.server_version);
  }
  for (const auto& [index, settlement] : trace.settled) out.emplace_back("the detail of a verdict", settlement.detail);
  return out;
}

void own_tokens(const Subject& subject) {
  Stand stand(subject, "secrets.own_tokens");
  (void)run_script(stand, stand.subject(), {stand.subject().settings_json, subject.secrets});
  Host::get().expect_no_violation("secrets.own_tokens");
}

void not_told(const Subject& subject) {
  Stand stand(subject, "secrets.not_told");
  bool any = false;
  with_secrets(stand, "secrets.not_told", {}, [&](const SecretSettings& given, const std::vector<CallTrace>& traces) {
    const SecretFinder finder(given.secrets, given.settings);
    any |= !finder.empty();
    for (const auto& trace : traces) {
      for (const auto& [where, text] : visible_texts(trace)) {
        const std::string form = finder.find(text);
        if (form.empty()) continue;
        throw RuleBroken(
            fmt::format("a secret of the settings stands {} in {}; name the setting, never its value", form, where));
      }
    }
  });
  if (!any) throw CheckNotMade("no secret of the settings has at least 8 bytes that are not also public");
}

void not_kept(const Subject& subject) {
  set_progress_note("the bytes of a secret cannot be read any more once `use` returned: copy what is needed inside it");
  Stand stand(subject, "secrets.not_kept");
  CallFaults faults;
  faults.deliver_secret = &deliver_on_own_page;
  with_secrets(stand, "secrets.not_kept", faults, [](const SecretSettings&, const std::vector<CallTrace>&) {});
}

void quiet_use(const Subject& subject) {
  Stand stand(subject, "secrets.quiet_use");
  with_secrets(stand, "secrets.quiet_use", {}, [](const SecretSettings&, const std::vector<CallTrace>&) {});
  Host::get().expect_no_violation("secrets.quiet_use");
}

constexpr Check kSecretsChecks[] = {
    {"secrets.own_tokens", Level::must, "secret() is asked for own tokens only", seconds(90), &own_tokens},
    {"secrets.not_told", Level::must,
     "planted secrets are in no log line, diagnostic, detail of a verdict or report of probe", seconds(120), &not_told},
    {"secrets.not_kept", Level::must, "the bytes are not read after `use` returned", seconds(120), &not_kept},
    {"secrets.quiet_use", Level::must, "`use` calls no host function", seconds(120), &quiet_use},
};

}  // namespace

std::span<const Check> secrets_checks() { return kSecretsChecks; }

}  // namespace driftd::check::sink
