// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "config/errors.hpp"
#include "config/programs.hpp"
#include "config/secret_file.hpp"
#include "core/backend.hpp"
#include "sinks/file/settings.hpp"
#include "sinks/nats/settings.hpp"
#include "sinks/notifications/settings.hpp"
#include "sinks/webhook/settings.hpp"

namespace driftd::config {

struct Agent {
  std::string name;  ///< default: the host's name
  std::string node;  ///< where it runs: it takes the backends of that node only; empty: those of no node
  std::string cluster = "default";
  std::filesystem::path data_dir = "/var/lib/driftd";
  std::vector<std::string> plugin_dirs;   ///< absolute; default: /usr/lib/driftd/providers
  std::filesystem::path plugin_lock;      ///< absolute; default: driftd.lock beside the config, where there is one
  bool plugin_lock_named = false;         ///< the config names it: without the file no plugin runs
  std::string worker;                     ///< path of driftd-provider-host; empty: beside the agent's own binary
  bool jail_required = false;             ///< no worker without landlock and seccomp: better blind than open
  std::vector<std::string> experimental;  ///< extensions of the plugin ABI that are not settled: driftd.apply
  std::vector<Program> programs;          ///< what `${exec:…}` may run; none: it is off
  /// the reference, empty: it lies in data_dir; its text, never logged
  std::string installation_key_from, installation_key;
  std::filesystem::path installation_key_file;  ///< that the text was read from
  std::chrono::milliseconds drain{10'000};      ///< how long a stop waits for what is in flight
};

struct Admin {
  std::string listen = "127.0.0.1:7480";  ///< loopback host:port of /metrics, /livez, /readyz; empty: off
  std::string socket = "/run/driftd/driftd.sock";
  std::string socket_group;  ///< owner group of the socket, whose members may read and decide; empty: the agent's own
  std::string read_group;    ///< group whose members may read; empty: none
  std::string decide_group;  ///< group whose members may read and decide; empty: none
  std::vector<std::uint32_t> uids;  ///< may read and decide beside root and the agent's own uid
  std::vector<std::uint32_t> gids;  ///< groups that may, too
};

struct Metrics {
  std::string prefix = "prism";
};

/// Settings by the sink's type; `stdout` is a FileSettings without a path. Secrets are clear text here, never logged.
using SinkSettings =
    std::variant<sinks::NatsSettings, sinks::WebhookSettings, sinks::NotificationsSettings, sinks::FileSettings>;

/// A sink as configured.
struct SinkSpec {
  std::string name;
  std::string type;  ///< nats | webhook | notifications | file | stdout
  SinkSettings settings;
  std::string settings_json;  ///< all keys but type and drop_pending as canonical JSON; secrets are tokens
  std::map<std::string, std::string> secrets;  ///< token → bytes; never logged
  bool digests_only = false;                   ///< `events: digests_only`: no value leaves by this sink
  bool drop_pending = false;                   ///< events not yet delivered may go when this sink leaves the config
  Position at;
};

struct Retention {
  std::chrono::seconds delivered{7 * 86'400};
  std::chrono::seconds undelivered{30 * 86'400};
  std::chrono::seconds audit{30 * 86'400};
  std::int64_t max_bytes = 8ll << 30;  ///< of store.db; above it history goes before its time
};

/// Backpressure: of these, 70 % warns, 85 % stretches intervals, 95 % stops committing refreshes.
struct Delivery {
  std::int64_t max_backlog_bytes = 4ll << 30;
  std::int64_t max_backlog_events = 5'000'000;
  std::vector<std::string> drop_pending;  ///< sinks that were removed and whose pending events may go
};

/// The whole configuration, checked. Immutable once loaded; a reload makes a new one.
struct Config {
  std::string file;
  Agent agent;
  log::Settings log;
  Admin admin;
  Metrics metrics;
  std::vector<core::BackendSpec> backends;  ///< in the order of the file, rules compiled
  std::vector<SinkSpec> sinks;              ///< by name
  std::vector<core::Route> routes;          ///< none written: one that sends everything to every sink
  Retention retention;
  Delivery delivery;
  std::vector<std::filesystem::path> secret_files;  ///< that were read for `${file:…}` and `${credential:…}`
  std::vector<ProgramUse> program_uses;             ///< each `${exec:…}`, in the order of the file; not run by load()
  std::vector<FileUse> file_uses;  ///< each `${file:…}` and `${credential:…}` of backends, in the order of the file
  std::map<std::string, Position> backend_settings_at;  ///< backend → where its settings stand, for schema errors
  std::map<std::string, Position> places;               ///< of settings (config/places.hpp)
  std::vector<ConfigError> warnings;
  bool secrets_resolved = true;  ///< false: references were checked in form only and stand for empty text
};

using Loaded = tl::expected<Config, std::vector<ConfigError>>;

struct LoadOptions {
  bool resolve_secrets = true;  ///< false (`driftd validate --no-secrets`): references are checked in form only
  bool resolve_key = false;  ///< agent.installation_key also without the others, where this process has what it names
  /// The environment that `${env:…}` and $CREDENTIALS_DIRECTORY are read from; default: the process's.
  std::function<std::optional<std::string>(const std::string&)> environment;
};

/// Reads and checks a file; all mistakes at once. [any thread]
Loaded load(const std::filesystem::path& file, const LoadOptions& options = {});
/// admin.socket of a file, also of one with mistakes elsewhere. An error where the file cannot be read, is no YAML, or
/// its section `admin` is wrong: whoever named it did not mean the agent behind the default socket.
tl::expected<std::string, std::vector<ConfigError>> read_admin_socket(const std::filesystem::path& file);
/// The same from text; `file` is the name that errors print and that relative paths start from.
Loaded parse(std::string_view text, const std::string& file, const LoadOptions& options = {});

/// Those of one backend: `program_uses`, `file_uses`.
template <class Use>
std::vector<Use> uses_by_backend(const std::vector<Use>& all, const std::string& backend) {
  std::vector<Use> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&](const Use& use) { return use.backend == backend; });
  return out;
}

/// What a reload would change. Hot: policies, ignores, expectations, routes, new sinks; all else needs a restart, but
/// for what stands in files of `${file:…}` of backends, which is followed. Both as loaded.
struct Comparison {
  struct RestartItem {
    std::string what;   ///< `backends.orders-kafka.settings`, `sinks.ops` …
    std::string where;  ///< `driftd.yaml:14` of the next config; empty: it is not there any more
    friend bool operator==(const RestartItem&, const RestartItem&) = default;
  };
  std::vector<std::string> hot;  ///< `rules of backend orders-kafka`, `routes` …
  std::vector<RestartItem> restart;
};
Comparison compare(const Config& running, const Config& next);

/// JSON Schema (draft 2020-12) of the config file.
std::string_view json_schema();

}  // namespace driftd::config
