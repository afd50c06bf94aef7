// SPDX-License-Identifier: Apache-2.0
#include "check/own_jail.hpp"

#include <filesystem>

#include "host/jail_paths.hpp"
#include "ipc/plugin_file.hpp"
#include "worker/jail.hpp"

namespace driftd::check {

std::string text_or_rethrow(const Outcome& outcome) {
  if (outcome.ending == Ending::broken) throw RuleBroken(outcome.text);
  if (outcome.ending == Ending::not_made) throw CheckNotMade(outcome.text);
  if (outcome.ending == Ending::not_applicable) throw CheckNotApplicable(outcome.text);
  return outcome.text;
}

void expect_jail() {
  if (worker::jail::landlock_version() == 0 && !worker::jail::has_seccomp()) {
    throw CheckNotMade("this kernel has neither landlock nor seccomp filters: " + worker::describe_kernel_jail());
  }
}

void enter_jail(const Subject& subject, const std::string& settings_schema, const std::string& settings_json) {
  if (const Status rights = ipc::check_file_rights(subject.file); !rights)
    throw CheckNotMade(rights.error().message);  // the file's location is not the provider's fault
  const auto paths = host::jail_paths(settings_schema, settings_json);
  worker::JailSpec spec;
  spec.read_paths = paths.read;
  spec.read_paths.push_back(std::filesystem::canonical(subject.file).string());  // unlike a worker, this process loads
                                                                                 // the file by its path
  spec.unix_sockets = paths.unix_sockets;
  const auto held = worker::lock_process(spec);
  if (!held) throw CheckNotMade("the worker's jail cannot be entered here: " + held.error().message);
}

}  // namespace driftd::check
