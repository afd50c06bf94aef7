// SPDX-License-Identifier: Apache-2.0
// `driftd key`: the state of the installation's key, and its rotation.
#include <sys/stat.h>
#include <unistd.h>

#include "admin/peer.hpp"
#include "admin/user_names.hpp"
#include "app/app.hpp"
#include "app/store.hpp"
#include "base/log.hpp"
#include "store/backup.hpp"
#include "store/files.hpp"
#include "store/rotate.hpp"

namespace driftd::app {
namespace {

core::AuditEntry asked_by_this_process(const std::string& reason) {
  core::AuditEntry out;
  out.actor = admin::user_name(::geteuid());
  const auto login = admin::read_login_uid(::getpid());
  out.caller = {static_cast<std::int64_t>(::geteuid()), static_cast<std::int64_t>(::getegid()), ::getpid(),
                login ? "loginuid:" + admin::user_name(*login) : ""};
  out.reason = reason;
  return out;
}

core::Value::Array links_of(const store::InstallationKey& key) {
  core::Value::Array out;
  const auto link = [&out](const char* what, const std::string& id, const std::string& since) {
    out.push_back(
        core::Value::Object{{"what", core::Value(what)}, {"id", core::Value(id)}, {"since", core::Value(since)}});
  };
  link("worker", key.worker.id, "");
  link("store", key.store.id, "");
  for (std::size_t i = 0; i < key.rotations.size(); ++i) {
    link(key.store.layers[i].kind == core::LayerKind::slow ? "slow layer" : "layer", key.store.layers[i].id,
         render_time(key.rotations[i].at_ns));
  }
  return out;
}

/// Adds mode, owner and age of the file.
Status add_file(const std::filesystem::path& file, core::Value::Object& out) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return fail(Code::not_found, "there is no " + file.string());
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
  out["mode"] = core::Value(mode);
  out["owner"] = core::Value(admin::user_name(info.st_uid));
  out["written"] = core::Value(render_time(static_cast<Nanos>(info.st_mtim.tv_sec) * 1'000'000'000));
  return {};
}

/// Returns the key ids that the store names; empty if there is no store or it cannot be read now.
std::string ids_in_store(const config::Config& config) {
  const auto ids = store::key_ids_in(config.agent.data_dir / "store.db");
  return ids ? *ids : std::string();
}

bool fits(const std::string& in_key, const std::string& in_store) {
  return in_store.empty() || in_store == in_key || in_key.starts_with(in_store + " ");
}

std::string state_of(const std::string& in_key, const std::string& in_store) {
  if (in_store.empty()) return "no store";
  if (in_store == in_key) return "in force";
  if (fits(in_key, in_store)) return "the next start rewrites the store";
  return store::key_fault("this key", in_key, "the store", in_store);
}

core::LayerKind kind_of(const KeyRotation& asked) { return asked.slow ? core::LayerKind::slow : core::LayerKind::hmac; }

bool lies_elsewhere(const config::Config& config) { return !config.agent.installation_key_from.empty(); }

std::filesystem::path file_of(const config::Config& config, const std::string& named) {
  if (!named.empty()) return named;
  return lies_elsewhere(config) ? config.agent.installation_key_file : config.agent.data_dir / "installation.key";
}

Result<store::InstallationKey> current_key(const config::Config& config, const std::string& named) {
  if (!named.empty()) return read_key_file(named);
  if (!lies_elsewhere(config)) {
    auto key = store::read_key(file_of(config, named));
    if (!key && key.error().code == Code::not_found)
      return fail(Code::not_found, key.error().message + "; the first start makes it");
    return key;
  }
  DRIFTD_TRY(auto given, given_key(config));
  if (given) return std::move(given->key);
  return fail(Code::unavailable,
              "the key comes from " + config.agent.installation_key_from +
                  ", which systemd gives to the service alone ($CREDENTIALS_DIRECTORY is not set here); name "
                  "the file that the unit loads it from with --key FILE");
}

/// Writes the key with mode 0600, and never replaces an existing file, which may be a key.
Status write_next(const config::Config& config, const store::InstallationKey& key, const std::string& out) {
  std::error_code unreadable;
  const auto folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(out, unreadable).parent_path(), unreadable);
  if (folder == std::filesystem::weakly_canonical(config.agent.data_dir, unreadable)) {
    return fail(Code::invalid,
                out + " lies in data_dir, and a backup of data_dir would hold it; name a file elsewhere");
  }
  return store::write_new_private(out, store::render(key));
}

/// Writes the key with its next layer. The store is rewritten by the first start with that key; until then a kill, or a
/// change of mind, costs nothing.
Result<core::Value> write_next_key(const config::Config& config, const KeyRotation& asked) {
  const std::string& from = config.agent.installation_key_from;
  if (asked.out.empty()) {
    return fail(Code::invalid, "the key comes from " + from +
                                   ": name a new file for the key with its next layer (--out FILE), and put "
                                   "that in its place afterwards");
  }
  DRIFTD_TRY(const auto key, current_key(config, asked.key_file));
  const std::string ids = store::ids_of(key), stored = ids_in_store(config);
  if (!fits(ids, stored)) return fail(Code::conflict, store::key_fault("the key of " + from, ids, "the store", stored));
  const SystemClock clock;
  DRIFTD_TRY(const auto next, store::rotated(key, clock.wall(), kind_of(asked)));
  DRIFTD_CHECK(write_next(config, next, asked.out));
  return core::Value(core::Value::Object{
      {"file", core::Value(asked.out)}, {"ids", core::Value(store::ids_of(next))}, {"put", core::Value(from)}});
}

std::string words_of(const store::SlowWork& work) {
  return "the store holds " + std::to_string(work.digests) + " digests; a slow layer around them takes about " +
         std::to_string(work.time.count() / 1000 + 1) + " s on " + std::to_string(work.threads) +
         " threads; until it is done a stop leaves key and store as they are";
}

}  // namespace

Result<core::Value> new_key(const std::string& out) {
  DRIFTD_TRY(const auto key, store::make_key());
  core::Value::Object answer{{"ids", core::Value(store::ids_of(key))}, {"file", core::Value(out)}};
  if (out.empty()) {
    answer["text"] = core::Value(store::render(key));
  } else {
    DRIFTD_CHECK(store::write_new_private(out, store::render(key)));
  }
  return core::Value(std::move(answer));
}

Result<core::Value> key_state(const config::Config& config, const std::string& key_file) {
  DRIFTD_TRY(const auto key, current_key(config, key_file));
  const auto file = file_of(config, key_file);
  core::Value::Object out{{"from", core::Value(file.string())},
                          {"named", core::Value(config.agent.installation_key_from)}};
  DRIFTD_CHECK(add_file(file, out));
  out["ids"] = core::Value(store::ids_of(key));
  out["links"] = core::Value(links_of(key));
  out["state"] = core::Value(state_of(store::ids_of(key), ids_in_store(config)));
  return core::Value(std::move(out));
}

Result<core::Value> rotate_key(const config::Config& config, const KeyRotation& asked) {
  if (lies_elsewhere(config)) return write_next_key(config, asked);
  if (!asked.out.empty() || !asked.key_file.empty()) {
    return fail(
        Code::invalid,
        "the key lies in data_dir and is rotated there; --out and --key are for one that agent.installation_key names");
  }
  log::Settings log = config.log;
  log.level = "warn";
  log::configure(log);
  const SystemClock clock;
  const auto say = [&asked](const store::SlowWork& work) {
    if (asked.say) asked.say(words_of(work));
  };
  DRIFTD_TRY(auto settings, store_settings(config));
  DRIFTD_TRY(const auto rotated,
             store::rotate(std::move(settings), asked_by_this_process(asked.reason), clock, kind_of(asked), say));
  core::Value::Array former;
  for (const auto& each : rotated.former) former.emplace_back(each.string());
  return core::Value(core::Value::Object{{"file", core::Value((config.agent.data_dir / "installation.key").string())},
                                         {"ids", core::Value(rotated.key_ids)},
                                         {"layers", core::Value(core::Value::Number{std::to_string(rotated.layers)})},
                                         {"unswept", core::Value(rotated.unswept)},
                                         {"former", core::Value(std::move(former))}});
}

}  // namespace driftd::app
