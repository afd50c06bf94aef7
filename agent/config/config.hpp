// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "config/change_log.hpp"
#include "config/errors.hpp"
#include "config/load_options.hpp"
#include "config/programs.hpp"
#include "config/resolve.hpp"
#include "config/secret_file.hpp"
#include "core/backend.hpp"
#include "core/event/event.hpp"
#include "core/notify_settings.hpp"
#include "grpc/settings.hpp"
#include "sinks/file/settings.hpp"
#include "sinks/kafka/settings.hpp"
#include "sinks/nats/settings.hpp"
#include "sinks/notifications/settings.hpp"
#include "sinks/plugin/settings.hpp"
#include "sinks/webhook/settings.hpp"

namespace driftd::config {

struct Defaults;  // config/parts.hpp

struct Agent {
  std::string name;  ///< default: the host's name
  std::string node;  ///< node that it runs on: it runs only that node's backends. Empty: backends without a node
  std::string cluster = "default";
  std::filesystem::path data_dir = "/var/lib/driftd";
  std::vector<std::string> plugin_dirs;  ///< absolute; default: /usr/lib/driftd/providers
  std::filesystem::path plugin_lock;     ///< absolute; default: driftd.lock beside the config, where there is one
  bool plugin_lock_named = false;        ///< the config names it: if the file is missing, no plugin runs
  std::string worker;                    ///< path of driftd-provider-host; empty: next to the agent's binary
  bool jail_required = false;            ///< no worker runs without landlock and seccomp
  std::vector<Program> programs;         ///< what `${exec:…}` may run; empty: it is off
  /// The reference (empty if the key is in data_dir) and the key's text, which is never logged.
  std::string installation_key_from, installation_key;
  std::filesystem::path installation_key_file;  ///< file that the key's text was read from
  std::chrono::milliseconds drain{10'000};      ///< how long a stop waits for work in progress
};

struct Admin {
  std::string listen = "127.0.0.1:7480";  ///< loopback host:port of /metrics, /livez and /readyz; empty: off
  std::string socket = "/run/driftd/driftd.sock";
  std::string socket_group;  ///< group that owns the socket; its members may read and decide. Empty: the agent's own
                             ///< group
  std::string read_group;    ///< group whose members may read; empty: none
  std::string decide_group;  ///< group whose members may read and decide; empty: none
  std::vector<std::uint32_t> uids;  ///< uids that may read and decide, besides root and the agent's own
  std::vector<std::uint32_t> gids;  ///< gids that may read and decide
};

struct Metrics {
  std::string prefix = "driftd";
};

/// Settings by the sink's type; `stdout` is a FileSettings without a path. Secrets are clear text and never logged.
using SinkSettings = std::variant<sinks::NatsSettings, sinks::KafkaSettings, sinks::WebhookSettings,
                                  sinks::NotificationsSettings, sinks::FileSettings, sinks::PluginSettings>;

/// A sink of the configuration.
struct SinkSpec {
  std::string name;
  std::string type;  ///< nats | kafka | webhook | notifications | file | stdout | plugin
  SinkSettings settings;
  std::string settings_json;  ///< canonical JSON of all keys except type and drop_pending; secrets are tokens
  std::map<std::string, std::string> secrets;  ///< token → bytes; never logged
  bool digests_only = false;                   ///< `events: digests_only`: this sink publishes no values
  bool drop_pending = false;                   ///< undelivered events may be dropped when this sink is removed
  Position at;
};

struct Retention {
  std::chrono::seconds delivered{7 * 86'400};
  std::chrono::seconds undelivered{30 * 86'400};
  std::chrono::seconds history{30 * 86'400};     ///< ended drifts, deleted resources and backends, damaged rows
  std::chrono::seconds audit{7 * 365 * 86'400};  ///< its lines are not counted in max_bytes
  std::int64_t max_bytes = 8ll << 30;            ///< size of store.db; above it, history is removed early
};

/// What driftd may put back by itself, and when (docs/enforce.md).
struct Enforce {
  core::EnforceSettings settings;  ///< backends begin with it
  std::filesystem::path off_file;  ///< while it is there, nothing is put back
};

/// Backpressure limits: at 70 % the agent warns, at 85 % it stretches intervals, at 95 % it stops committing refreshes.
struct Delivery {
  std::int64_t max_backlog_bytes = 4ll << 30;
  std::int64_t max_backlog_events = 5'000'000;
  std::vector<std::string> drop_pending;  ///< removed sinks whose pending events may be dropped
};

/// The whole configuration, validated. It does not change once loaded: a reload creates a new one.
struct Config {
  std::string file;
  Agent agent;
  log::Settings log;
  Admin admin;
  rpc::Settings grpc;
  ChangeLog change_log;
  Resolve resolve;
  Metrics metrics;
  std::vector<core::BackendSpec> backends;  ///< in the order of the file, rules compiled
  std::vector<SinkSpec> sinks;              ///< by name
  std::vector<core::Route> routes;          ///< if the file has none: one that sends everything to every sink
  Retention retention;
  Enforce enforce;
  Delivery delivery;
  core::NotifySettings notifications;               ///< off if the file has no such section
  std::vector<std::filesystem::path> secret_files;  ///< files read for `${file:…}` and `${credential:…}`
  std::vector<ProgramUse> program_uses;             ///< each `${exec:…}`, in the order of the file; load() runs none
  std::vector<FileUse> file_uses;  ///< each `${file:…}` and `${credential:…}` of backends, in the order of the file
  std::vector<CredentialUse> credential_uses;           ///< each reference of backends, in the order of the file
  std::shared_ptr<const Defaults> defaults;             ///< for manual backends
  std::map<std::string, Position> backend_settings_at;  ///< backend → position of its settings, for schema errors
  std::map<std::string, Position> places;               ///< positions of settings (config/places.hpp)
  std::vector<ConfigError> warnings;
  bool secrets_resolved = true;  ///< false: only the form of references was checked; their values are empty
};

using Loaded = tl::expected<Config, std::vector<ConfigError>>;

/// Reads and validates a file. Returns all mistakes at once. [any thread]
Loaded load(const std::filesystem::path& file, const LoadOptions& options = {});
/// Returns admin.socket of a file, even if the file has mistakes elsewhere. Fails if the file cannot be read, is not
/// valid YAML, or has a wrong `admin` section: falling back to the default socket could reach another agent.
tl::expected<std::string, std::vector<ConfigError>> read_admin_socket(const std::filesystem::path& file);
/// Does the same for a text. Errors print `file`, and relative paths start at its folder.
Loaded parse(std::string_view text, const std::string& file, const LoadOptions& options = {});

/// Returns the entries of `program_uses` or `file_uses` that belong to one backend.
template <class Use>
std::vector<Use> uses_by_backend(const std::vector<Use>& all, const std::string& backend) {
  std::vector<Use> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&](const Use& use) { return use.backend == backend; });
  return out;
}

/// What a reload would change beside backends. Routes, new sinks and the secrets of webhooks change without a restart
/// (`hot`); all else needs one.
struct Comparison {
  struct RestartItem {
    std::string what;   ///< `agent.drain`, `sinks.ops` …
    std::string where;  ///< `driftd.yaml:14` of the next config; empty if the setting was removed
    friend bool operator==(const RestartItem&, const RestartItem&) = default;
  };
  std::vector<std::string> hot;      ///< `routes`, `sinks.ops (added)` …
  std::vector<std::string> rekeyed;  ///< webhooks that sign with other secrets, and are the same else
  std::vector<RestartItem> restart;
};
Comparison compare(const Config& running, const Config& next);

/// Returns the JSON Schema (draft 2020-12) of the config file.
std::string_view json_schema();

}  // namespace driftd::config
