// SPDX-License-Identifier: Apache-2.0
// `driftd once`: registers the backends, refreshes each once and reports. With a record file the store is a temporary
// one.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "admin/json.hpp"
#include "app/app.hpp"
#include "app/executors.hpp"
#include "app/plugins.hpp"
#include "app/record.hpp"
#include "app/store.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "cli/exit_codes.hpp"
#include "engine/context.hpp"
#include "engine/engine.hpp"
#include "host/host.hpp"
#include "secrets/plain_references.hpp"
#include "secrets/renewed_session.hpp"

namespace driftd::app {
namespace {

constexpr int kUsage = 2;
using cli::kConfig;
using cli::kUnreachable;
constexpr int kMost = 1'000'000'000;
constexpr std::chrono::minutes kLongestRead{10};  // nothing else uses this store

/// A private temporary folder for a pass that does not use the agent's store. It holds the key under which digests are
/// compared, and is removed at the end.
struct Scratch {
  std::filesystem::path path;
  std::string new_key;  ///< where the key that this pass makes is kept; empty if there was a key
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
};

/// Prepares the temporary folder. A record compares only under the key that it was made with: the installation's or, if
/// there is no installation (a pipeline), one beside the record.
Status make_scratch(const std::string& data_dir, const OnceOptions& options, Scratch& out, store::Settings& settings) {
  std::string pattern = (std::filesystem::temp_directory_path() / "driftd-once-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return fail(Code::unavailable, "no temporary folder " + pattern);
  out.path = pattern;
  std::error_code error;
  const std::filesystem::path own = std::filesystem::path(data_dir) / "installation.key";
  const bool recording = !options.record_file.empty();
  const std::filesystem::path beside = (recording ? options.record_file : options.baseline_file) + ".key";
  const bool has_own = settings.given || std::filesystem::exists(own, error),
             has_beside = std::filesystem::exists(beside, error);
  error.clear();
  if (!has_own && !has_beside) {
    if (recording) out.new_key = beside;
    return {};
  }
  const bool takes_own = has_own && (recording || !has_beside);
  if (takes_own && settings.given) return {};
  settings.given.reset();
  const auto& key = takes_own ? own : beside;
  std::filesystem::copy_file(key, out.path / "installation.key", error);
  if (error) return fail(Code::denied, key.string() + ": " + error.message());
  return {};
}

Status keep_key(const Scratch& scratch, const std::string& record) {
  if (scratch.new_key.empty()) return {};
  std::error_code error;
  std::filesystem::copy_file(scratch.path / "installation.key", scratch.new_key, error);
  if (error) return fail(Code::denied, scratch.new_key + ": " + error.message());
  log::room("app").warn("made {}: {} compares only beside it. Keep both, the key like a password", scratch.new_key,
                        record);
  return {};
}

struct Pass {
  const config::Config& config;
  const OnceOptions& options;
  store::SqliteStore& store;
  engine::Engine& engine;
  core::SessionFactory& sessions;
  OnceResult result;
};

Task<Status> work(Pass& pass) {
  if (!pass.options.baseline_file.empty()) {
    DRIFTD_CO_CHECK(co_await load_record(pass.options.baseline_file, pass.config, pass.store));
  }
  const auto plugins = co_await pass.sessions.scan();
  std::vector<core::BackendSpec> backends = pass.config.backends;
  for (auto& spec : backends) {
    DRIFTD_CO_CHECK(secrets::reveal_plain_references(spec, plugins));
  }
  DRIFTD_CO_CHECK(co_await pass.engine.start(std::move(backends), false));
  DRIFTD_CO_TRY(auto reports, co_await pass.engine.refresh(std::string(), true));
  DRIFTD_CO_TRY(auto again, co_await pass.engine.settle());  // for what a source declared after its target was read
  std::map<std::string, core::Value> refreshed;              // the last report of a backend counts
  std::move(again.begin(), again.end(), std::back_inserter(reports));
  for (const auto& report : reports) {
    const core::Control::BackendRefresh one{report.backend, report.report.status, report.report.coverage};
    refreshed.insert_or_assign(report.backend, admin::to_json(one));
  }
  for (auto& [name, one] : refreshed) pass.result.refreshed.push_back(std::move(one));
  if (!pass.options.record_file.empty()) {
    DRIFTD_CO_CHECK(co_await save_record(pass.options.record_file, pass.store));
  }
  // Against a record every difference counts, even one that a policy accepted or ignored: the pipeline decides, not the
  // policy. Against the store, decided drifts stay decided.
  const bool against_record = !pass.options.baseline_file.empty();
  core::DriftFilter filter;
  filter.limit = kMost;
  filter.all = against_record;
  DRIFTD_CO_TRY(const auto drifts, co_await pass.store.drifts(filter));
  for (const auto& row : drifts) {
    const bool counts = against_record || row.drift.status != core::DriftStatus::ignored;
    if (counts) pass.result.drifts.push_back(admin::to_json(row));
  }
  co_return Status{};
}

Task<void> run_pass(Pass& pass) {
  const Status done = co_await work(pass);
  if (!done) {
    pass.result.exit = kUnreachable;
    pass.result.error = done.error().message;
  }
  co_await pass.engine.stop();
}

}  // namespace

OnceResult once(const std::string& config_file, const OnceOptions& options) {
  OnceResult failed;
  auto config = config::load(config_file);
  if (!config) {
    failed.exit = kConfig;
    failed.error = config::render(config.error());
    return failed;
  }
  if (const Status workers = check_workers(*config); !workers) {
    failed.exit = kConfig;
    failed.error = config_file + ": " + workers.error().message;
    return failed;
  }
  if (!options.record_file.empty()) {
    if (const Status fits = check_record(options.record_file, config->agent.data_dir); !fits) {
      failed.exit = kUsage;
      failed.error = fits.error().message;
      return failed;
    }
  }
  config->log.level = config->log.level == "info" ? "warn" : config->log.level;
  log::configure(config->log);
  Scratch scratch;
  failed.exit = kUnreachable;
  auto described = store_settings(*config);
  if (!described) {
    failed.error = described.error().message;
    return failed;
  }
  store::Settings settings = std::move(*described);
  settings.longest_read = kLongestRead;
  if (!options.baseline_file.empty() || !options.record_file.empty()) {
    if (const Status made = make_scratch(config->agent.data_dir, options, scratch, settings); !made) {
      failed.error = made.error().message;
      return failed;
    }
    settings.data_dir = scratch.path;
    settings.keyed = true;
  }
  Executors executors;
  const SystemClock clock;
  auto store = store::SqliteStore::open(settings, executors.store.get_executor(), executors.io.get_executor(), clock);
  if (!store) {
    failed.error = store.error().message;
    return failed;
  }
  core::NoMetrics metrics;
  secrets::RenewalOptions renewal{executors.core.get_executor(),
                                  executors.io.get_executor(),
                                  &clock,
                                  host::make_session_factory(host_options(*config, executors)),
                                  {},
                                  {}};
  const auto sessions = secrets::with_secrets(std::move(renewal), *config);
  const auto& key = (*store)->key();
  auto context = std::make_shared<engine::Context>(
      engine::Context{executors.core.get_executor(), executors.diff.get_executor(), **store, clock, metrics, key.store,
                      config->agent.name, config->agent.cluster,
                      std::make_shared<const std::vector<core::Route>>(config->routes), [] {}});
  context->asks_about_mass_deletions = options.baseline_file.empty();  // a pipeline cannot answer questions
  engine::Engine engine(context, *sessions, key.worker, key.digest_seed);
  Pass pass{*config, options, **store, engine, *sessions, {}};
  asio::co_spawn(executors.core, run_pass(pass), fatal);
  executors.core.run();
  if (pass.result.error.empty() && !options.record_file.empty()) {
    if (const Status kept = keep_key(scratch, options.record_file); !kept) {
      failed.error = kept.error().message;
      return failed;
    }
  }
  return std::move(pass.result);
}

}  // namespace driftd::app
