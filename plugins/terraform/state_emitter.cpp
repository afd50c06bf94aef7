// SPDX-License-Identifier: Apache-2.0
#include "terraform/state_emitter.hpp"

#include <charconv>

namespace driftd::terraform {
namespace {

constexpr const char* kEncrypted =
    "the state is encrypted by OpenTofu; only its lineage and serial are known, driftd has no key for the rest";

std::int64_t number(const std::string& text) {
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

Reading read_fetched(const Fetched& fetched, const Cursor& before) {
  Reading out;
  out.head = read_head(fetched.state);
  out.sent_ns = fetched.sent_ns;
  out.lock_age_s = fetched.lock_age_s;
  out.size = fetched.state.size();
  out.provenance = fetched.provenance;
  out.history = history_of(before.head, out.head);
  const bool same_line =
      before.head.lineage == out.head.lineage && number(out.head.serial) <= number(before.head.serial);
  if (out.history.empty() && same_line) out.history = before.history;  // it stays so until an apply makes a new serial
  return out;
}

bool StateEmitter::emit(const sdk::Record& record) {
  if (!request_.wants(record.kind) || !settings_.scope.wants(record.kind, record.id)) return !call_.cancelled();
  ++counts_[record.kind];
  return call_.emit(record);
}

bool StateEmitter::instance(const Instance& instance) {
  return whole_ = emit(instance_record(reading_, instance, settings_)) && declare_all(instance) &&
                  emit_registration(instance);
}

bool StateEmitter::emit_registration(const Instance& instance) {
  const auto definition = finder_.find(instance);
  if (!definition || !wants_registrations() ||
      !settings_.registration_scope.wants(kRegistration, definition->backend.name))
    return true;
  return call_.emit(registration_of(reading_, instance, *definition));
}

/// If part of a state could not be read, nothing of it is gone. This backend itself has no registration.
void StateEmitter::complete_registrations() {
  for (auto diagnostic : finder_.diagnostics) {
    diagnostic.kind = kRegistration;
    call_.diag(diagnostic);
  }
  const auto complete = [this](const std::string& name, std::uint64_t count) {
    if (settings_.registration_scope.wants(kRegistration, name)) call_.complete(kRegistration, count, name);
  };
  for (const auto& name : finder_.names) complete(name, 1);
  if (!finder_.diagnostics.empty()) return;
  for (const auto& name : before_) {
    if (!finder_.names.contains(name)) complete(name, 0);
  }
  call_.complete(kRegistration, 0);
}

std::set<std::string> StateEmitter::reported_backends() const {
  std::set<std::string> out = finder_.names;
  if (!wants_registrations() || reading_.head.encrypted || !finder_.diagnostics.empty())
    out.insert(before_.begin(), before_.end());
  return out;
}

bool StateEmitter::declare_all(const Instance& instance) {
  for (const auto& rule : settings_.declares) {
    if (!matches(rule, instance)) continue;
    std::string why;
    const auto declared = declare(instance, rule, why);
    if (!declared) {
      // each reason once, at the first resource that it holds for
      if (!why.empty() && reported_.emplace(rule.backend, why).second)
        call_.diag({DRIFTD_UNSUPPORTED, "instance", instance.id(), {}, why});
      continue;
    }
    if (!request_.wants(declared->kind)) continue;
    if (!declared_.emplace(rule.backend, declared->kind, declared->id).second) {
      const std::string twice =
          declared->kind + "/" + declared->id + " of " + rule.backend + " is declared twice; the first counts";
      if (reported_.emplace(rule.backend, twice).second)
        call_.diag({DRIFTD_CONFLICT, "instance", instance.id(), {}, twice});
      continue;
    }
    if (!call_.emit(declared_record(reading_, instance, *declared, rule.backend))) return false;
  }
  return true;
}

void StateEmitter::complete_declared() {
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
  for (const auto& rule : settings_.declares) {
    for (const auto& kind : declared_kinds(rule)) counts[{rule.backend, kind}] = 0;
  }
  for (const auto& [backend, kind, id] : declared_) ++counts[{backend, kind}];
  for (const auto& [of, count] : counts) {
    if (!request_.wants(of.second)) continue;
    if (reading_.head.encrypted) {
      sdk::Diagnostic unknown{DRIFTD_UNSUPPORTED, of.second, {}, {}, kEncrypted};
      unknown.backend = of.first;
      call_.diag(unknown);
    } else {
      call_.complete(of.second, count, of.first);
    }
  }
}

bool StateEmitter::output(const std::string& name, const nlohmann::json& output) {
  return whole_ = emit(output_record(reading_, name, output));
}

void StateEmitter::complete() {
  for (const std::string kind : kKinds) {
    if (kind == kRegistration ? !wants_registrations() : !wants(kind)) continue;
    if (reading_.head.encrypted && kind != "state") {
      call_.diag({DRIFTD_UNSUPPORTED, kind, {}, {}, kEncrypted});
    } else if (kind == kRegistration) {
      complete_registrations();
    } else {
      call_.complete(kind, counts_[kind]);
    }
  }
}

bool StateEmitter::run(const Spool& state) {
  if (!emit(state_record(reading_))) return false;
  read_contents(state, reading_.head, *this);
  if (!whole_) return false;
  complete();
  complete_declared();
  return true;
}

Lookup::Lookup(sdk::Call& call, const Settings& settings, const Reading& reading, std::span<const sdk::Identity> ids)
    : call_(call),
      settings_(settings),
      reading_(reading),
      finder_(reading, settings) {
  for (const auto& id : ids) {
    wanted_[{id.backend, id.kind, id.id}] = &id;
    declared_ = declared_ || !id.backend.empty();
    registrations_ = registrations_ || id.kind == kRegistration;
  }
}

bool Lookup::found(const Key& key) { return wanted_.erase(key) > 0; }

bool Lookup::instance(const Instance& instance) {
  const auto definition = registrations_ ? finder_.find(instance) : std::nullopt;
  const std::string name = definition ? definition->backend.name : "";
  if (definition && (found({"", kRegistration, name}) || found({name, kRegistration, name}))) {
    call_.emit(registration_of(reading_, instance, *definition));
  }
  if (found({"", "instance", instance.id()})) call_.emit(instance_record(reading_, instance, settings_));
  for (const auto& rule : settings_.declares) {
    if (!declared_ || !matches(rule, instance)) continue;
    std::string why;
    const auto declared = declare(instance, rule, why);
    if (!declared || !found({rule.backend, declared->kind, declared->id})) continue;
    call_.emit(declared_record(reading_, instance, *declared, rule.backend));
  }
  return !wanted_.empty();
}

bool Lookup::output(const std::string& name, const nlohmann::json& output) {
  if (found({"", "output", name})) call_.emit(output_record(reading_, name, output));
  return !wanted_.empty();
}

void Lookup::run(const Spool& state) {
  if (found({"", "state", "state"})) call_.emit(state_record(reading_));
  if (wanted_.empty()) return;
  if (reading_.head.encrypted) throw sdk::Failure(DRIFTD_UNSUPPORTED, kEncrypted);
  read_contents(state, reading_.head, *this);
  if (finder_.diagnostics.empty()) return;
  for (auto at = wanted_.begin(); at != wanted_.end();) {  // what could not be emitted may be one of these
    const auto& [backend, kind, id] = at->first;
    if (kind != kRegistration) {
      ++at;
      continue;
    }
    sdk::Diagnostic unknown{DRIFTD_INVALID, kind, id, {}, finder_.diagnostics.front().text};
    unknown.backend = backend;
    call_.diag(unknown);
    at = wanted_.erase(at);
  }
}

std::vector<const sdk::Identity*> Lookup::missing() const {
  std::vector<const sdk::Identity*> out;
  for (const auto& [key, id] : wanted_) out.push_back(id);
  return out;
}

}  // namespace driftd::terraform
