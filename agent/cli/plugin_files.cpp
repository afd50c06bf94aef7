// SPDX-License-Identifier: Apache-2.0
// Commands on plugin files that need no agent: the lock file, and driftd-check.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kSignalled = 128;  // plus the signal, as a shell reports it

void show_lock(const Context& context, const app::LockReport& report) {
  Table table({"", "PLUGIN", "SHA256"});
  for (const auto& line : report.lines) {
    const Colour colour = line.verb == "unchanged" ? Colour::none
                          : line.verb == "removed" ? Colour::red
                                                   : Colour::yellow;
    table.add({{line.verb, colour}, line.plugin, line.sha256});
  }
  context.print(table, "no plugins");
  context.out() << report.file << " pins them; a running agent takes it up by itself\n";
}

core::Value to_json(const app::LockReport& report) {
  core::Value::Array lines;
  for (const auto& line : report.lines) {
    lines.push_back(core::Value::Object{{"change", line.verb}, {"plugin", line.plugin}, {"sha256", line.sha256}});
  }
  return core::Value::Object{{"file", report.file}, {"plugins", std::move(lines)}};
}

int write_lock(const Context& context, const std::string& file) {
  const auto config = load_offline_config(context);
  if (!config) return context.fail(config.error());
  const auto report = context.hooks.lock_plugins(*config, file);
  if (!report) return context.fail(kFinding, report.error().message);
  const Outcome<core::Value> answer = to_json(*report);
  return context.print(answer, [&](const auto&) { show_lock(context, *report); });
}

/// Turns `acme` into the path of acme.so in the first plugin folder that has it. Paths and options stay as they are.
std::string file_of(const std::string& word, const std::vector<std::string>& folders) {
  std::error_code missing;  // an unreadable folder counts as missing
  if (word.empty() || word[0] == '-' || word.find('/') != std::string::npos || fs::exists(word, missing)) return word;
  for (const auto& folder : folders) {
    const fs::path file = fs::path(folder) / (word + ".so");
    if (fs::exists(file, missing)) return file.string();
  }
  return word;
}

/// Runs a program on this terminal and waits for it. Returns its exit code, 128 + signal, or -1 with errno set.
int run_program(const std::string& program, std::vector<std::string> arguments) {
  std::vector<char*> argv;
  arguments.insert(arguments.begin(), program);
  for (auto& one : arguments) argv.push_back(one.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  errno = ::posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ);
  if (errno != 0) return -1;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Finds the argument that names the plugin: the first that is neither an option nor an option's value.
std::string plugin_of(const std::vector<std::string>& words) {
  bool value = false;
  for (const auto& word : words) {
    if (!value && !word.starts_with('-')) return word;
    value = word == "--settings" || word == "--only" || word == "--seed";
  }
  return {};
}

int check(const Context& context, std::vector<std::string> arguments) {
  std::vector<std::string> folders = {"/usr/lib/driftd/providers"};
  std::string lock;
  if (const auto config = load_offline_config(context)) {  // without a config: the package's folder
    folders = config->agent.plugin_dirs;
    lock = config->agent.plugin_lock.string();
  }
  for (auto& word : arguments) word = file_of(word, folders);
  const std::string plugin = plugin_of(arguments);
  if (!plugin.empty() && context.hooks.admit_plugin) {
    const Status admitted = context.hooks.admit_plugin(plugin, lock);
    if (!admitted) return context.fail(kFinding, admitted.error().message);
  }
  std::error_code unreadable;
  const fs::path program = fs::read_symlink("/proc/self/exe", unreadable).parent_path() / "driftd-check";
  if (!fs::exists(program, unreadable)) {
    return context.fail(kUnreachable, program.string() +
                                          " is not installed; it comes with the package driftd, or is built "
                                          "by `ninja driftd-check`");
  }
  context.out().flush();
  const int code = run_program(program.string(), std::move(arguments));
  if (code >= 0) return code;
  return context.fail(kUnreachable, program.string() + " cannot be started: " + std::strerror(errno));
}

}  // namespace

void add_plugin_files(CLI::App& plugin, Context& context) {
  auto* pin = plugin.add_subcommand("lock", "pin the installed plugins: only these bytes may run from now on");
  auto file = std::make_shared<std::string>();
  pin->add_option("--file", *file, "the lock file (agent.plugin_lock, or driftd.lock beside the config)");
  pin->callback([&context, file] { context.exit = write_lock(context, *file); });

  auto* test = plugin.add_subcommand("check", "run driftd-check; NAME is a file or the name of an installed plugin");
  test->prefix_command();
  test->footer("usage: driftd plugin check NAME [OPTIONS of driftd-check]");
  test->callback([&context, test] {
    const auto words = test->remaining();
    context.exit = words.empty() ? context.fail(kUsage,
                                                "plugin check: name a plugin or its file; `driftd plugin check "
                                                "--help` tells more")
                                 : check(context, words);
  });
}

}  // namespace driftd::cli
