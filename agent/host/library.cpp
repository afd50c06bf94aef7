// SPDX-License-Identifier: Apache-2.0
#include "host/library.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <boost/dll/shared_library.hpp>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "host/describe.hpp"
#include "host/host_table.hpp"

namespace driftd::host {
namespace {

constexpr std::uint32_t kFirstTableSize = 88;  // driftd_provider_table of 1.0: what every provider has
constexpr std::uint32_t kFirstWatchSize = 16;
constexpr char kEntry[] = "driftd_provider_v1";

driftd_provider_table unsupported_table() {
  driftd_provider_table t{};
  t.size = sizeof t;
  t.describe = [](driftd_push_fn, void*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.schema = [](driftd_str, driftd_push_fn, void*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.open = [](driftd_call, const driftd_open_args*, driftd_instance*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.read = [](driftd_instance, driftd_call, const driftd_identity*, std::uint32_t, std::uint32_t) -> driftd_status {
    return DRIFTD_UNSUPPORTED;
  };
  t.refresh = [](driftd_instance, driftd_call, const driftd_refresh_args*, driftd_refresh_result*) -> driftd_status {
    return DRIFTD_UNSUPPORTED;
  };
  t.diff = [](driftd_instance, const driftd_diff_args*, driftd_verdict_fn, void*) -> driftd_status {
    return DRIFTD_UNSUPPORTED;
  };
  t.health = [](driftd_instance, driftd_call, driftd_health_fn, void*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
  t.wake = [](driftd_instance) {};
  t.close = [](driftd_instance) {};
  t.query = [](driftd_str, std::uint32_t) -> const void* { return nullptr; };
  return t;
}

/// Slots are pointers of one size behind `size` and `reserved`.
Status no_null_slots(const void* table, std::uint32_t given, const std::vector<const char*>& names,
                     const std::string& what) {
  const auto* at = static_cast<const char*>(table) + 2 * sizeof(std::uint32_t);
  const std::size_t there = (given - 2 * sizeof(std::uint32_t)) / sizeof(void*);
  for (std::size_t i = 0; i < std::min(there, names.size()); ++i) {
    void* slot = nullptr;
    std::memcpy(&slot, at + i * sizeof slot, sizeof slot);
    if (slot == nullptr) {
      return fail(Code::invalid, fmt::format("{}: slot `{}` is NULL inside the declared size of {} bytes; a function "
                                             "that is not offered must answer UNSUPPORTED",
                                             what, names[i], given));
    }
  }
  return {};
}

Status adopt_table(Library& library, const driftd_provider_table* peer) {
  if (peer == nullptr)
    return fail(Code::invalid, library.file + ": driftd_accept.table is NULL; point it at a static table");
  if (peer->size < kFirstTableSize) {
    return fail(Code::invalid, fmt::format("{}: driftd_provider_table.size is {}, expected at least {}; set it to "
                                           "sizeof(driftd_provider_table)",
                                           library.file, peer->size, kFirstTableSize));
  }
  DRIFTD_CHECK(no_null_slots(
      peer, peer->size, {"describe", "schema", "open", "read", "refresh", "diff", "health", "wake", "close", "query"},
      library.file));
  library.table = unsupported_table();
  std::memcpy(&library.table, peer, std::min<std::size_t>(peer->size, sizeof library.table));
  library.table.size = sizeof library.table;
  return {};
}

Status adopt_watch(Library& library) {
  const driftd_str id{DRIFTD_EXT_WATCH, sizeof DRIFTD_EXT_WATCH - 1};
  const auto* peer = static_cast<const driftd_watch_table*>(library.table.query(id, DRIFTD_EXT_WATCH_REVISION));
  const bool offered = offers_watch(library.loaded.describe);
  if (peer == nullptr && !offered) return {};
  if (peer == nullptr) {
    return fail(Code::invalid, library.file +
                                   ": half of extension driftd.watch/1: describe lists it, but query answers "
                                   "NULL; the function table is missing");
  }
  if (!offered) {
    return fail(Code::invalid, library.file +
                                   ": half of extension driftd.watch/1: query answers a table, but `extensions` "
                                   "of describe does not list it");
  }
  if (peer->size < kFirstWatchSize) {
    return fail(Code::invalid, fmt::format("{}: half of extension driftd.watch/1: the table's size is {}, expected at "
                                           "least {}: slot `watch` is missing",
                                           library.file, peer->size, kFirstWatchSize));
  }
  DRIFTD_CHECK(no_null_slots(peer, peer->size, {"watch"}, library.file + ": half of extension driftd.watch/1"));
  std::memcpy(&library.watch, peer, std::min<std::size_t>(peer->size, sizeof library.watch));
  return {};
}

Status negotiate(Library& library, decltype(&driftd_provider_v1) entry, bool in_process) {
  driftd_offer offer{};
  offer.size = sizeof offer;
  offer.minor_max = DRIFTD_ABI_MINOR;
  offer.in_process = in_process ? 1 : 0;
  offer.host_version = {"0.1.0", 5};
  driftd_accept accept{};
  accept.size = sizeof accept;
  const driftd_status status = entry(host_table(), &offer, &accept);
  if (accept.minor_needed > DRIFTD_ABI_MINOR || status == DRIFTD_UNSUPPORTED) {
    return fail(
        Code::unsupported,
        fmt::format("{}: the plugin needs a host of ABI {}.{} (it was built with {}.{}), this agent speaks {}.{}; "
                    "upgrade driftd, or install a build of the plugin for {}.{}",
                    library.file, DRIFTD_ABI_MAJOR, accept.minor_needed, DRIFTD_ABI_MAJOR, accept.minor_built,
                    DRIFTD_ABI_MAJOR, DRIFTD_ABI_MINOR, DRIFTD_ABI_MAJOR, DRIFTD_ABI_MINOR));
  }
  if (status != DRIFTD_OK) {
    return fail(code_of(status), fmt::format("{}: {} answered {}", library.file, kEntry, render(code_of(status))));
  }
  return adopt_table(library, accept.table);
}

/// Kept for as long as the process: Go, Rust thread-locals and pthread keys cannot be unloaded. What is opened again, as
/// after a refusal, is kept once. Under the mutex of load_library.
const boost::dll::shared_library& keep(boost::dll::shared_library opened) {
  static auto* kept = new std::map<void*, boost::dll::shared_library>;
  return kept->try_emplace(opened.native(), std::move(opened)).first->second;
}

Result<decltype(&driftd_provider_v1)> find_entry(const std::string& file) {
  boost::dll::fs::error_code failed;
  boost::dll::shared_library opened;
  opened.load(file, failed, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (failed) {
    const char* why = ::dlerror();
    return fail(Code::invalid, fmt::format("{}: cannot be loaded: {}", file, why != nullptr ? why : failed.message()));
  }
  const auto& shared = keep(std::move(opened));
  if (!shared.has(kEntry)) {
    return fail(Code::invalid, fmt::format("{}: does not export {}; it is no driftd provider, or one of another major "
                                           "version",
                                           file, kEntry));
  }
  return &shared.get<driftd_status(const driftd_host_table*, const driftd_offer*, driftd_accept*)>(kEntry);
}

Result<std::unique_ptr<const Library>> load_fresh(const std::string& file, bool in_process) {
  DRIFTD_CHECK(check_file_rights(file));
  DRIFTD_TRY(const auto entry, find_entry(file));
  auto library = std::make_unique<Library>();
  library->file = file;
  try {
    DRIFTD_CHECK(negotiate(*library, entry, in_process));
    DRIFTD_TRY(library->loaded, ask_plugin(*library));
    DRIFTD_CHECK(adopt_watch(*library));
  } catch (const std::exception& e) {
    return fail(Code::internal, fmt::format("{}: an exception crossed the ABI: {}", file, e.what()));
  } catch (...) {
    return fail(Code::internal, file + ": an exception crossed the ABI");
  }
  return library;
}

}  // namespace

Status check_file_rights(const std::filesystem::path& file) {
  std::error_code failed;
  std::filesystem::path at = std::filesystem::canonical(file, failed);
  if (failed) return fail(Code::invalid, fmt::format("{}: {}", file.string(), failed.message()));
  for (bool folder = false;; folder = true, at = at.parent_path()) {
    struct stat st {};
    if (::stat(at.c_str(), &st) != 0)
      return fail(Code::invalid, fmt::format("{}: {}", at.string(), std::strerror(errno)));
    const bool tolerated = folder && (st.st_mode & S_ISVTX) != 0 && st.st_uid == 0;
    if ((st.st_mode & S_IWOTH) != 0 && !tolerated) {
      return fail(Code::denied,
                  fmt::format("{}: refused, because {} is writable by others (mode {:04o}); `chmod o-w {}`",
                              file.string(), at.string(), st.st_mode & 07777, at.string()));
    }
    if (at == at.root_path()) return {};
  }
}

Result<const Library*> load_library(const std::filesystem::path& file, bool in_process) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, const Library*>;
  const std::lock_guard lock(mutex);
  const auto found = known->find(file.string());
  if (found != known->end()) return found->second;
  DRIFTD_TRY(auto library, load_fresh(file.string(), in_process));
  return known->emplace(file.string(), library.release()).first->second;  // for ever, like the code it points into
}

}  // namespace driftd::host
