// SPDX-License-Identifier: Apache-2.0
#include "terraform/emission.hpp"

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
  const bool same_line = before.head.lineage == out.head.lineage && number(out.head.serial) <= number(before.head.serial);
  if (out.history.empty() && same_line) out.history = before.history;  // it stays so until an apply makes a new serial
  return out;
}

bool Emission::emit(const sdk::Record& record) {
  if (!request_.wants(record.kind) || !settings_.scope.wants(record.kind, record.id)) return !call_.cancelled();
  ++counts_[record.kind];
  return call_.emit(record);
}

bool Emission::instance(const Instance& instance) {
  return whole_ = emit(instance_record(reading_, instance, settings_)) && declare_all(instance);
}

bool Emission::declare_all(const Instance& instance) {
  for (const auto& rule : settings_.declares) {
    if (!matches(rule, instance)) continue;
    std::string why;
    const auto declared = declare(instance, rule, why);
    if (!declared) {
      // each reason once, at the first resource that it holds for
      if (!why.empty() && told_.emplace(rule.backend, why).second) call_.diag({DRIFTD_UNSUPPORTED, "instance", instance.id(), {}, why});
      continue;
    }
    if (!request_.wants(declared->kind)) continue;
    if (!declared_.emplace(rule.backend, declared->kind, declared->id).second) {
      const std::string twice = declared->kind + "/" + declared->id + " of " + rule.backend + " is declared twice; the first counts";
      if (told_.emplace(rule.backend, twice).second) call_.diag({DRIFTD_CONFLICT, "instance", instance.id(), {}, twice});
      continue;
    }
    if (!call_.emit(declared_record(reading_, instance, *declared, rule.backend))) return false;
  }
  return true;
}

void Emission::complete_declared() {
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

bool Emission::output(const std::string& name, const nlohmann::json& output) {
  return whole_ = emit(output_record(reading_, name, output));
}

void Emission::complete() {
  for (const char* kind : kKinds) {
    if (!wants(kind)) continue;
    if (reading_.head.encrypted && kind != std::string("state")) {
      call_.diag({DRIFTD_UNSUPPORTED, kind, {}, {}, kEncrypted});
    } else {
      call_.complete(kind, counts_[kind]);
    }
  }
}

bool Emission::run(const Spool& state) {
  if (!emit(state_record(reading_))) return false;
  read_contents(state, reading_.head, *this);
  if (!whole_) return false;
  complete();
  complete_declared();
  return true;
}

Lookup::Lookup(sdk::Call& call, const Settings& settings, const Reading& reading, std::span<const sdk::Identity> ids)
    : call_(call), settings_(settings), reading_(reading) {
  for (const auto& id : ids) {
    wanted_[{id.backend, id.kind, id.id}] = &id;
    declared_ = declared_ || !id.backend.empty();
  }
}

bool Lookup::found(const Key& key) { return wanted_.erase(key) > 0; }

bool Lookup::instance(const Instance& instance) {
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
}

std::vector<const sdk::Identity*> Lookup::missing() const {
  std::vector<const sdk::Identity*> out;
  for (const auto& [key, id] : wanted_) out.push_back(id);
  return out;
}

}  // namespace driftd::terraform
