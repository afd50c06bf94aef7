// SPDX-License-Identifier: Apache-2.0
// Group secrets: a provider keeps the secrets of its settings to itself.
#include <fmt/format.h>

#include <algorithm>

#include "check/listing.hpp"
#include "check/planted.hpp"
#include "check/progress.hpp"
#include "check/secret_finder.hpp"
#include "core/redact.hpp"

namespace driftd::check {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Returns all texts of one call that leave the worker in clear text, each with the name of its place.
std::vector<std::pair<std::string, std::string>> visible_texts(const Provider& provider, const CallTrace& trace) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& line : trace.logs) out.emplace_back("a log line", line);
  for (const auto& d : trace.diagnostics) {
    out.emplace_back("a diagnostic", d.text + '\n' + d.right + '\n' + d.path + '\n' + d.kind + '\n' + d.id);
  }
  for (const auto& mark : trace.marks) out.emplace_back("a cursor", mark.cursor);
  for (const auto& h : trace.health) {
    out.emplace_back("a health report", h.reason + '\n' + h.role + '\n' + h.system_identity + '\n' + h.server_version);
  }
  for (const auto& bucket : trace.permits) out.emplace_back("a permit's bucket", bucket);
  for (const auto& r : trace.records) {
    const auto found = provider.info().schemas.find(r.id.kind);
    const auto schema = found == provider.info().schemas.end() ? core::KindSchema::unknown(r.id.kind) : found->second;
    const auto body = core::redact(r.body, r.id, *schema, r.sensitive, {"00000000", {}});
    const std::string of = " of " + render(identity_of(r));
    out.emplace_back("an attribute that is not sensitive" + of, body ? *body : r.body);
    out.emplace_back("the status" + of, r.status);
    std::string rest = r.id.id + '\n' + r.version + '\n' + r.external_name + '\n' + r.origin + '\n' + r.backend;
    for (const auto& [key, value] : r.metadata) rest += '\n' + key + '\n' + value;
    for (const auto& unread : r.unread) rest += '\n' + unread.reason;
    out.emplace_back("the names or metadata" + of, rest);
  }
  return out;
}

class Script {
 public:
  Script(const Subject& subject, SecretSettings secret_settings, CallFaults faults = {})
      : subject_(subject),
        secret_settings_(std::move(secret_settings)),
        faults_(std::move(faults)) {}

  /// Calls open, refresh, read, health and a short watch, and returns their traces. Stops if open fails.
  std::vector<CallTrace> run() const {
    std::vector<CallTrace> out;
    auto [opened, instance] = Instance::open(subject_, secret_settings_.settings, secret_settings_.secrets, faults_);
    out.push_back(std::move(opened));
    if (instance == nullptr) return out;
    std::vector<Identity> asked{{{instance->provider().info().kinds.front(), "no-such-resource"}, {}}};
    for (int i = 0; i < 3; ++i)
      out.push_back(instance->refresh({i == 1 ? "not-a-cursor" : "", {}, {}, i == 2}, faults_));
    for (const auto& record : out.back().records) {
      if (asked.size() < 50) asked.push_back(identity_of(record));
    }
    out.push_back(instance->read(asked, faults_));
    out.push_back(instance->health(faults_));
    if (instance->provider().info().has_watch) {
      RunningCall watch = instance->start(Function::watch, CallArguments{}, faults_);
      (void)watch.returned_within(milliseconds(300));
      watch.cancel();
      out.push_back(watch.wait());
    }
    instance->close();
    return out;
  }

 private:
  const Subject& subject_;
  const SecretSettings secret_settings_;
  const CallFaults faults_;
};

void own_tokens(const Subject& subject) {
  (void)Script(subject, {subject.settings_json, subject.secrets}).run();
  Host::get().expect_no_violation("secrets.own_tokens");
}

void not_told(const Subject& subject) {
  bool any = false;
  for (const auto& given :
       secret_settings(subject, Provider::load(subject).loaded().settings_schema, "secrets.not_told")) {
    const SecretFinder finder(given.secrets, given.settings);
    any |= !finder.empty();
    for (const auto& trace : Script(subject, given).run()) {
      for (const auto& [where, text] : visible_texts(Provider::load(subject), trace)) {
        const std::string form = finder.find(text);
        if (!form.empty()) {
          throw RuleBroken(
              fmt::format("a secret of the settings stands {} in {}; name the setting, never its value", form, where));
        }
      }
    }
  }
  if (!any) throw CheckNotMade("no secret of the settings has at least 8 bytes that are not also public");
}

void not_kept(const Subject& subject) {
  set_progress_note("the bytes of a secret cannot be read any more once `use` returned: copy what is needed inside it");
  CallFaults faults;
  faults.deliver_secret = &deliver_on_own_page;
  for (const auto& given :
       secret_settings(subject, Provider::load(subject).loaded().settings_schema, "secrets.not_kept"))
    (void)Script(subject, given, faults).run();
}

void quiet_use(const Subject& subject) {
  for (const auto& given :
       secret_settings(subject, Provider::load(subject).loaded().settings_schema, "secrets.quiet_use"))
    (void)Script(subject, given).run();
  Host::get().expect_no_violation("secrets.quiet_use");
}

constexpr Check kSecretsChecks[] = {
    {"secrets.own_tokens", Level::must, "secret() is asked for own tokens only", seconds(90), &own_tokens},
    {"secrets.not_told", Level::must,
     "planted secrets are in no log line, diagnostic, status, metadata, cursor, health report, nor a body attribute "
     "that "
     "is not sensitive",
     seconds(120), &not_told},
    {"secrets.not_kept", Level::must, "the bytes are not read after `use` returned", seconds(120), &not_kept},
    {"secrets.quiet_use", Level::must, "`use` calls no host function", seconds(120), &quiet_use},
};

}  // namespace

std::span<const Check> secrets_checks() { return kSecretsChecks; }

}  // namespace driftd::check
