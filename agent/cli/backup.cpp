// SPDX-License-Identifier: Apache-2.0
// Backups of the store, without asking the agent.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

/// Describes a store: `3 backends, 408 resources, 7 open drifts, 1204 events, the newest of 2026-11-22T12:01:03.000Z`.
std::string summary_of(const core::Value& answer) {
  const std::string newest = text(answer, "newest_at");
  return text(answer, "backends") + " backends, " + text(answer, "resources") + " resources, " +
         text(answer, "open_drifts") + " open drifts, " + text(answer, "events") + " events" +
         (newest.empty() ? "" : ", the newest of " + newest);
}

int back_up(const Context& context, const std::string& to, bool with_key) {
  const auto config = load_offline_config(context);
  if (!config) return context.fail(config.error());
  if (!context.hooks.back_up) return context.fail(kUsage, "this binary holds no agent; use driftd");
  return finish_offline(context, context.hooks.back_up(*config, to, with_key), [&](const core::Value& answer) {
    context.out() << "wrote " << printable(text(answer, "file")) << ", verified: " << summary_of(answer) << "\n";
    const std::string key = text(answer, "key_file"), elsewhere = text(answer, "key_from");
    if (!elsewhere.empty()) {
      context.out() << "it needs the key of " << printable(elsewhere)
                    << ", which is not in it: keep one copy of that elsewhere\n";
      return;
    }
    context.out()
        << (key.empty() ? "it needs installation.key, which is not in it: keep one copy elsewhere (--with-key puts it "
                          "beside)"
                        : "wrote " + printable(key) + ": whoever has both can try guesses of short secrets")
        << "\n";
  });
}

int restore(const Context& context, const std::string& from, const std::string& key) {
  const auto config = load_offline_config(context, key.empty());
  if (!config) return context.fail(config.error());
  if (!context.hooks.restore) return context.fail(kUsage, "this binary holds no agent; use driftd");
  return finish_offline(context, context.hooks.restore(*config, from, key), [&](const core::Value& answer) {
    context.out() << "restored " << printable(text(answer, "file")) << ": " << summary_of(answer) << "\n";
    const std::string kept = text(answer, "kept");
    if (!kept.empty()) context.out() << "the former store is " << printable(kept) << "\n";
    if (const std::string unchecked = text(answer, "unchecked"); !unchecked.empty()) {
      context.out() << "whether the key of " << printable(unchecked)
                    << " fits shows at the start: this process cannot read it (--key FILE checks one)\n";
    }
    context.out()
        << "start the agent: it begins a new incarnation, and reports what changed since the backup as drift\n";
  });
}

int verify(const Context& context, const std::string& file, bool background) {
  if (!context.hooks.verify) return context.fail(kUsage, "this binary holds no agent; use driftd");
  const auto answer = context.hooks.verify(file, background);
  const int printed = finish_offline(context, answer, [&](const core::Value& found) {
    const std::string damaged = text(found, "damaged");
    context.out() << (damaged.empty() ? "whole: " + summary_of(found) : "damaged: " + printable(damaged)) << "\n";
  });
  return answer && printed == kOk && !text(*answer, "damaged").empty() ? kFinding : printed;
}

}  // namespace

Outcome<config::Config> load_offline_config(const Context& context, bool with_key) {
  config::LoadOptions options;
  options.resolve_secrets = false;
  options.resolve_key = with_key;
  auto loaded = config::load(context.config, options);
  if (!loaded) return tl::unexpected(Failure{kConfig, config::render(loaded.error())});
  return std::move(*loaded);
}

int finish_offline(const Context& context, const Result<core::Value>& done,
                   const std::function<void(const core::Value&)>& show) {
  if (!done) return context.fail(done.error().code == Code::invalid ? kUsage : kUnreachable, done.error().message);
  return context.print(Outcome<core::Value>(*done), show);
}

void add_backup(CLI::App& app, Context& context) {
  auto* backup = app.add_subcommand("backup", "copy the store into one verified file, also while the agent runs");
  auto to = std::make_shared<std::string>();
  auto with_key = std::make_shared<bool>(false);
  backup->add_option("FILE", *to, "the backup, or a folder that gets driftd-<time>.db")->required();
  backup->add_flag("--with-key", *with_key, "copy installation.key to FILE.key too");
  backup->callback([&context, to, with_key] { context.exit = back_up(context, *to, *with_key); });

  auto* again = app.add_subcommand("restore", "put a backup in place of the store; the agent must not run");
  auto from = std::make_shared<std::string>();
  auto key = std::make_shared<std::string>();
  again->add_option("FILE", *from, "a backup")->required();
  again->add_option("--key", *key, "the installation.key that belongs to it (FILE.key, or the one of data_dir)");
  again->callback([&context, from, key] { context.exit = restore(context, *from, *key); });

  auto* check = app.add_subcommand("verify", "read all of a store or backup and check it, also while the agent runs");
  auto file = std::make_shared<std::string>();
  auto background = std::make_shared<bool>(false);
  check->add_option("FILE", *file, "store.db of a data_dir, or a backup")->required();
  check->add_flag("--background", *background, "with the lowest priority; ends with the process that started it");
  check->callback([&context, file, background] { context.exit = verify(context, *file, *background); });
}

}  // namespace driftd::cli
