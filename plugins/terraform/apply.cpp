// SPDX-License-Identifier: Apache-2.0
#include "terraform/apply.hpp"

#include <optional>

#include "common/apply_steps.hpp"
#include "common/shell_text.hpp"
#include "terraform/discover.hpp"

namespace driftd::terraform {
namespace {

/// Finds the record of one instance or output.
class Find final : public StateVisitor {
 public:
  Find(const Reading& reading, const Settings& settings, const sdk::Identity& id)
      : reading_(reading),
        settings_(settings),
        id_(id) {}
  bool instance(const Instance& instance) override {
    if (id_.kind != "instance" || instance.id() != id_.id) return true;
    record = instance_record(reading_, instance, settings_);
    command = apply_command(instance.address, instance.resource.provider);
    return false;
  }
  bool output(const std::string& name, const nlohmann::json& output) override {
    if (id_.kind != "output" || name != id_.id) return true;
    record = output_record(reading_, name, output);
    return false;
  }

  std::optional<sdk::Record> record;  ///< nullopt: the state has none
  std::string command;                ///< that a person runs; empty: there is none for this record alone

 private:
  const Reading& reading_;
  const Settings& settings_;
  const sdk::Identity& id_;
};

bool in_their_order(const std::string&) { return false; }

}  // namespace

std::string apply_command(const std::string& address, const std::string& provider) {
  const bool tofu = provider.find("registry.opentofu.org/") != std::string::npos;
  return std::string(tofu ? "tofu" : "terraform") + " apply -target=" + common::shell_word(address);
}

sdk::Applied answer_apply(const Spool& state, const Reading& reading, const Settings& settings,
                          const sdk::Apply& request) {
  const sdk::Identity& id = request.id;
  const std::string name = id.kind + "/" + id.id;
  if (id.kind != "state" && id.kind != "instance" && id.kind != "output" && id.kind != kRegistration)
    throw sdk::Failure(DRIFTD_INVALID, "no such kind: " + id.kind, id.kind);
  if (id.kind == kRegistration)
    return common::refused(name + " cannot be set: it is what a resource of the state defines; put that back");
  if (reading.head.encrypted && id.kind != "state")
    throw sdk::Failure(DRIFTD_UNSUPPORTED, name + ": the state is encrypted by OpenTofu, driftd has no key for it");
  Find find(reading, settings, id);
  if (id.kind == "state" && id.id == "state")
    find.record = state_record(reading);
  else
    read_contents(state, reading.head, find);
  if (!find.record) throw sdk::Failure(DRIFTD_NOT_FOUND, name + " is not in the state; nothing was done", id.kind);
  if (auto done = common::compare_judged(*find.record, request, &in_their_order)) return *done;
  sdk::Applied out = common::refused(
      name +
      " cannot be set: a state is what the last apply left, and driftd neither runs Terraform nor writes a state" +
      (find.command.empty() ? "; run an apply in the folder of the configuration"
                            : "; run in the folder of the configuration: " + find.command));
  if (!find.command.empty()) out.details["instead"] = find.command;
  return out;
}

}  // namespace driftd::terraform
