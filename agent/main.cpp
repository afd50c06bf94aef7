// SPDX-License-Identifier: Apache-2.0
#include "app/app.hpp"
#include "cli/cli.hpp"

int main(int argc, char** argv) {
  driftd::app::harden();
  driftd::cli::Hooks hooks;
  hooks.run = driftd::app::run;
  hooks.once = driftd::app::once;
  hooks.check_config = driftd::app::check_config;
  hooks.try_programs = driftd::app::try_programs;
  hooks.back_up = driftd::app::back_up;
  hooks.restore = driftd::app::restore;
  hooks.verify = driftd::app::verify;
  hooks.verify_audit = driftd::app::verify_audit;
  hooks.key_state = driftd::app::key_state;
  hooks.rotate_key = driftd::app::rotate_key;
  hooks.new_key = driftd::app::new_key;
  hooks.render_event = driftd::app::render_event;
  hooks.send_event = driftd::app::send_event;
  hooks.lock_plugins = driftd::app::lock_plugins;
  hooks.admit_plugin = driftd::app::admit_plugin;
  hooks.change_log_sidecar = driftd::app::run_change_log_sidecar;
  return driftd::cli::run(argc, argv, hooks);
}
