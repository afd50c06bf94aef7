// SPDX-License-Identifier: Apache-2.0
// Reads the sections agent, admin, log, metrics, retention and delivery.
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "config/parts.hpp"
#include "config/secrets.hpp"

namespace driftd::config {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<std::string> kLevels = {"trace", "debug", "info", "warn", "error", "off"};
const std::vector<std::string> kRooms = {"app", "config", "host", "engine", "store", "delivery", "sinks", "admin"};

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "driftd";
}

std::vector<std::uint32_t> read_ids(Section& section, std::string_view key) {
  std::vector<std::uint32_t> out;
  for (const Node* item : section.items(key)) {
    const bool digits =
        item->kind == Node::Kind::scalar && !item->text.empty() && item->text.size() <= 9 &&
        std::all_of(item->text.begin(), item->text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (digits) {
      out.push_back(static_cast<std::uint32_t>(std::stoul(item->text)));
    } else {
      section.wrong(key, *item, "a list of numeric ids", "print one with `id -u NAME`");
    }
  }
  return out;
}

seconds read_days(Section& section, std::string_view key, seconds fallback, std::int64_t max_days = 3650) {
  const auto read = section.duration(key, fallback, milliseconds(60'000), milliseconds(max_days * 86'400'000));
  return std::chrono::duration_cast<seconds>(read);
}

// the package's folder; no warning if it is missing
constexpr const char* kDefaultPluginDir = "/usr/lib/driftd/providers";

/// Relative folders start at the config's folder. A missing folder is only a warning, because it may be created later.
std::vector<std::string> read_plugin_dirs(Section& section) {
  if (section.find("plugin_dirs") == nullptr) return {kDefaultPluginDir};
  std::vector<std::string> out;
  for (const auto& text : section.texts("plugin_dirs")) {
    out.push_back(beside_config(section.report(), text));
    std::error_code unreadable;  // an unreadable folder counts as missing
    if (out.back() == kDefaultPluginDir || std::filesystem::is_directory(out.back(), unreadable)) continue;
    section.report().warn(section.at("plugin_dirs"), "folder " + out.back() + " of 'plugin_dirs' is not there",
                          "create it; plugins that arrive in it are picked up without a restart");
  }
  return out;
}

constexpr std::string_view kFileStart = "${file:", kCredentialStart = "${credential:";

bool is_key_reference(const Node& node) {
  const std::string& text = node.text;
  const bool known = text.starts_with(kFileStart) || text.starts_with(kCredentialStart);
  return node.kind == Node::Kind::scalar && known && text.find('}') == text.size() - 1;
}

/// Returns true if `file` is inside `folder`, also through links.
bool lies_in(const std::filesystem::path& file, const std::filesystem::path& folder) {
  std::error_code unreadable;  // if it cannot be resolved, the path as written is compared
  const auto real = [&unreadable](const std::filesystem::path& path) {
    const auto out = std::filesystem::weakly_canonical(path, unreadable);
    return unreadable ? path.lexically_normal() : out;
  };
  const auto inside = real(file).lexically_relative(real(folder));
  return !inside.empty() && *inside.begin() != "..";
}

/// Returns true if this process can read the key. A command outside the service has no $CREDENTIALS_DIRECTORY.
bool can_read_key(const std::string& reference, const LoadOptions& options) {
  if (options.resolve_secrets) return true;
  return options.resolve_key && (reference.starts_with(kFileStart) || environment_of(options, "CREDENTIALS_DIRECTORY"));
}

/// A key must not be written into a configuration. Only a reference as the whole value is accepted, and messages never
/// repeat any other value.
void read_installation_key(Section& section, const LoadOptions& options, Agent& out) {
  const Node* node = section.find("installation_key");
  if (node == nullptr) return;
  Report& report = section.report();
  if (!is_key_reference(*node)) {
    report.error(node->at, "'installation_key' of 'agent' is not a reference to a key",
                 "${credential:NAME} or ${file:PATH} as the whole value", "",
                 "`driftd key new --out FILE` makes a key; leave 'installation_key' out to keep it in data_dir");
    return;
  }
  const std::string path = node->text.substr(kFileStart.size(), node->text.size() - kFileStart.size() - 1);
  if (node->text.starts_with(kFileStart) && !path.empty() && lies_in(beside_config(report, path), out.data_dir)) {
    report.error(node->at,
                 "'installation_key' of 'agent' names a file in data_dir, and a backup of data_dir would hold the key",
                 "a file outside of " + out.data_dir.string(), "'" + path + "'",
                 "move it out; or leave 'installation_key' out, data_dir is its default");
    return;
  }
  out.installation_key_from = node->text;
  if (!can_read_key(node->text, options)) return;
  LoadOptions own = options;
  own.resolve_secrets = true;
  const std::size_t mistakes = report.errors.size();
  out.installation_key = SettingsReader(report, own, "agent").read_reference(*node);
  if (report.errors.size() == mistakes) out.installation_key_file = report.secret_files.back();
  for (std::size_t i = mistakes; i < report.errors.size(); ++i) {
    auto& next = report.errors[i].next;
    next += std::string(next.empty() ? "" : "; ") +
            "an existing store needs its old key: move it there from data_dir or from its backup, and never make a new "
            "one; "
            "for a first start `driftd key new --out FILE` makes one";
  }
}

}  // namespace

bool listens_on_loopback(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return false;
  const std::string host = listen.substr(0, colon);
  const std::string port = listen.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits && std::stoi(port) <= 65535 && (host == "localhost" || host == "[::1]" || host.starts_with("127."));
}

std::string beside_config(const Report& report, const std::string& path) {
  std::error_code unknown;  // set if the current folder has been deleted
  const auto folder = std::filesystem::absolute(report.file, unknown).parent_path();
  return (folder / path).lexically_normal().string();
}

Agent read_agent(Section section, const LoadOptions& options) {
  Agent out;
  out.name = text_or_variable(section, "name", options, host_name());
  out.cluster = text_or_variable(section, "cluster", options, out.cluster);
  out.node = text_or_variable(section, "node", options);
  for (const auto& [key, value] : {std::pair("name", out.name), std::pair("cluster", out.cluster)}) {
    const std::string fault = value.empty() ? "it is empty" : core::invalid_name_reason(value);
    if (fault.empty()) continue;
    section.report().error(section.at(key),
                           "'" + std::string(key) + "' of the agent cannot be '" + value + "': " + fault);
  }
  if (const std::string fault = core::invalid_name_reason(out.node); !fault.empty()) {
    section.report().error(section.at("node"), "'node' of the agent cannot be '" + out.node + "': " + fault);
  }
  out.data_dir = section.text("data_dir", out.data_dir.string());
  read_installation_key(section, options, out);
  out.plugin_dirs = read_plugin_dirs(section);
  out.plugin_lock_named = section.find("plugin_lock") != nullptr;
  out.plugin_lock = beside_config(section.report(), section.text("plugin_lock", "driftd.lock"));
  out.worker = section.text("worker");
  out.jail_required = section.choice("jail", "best-effort", {"required", "best-effort"}) == "required";
  for (const auto& id : section.texts("experimental")) {
    if (id == "driftd.apply") continue;  // settled since; the entry of an older config has no effect
    section.report().error(section.at("experimental"),
                           "'experimental' names an extension that is not experimental here", "driftd.apply",
                           "'" + id + "'");
  }
  out.programs = read_programs(section);
  out.drain = section.duration("drain", out.drain, milliseconds(100), milliseconds(600'000));
  section.close();
  return out;
}

Admin read_admin(Section section) {
  Admin out;
  out.listen = section.text("listen", out.listen);
  if (!out.listen.empty() && !listens_on_loopback(out.listen)) {
    section.report().error(section.at("listen"), "'listen' of 'admin' is not a loopback address",
                           "127.0.0.1:PORT, [::1]:PORT, or \"\" for none", "'" + out.listen + "'",
                           "let a proxy on this machine serve it to others");
  }
  out.socket = section.text("socket", out.socket);
  if (out.socket.empty() || out.socket.size() > 107) {
    section.report().error(section.at("socket"), "'socket' of 'admin' is not a path of a Unix socket",
                           "1 to 107 bytes");
  }
  out.socket_group = section.text("socket_group");
  out.read_group = section.text("read_group");
  out.decide_group = section.text("decide_group");
  out.uids = read_ids(section, "uids");
  out.gids = read_ids(section, "gids");
  section.close();
  return out;
}

log::Settings read_log(Section section) {
  log::Settings out;
  out.level = section.choice("level", out.level, kLevels);
  out.format = section.choice("format", out.format, {"text", "json"});
  Section rooms = section.section("rooms");
  for (const auto& room : kRooms) {
    if (rooms.find(room) != nullptr) out.rooms[room] = rooms.choice(room, out.level, kLevels);
  }
  rooms.close();
  section.close();
  return out;
}

Metrics read_metrics(Section section) {
  Metrics out;
  out.prefix = section.text("prefix", out.prefix);
  const bool good = !out.prefix.empty() && std::isdigit(static_cast<unsigned char>(out.prefix[0])) == 0 &&
                    std::all_of(out.prefix.begin(), out.prefix.end(),
                                [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (!good) {
    section.report().error(section.at("prefix"), "'prefix' of 'metrics' is not a prefix of metric names",
                           "letters, digits and _", "'" + out.prefix + "'");
  }
  section.close();
  return out;
}

Retention read_retention(Section section) {
  Retention out;
  out.delivered = read_days(section, "delivered", out.delivered);
  out.undelivered = read_days(section, "undelivered", out.undelivered);
  out.history = read_days(section, "history", out.history);
  out.audit = read_days(section, "audit", out.audit, 100 * 365);
  out.max_bytes = section.bytes("max_bytes", out.max_bytes, 16 << 20);
  section.close();
  return out;
}

Delivery read_delivery(Section section) {
  Delivery out;
  out.max_backlog_bytes = section.bytes("max_backlog_bytes", out.max_backlog_bytes, 1 << 20);
  out.max_backlog_events = section.integer("max_backlog_events", out.max_backlog_events, 1000, 1'000'000'000);
  out.drop_pending = section.texts("drop_pending");
  section.close();
  return out;
}

}  // namespace driftd::config
