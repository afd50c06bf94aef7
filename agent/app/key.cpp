// SPDX-License-Identifier: Apache-2.0
// `driftd key`: what the installation's key is, and its rotation.
#include <sys/stat.h>
#include <unistd.h>

#include "admin/peer.hpp"
#include "app/app.hpp"
#include "app/store.hpp"
#include "base/log.hpp"
#include "store/backup.hpp"
#include "store/rotate.hpp"

namespace driftd::app {
namespace {

core::AuditEntry asked_by_this_process(const std::string& reason) {
  core::AuditEntry out;
  out.actor = admin::user_name(::geteuid());
  out.caller = {static_cast<std::int64_t>(::geteuid()), static_cast<std::int64_t>(::getegid()), ::getpid(), admin::login_of(::getpid())};
  out.reason = reason;
  return out;
}

core::Value::Array links_of(const store::InstallationKey& key) {
  core::Value::Array out;
  const auto link = [&out](const char* what, const std::string& id, const std::string& since) {
    out.push_back(core::Value::Object{{"what", core::Value(what)}, {"id", core::Value(id)}, {"since", core::Value(since)}});
  };
  link("worker", key.worker.id, "");
  link("store", key.store.id, "");
  for (std::size_t i = 0; i < key.rotations.size(); ++i) {
    link("layer", key.store.layers[i].id, render_time(key.rotations[i].at_ns));
  }
  return out;
}

/// Mode, owner and age of the file.
Status add_file(const std::filesystem::path& file, core::Value::Object& out) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return fail(Code::not_found, "there is no " + file.string() + "; the first start makes it");
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
  out["mode"] = core::Value(mode);
  out["owner"] = core::Value(admin::user_name(info.st_uid));
  out["written"] = core::Value(render_time(static_cast<Nanos>(info.st_mtim.tv_sec) * 1'000'000'000));
  return {};
}

/// What the store says of its key; empty: there is none, or it cannot be read now.
std::string ids_in_store(const config::Config& config) {
  const auto ids = store::key_ids_in(config.agent.data_dir / "store.db");
  return ids ? *ids : std::string();
}

std::string state_of(const std::string& in_key, const std::string& in_store) {
  if (in_store.empty()) return "no store";
  if (in_store == in_key) return "in force";
  if (in_key.starts_with(in_store + " ")) return "the next start rewrites the store";
  return store::key_fault("this key", in_key, "the store", in_store);
}

}  // namespace

Result<core::Value> key_state(const config::Config& config) {
  const auto file = config.agent.data_dir / "installation.key";
  core::Value::Object out{{"from", core::Value(file.string())}};
  DRIFTD_CHECK(add_file(file, out));
  DRIFTD_TRY(const auto key, store::read_key(file));
  out["ids"] = core::Value(store::ids_of(key));
  out["links"] = core::Value(links_of(key));
  out["state"] = core::Value(state_of(store::ids_of(key), ids_in_store(config)));
  return core::Value(std::move(out));
}

Result<core::Value> rotate_key(const config::Config& config, const std::string& reason) {
  log::Settings log = config.log;
  log.level = "warn";
  log::configure(log);
  const SystemClock clock;
  DRIFTD_TRY(const auto rotated, store::rotate(store_settings(config), asked_by_this_process(reason), clock));
  core::Value::Array former;
  for (const auto& each : rotated.former) former.emplace_back(each.string());
  return core::Value(core::Value::Object{{"file", core::Value((config.agent.data_dir / "installation.key").string())},
                                         {"ids", core::Value(rotated.key_ids)},
                                         {"layers", core::Value(core::Value::Number{std::to_string(rotated.layers)})},
                                         {"unswept", core::Value(rotated.unswept)},
                                         {"former", core::Value(std::move(former))}});
}

}  // namespace driftd::app
