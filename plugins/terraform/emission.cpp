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
  return whole_ = emit(instance_record(reading_, instance, settings_));
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
  if (whole_) complete();
  return whole_;
}

Lookup::Lookup(sdk::Call& call, const Settings& settings, const Reading& reading, std::span<const sdk::Identity> ids)
    : call_(call), settings_(settings), reading_(reading) {
  for (const auto& id : ids) wanted_[{id.kind, id.id}] = &id;
}

bool Lookup::found(const Key& key) { return wanted_.erase(key) > 0; }

bool Lookup::instance(const Instance& instance) {
  if (found({"instance", instance.id()})) call_.emit(instance_record(reading_, instance, settings_));
  return !wanted_.empty();
}

bool Lookup::output(const std::string& name, const nlohmann::json& output) {
  if (found({"output", name})) call_.emit(output_record(reading_, name, output));
  return !wanted_.empty();
}

void Lookup::run(const Spool& state) {
  if (found({"state", "state"})) call_.emit(state_record(reading_));
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
