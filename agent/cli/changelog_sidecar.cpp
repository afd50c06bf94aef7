// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {

void add_changelog_sidecar(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("changelog-sidecar",
                                     "receive change logs of agents and write them as JSON lines, until SIGTERM");
  auto options = std::make_shared<app::SidecarOptions>();
  command->add_option("--listen", options->listen, "unix:///PATH, or HOST:PORT with mutual TLS")->required();
  command->add_option("--output", options->output, "file to write, or - for stdout")->default_val("-");
  command->add_option("--tls-cert", options->cert, "PEM certificate of this server, for HOST:PORT");
  command->add_option("--tls-key", options->key, "its PEM key");
  command->add_option("--tls-client-ca", options->client_ca, "PEM certificates that signed those of the agents");
  command->add_option("--max-entry-bytes", options->max_entry_bytes, "a larger entry is refused")
      ->default_val(options->max_entry_bytes)
      ->check(CLI::Range(std::int64_t{1'024}, std::int64_t{32} << 20));
  command->add_option("--rotate-bytes", options->rotate_bytes, "size at which a file becomes FILE.1")
      ->default_val(options->rotate_bytes)
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 40));
  command->add_option("--keep", options->keep, "rotated files that are kept")
      ->default_val(options->keep)
      ->check(CLI::Range(0, 1'000));
  command->callback([&context, options] {
    context.exit = context.hooks.change_log_sidecar ? context.hooks.change_log_sidecar(*options)
                                                    : context.fail(kUsage, "this binary holds no sidecar; use driftd");
  });
}

}  // namespace driftd::cli
