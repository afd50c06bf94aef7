// SPDX-License-Identifier: Apache-2.0
// `driftd backup`, `restore` and `verify`, with the paths that the configuration gives.
#include "store/backup.hpp"
#include "store/audit_walk.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

#include "app/app.hpp"
#include "app/store.hpp"

namespace driftd::app {
namespace {

core::Value::Object content_json(const store::Content& content) {
  const auto number = [](std::int64_t value) { return core::Value(core::Value::Number{std::to_string(value)}); };
  return {{"backends", number(content.backends)},
          {"resources", number(content.resources)},
          {"open_drifts", number(content.open_drifts)},
          {"events", number(content.events)},
          {"newest_event", number(content.newest_event)},
          {"newest_at", content.newest_ns == 0 ? core::Value() : core::Value(render_time(content.newest_ns))}};
}

/// Makes this process the last one that gets CPU and disk, and ends it with the process that started it. If the kernel
/// refuses one of these, the check only disturbs more.
void give_way() {
  constexpr int kIdleDisk = 3 << 13;  // IOPRIO_CLASS_IDLE of linux/ioprio.h
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::setpriority(PRIO_PROCESS, 0, 19);
  (void)::syscall(SYS_ioprio_set, 1, 0, kIdleDisk);  // 1: a process; 0: this one
}

Result<store::Restored> restore_store(const config::Config& config, const std::string& from,
                                      const std::string& key_file) {
  const SystemClock clock;
  const auto& data_dir = config.agent.data_dir;
  if (config.agent.installation_key_from.empty()) return store::restore(data_dir, from, key_file, clock.wall());
  std::optional<store::GivenKey> key;
  if (!key_file.empty()) {
    DRIFTD_TRY(auto named, read_key_file(key_file));
    key = store::GivenKey{std::move(named), key_file};
  } else {
    DRIFTD_TRY(key, given_key(config));
  }
  return store::restore_without_key(data_dir, from, key, clock.wall());
}

}  // namespace

Result<core::Value> back_up(const config::Config& config, const std::string& to, bool with_key) {
  const std::string& elsewhere = config.agent.installation_key_from;
  if (with_key && !elsewhere.empty()) {
    return fail(Code::invalid, "the key is not in data_dir but comes from " + elsewhere +
                                   ": keep a copy of it where a backup is not, and leave --with-key out");
  }
  const SystemClock clock;
  DRIFTD_TRY(const auto backup, store::back_up(config.agent.data_dir, to, with_key, clock.wall()));
  auto out = content_json(backup.content);
  out["file"] = core::Value(backup.file.string());
  out["key_file"] = core::Value(backup.key_file.string());
  out["key_from"] = core::Value(elsewhere);
  return core::Value(std::move(out));
}

Result<core::Value> restore(const config::Config& config, const std::string& from, const std::string& key) {
  DRIFTD_TRY(const auto restored, restore_store(config, from, key));
  auto out = content_json(restored.content);
  out["file"] = core::Value((config.agent.data_dir / "store.db").string());
  out["kept"] = core::Value(restored.kept.string());
  out["unchecked"] =
      core::Value(key.empty() && config.agent.installation_key.empty() ? config.agent.installation_key_from : "");
  return core::Value(std::move(out));
}

Result<core::Value> verify(const std::string& file, bool background) {
  if (background) give_way();
  auto found = store::verify(file);
  if (!found && found.error().code != Code::corrupt) return fail(found.error());
  auto out = found ? content_json(*found) : core::Value::Object{};
  out["file"] = core::Value(file);
  out["damaged"] = core::Value(found ? std::string() : found.error().message);
  return core::Value(std::move(out));
}

Result<core::AuditProof> verify_audit(const std::string& file, const std::string& anchor) {
  std::optional<core::AuditLink> link;
  if (!anchor.empty()) {
    DRIFTD_TRY(link, core::parse_audit_link(anchor));
  }
  return store::verify_audit(file, std::move(link));
}

}  // namespace driftd::app
