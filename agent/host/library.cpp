// SPDX-License-Identifier: Apache-2.0
#include "host/library.hpp"

#include <fmt/format.h>
#include <algorithm>
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

using Entry = driftd_status(const driftd_host_table*, const driftd_offer*, driftd_accept*);

/// A file that dlopen took, kept for as long as the process: Go, Rust thread-locals and pthread keys cannot be unloaded.
/// Its descriptor stays open with it: the loader knows a library by its name, and the name is the descriptor's.
struct Kept {
  LibraryFile file;
  boost::dll::shared_library code;
};

/// By what was opened, not by its path: an upgraded file is another library. Under the mutex of load_library.
std::map<LibraryFile::Key, Kept>& kept_libraries() {
  static auto* all = new std::map<LibraryFile::Key, Kept>;
  return *all;
}

std::string loader_reason(const std::string& fallback, const std::string& name, const std::string& file) {
  const char* why = ::dlerror();
  std::string out = why != nullptr ? why : fallback;
  for (auto at = out.find(name); at != std::string::npos; at = out.find(name, at + file.size()))
    out.replace(at, name.size(), file);
  return out;
}

/// Opens by descriptor: what was checked is what is loaded.
Result<const Kept*> open_code(LibraryFile file) {
  auto& all = kept_libraries();
  if (const auto known = all.find(file.key()); known != all.end()) return &known->second;
  const bool inode_in_use = std::any_of(all.begin(), all.end(), [&](const auto& other) {
    return other.first.device == file.key().device && other.first.inode == file.key().inode;
  });
  if (inode_in_use) DRIFTD_CHECK(file.copy());  // written over in place: the loader would answer the old one
  const std::string name = file.load_name();
  boost::dll::fs::error_code failed;
  boost::dll::shared_library opened;
  opened.load(name, failed, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (failed) {
    return fail(Code::invalid, fmt::format("{}: cannot be loaded: {}", file.path(),
                                           loader_reason(failed.message(), name, file.path())));
  }
  const auto key = file.key();
  return &all.emplace(key, Kept{std::move(file), std::move(opened)}).first->second;
}

Result<Entry*> find_entry(const Kept& kept) {
  if (!kept.code.has(kEntry)) {
    return fail(Code::invalid, fmt::format("{}: does not export {}; it is no driftd provider, or one of another major "
                                           "version",
                                           kept.file.path(), kEntry));
  }
  return &kept.code.get<Entry>(kEntry);
}

Result<std::unique_ptr<const Library>> load_fresh(const Kept& kept, bool in_process) {
  DRIFTD_TRY(Entry* const entry, find_entry(kept));
  auto library = std::make_unique<Library>();
  library->file = kept.file.path();
  try {
    DRIFTD_CHECK(negotiate(*library, entry, in_process));
    DRIFTD_TRY(library->loaded, ask_plugin(*library));
    DRIFTD_CHECK(adopt_watch(*library));
  } catch (const std::exception& e) {
    return fail(Code::internal, fmt::format("{}: an exception crossed the ABI: {}", library->file, e.what()));
  } catch (...) {
    return fail(Code::internal, library->file + ": an exception crossed the ABI");
  }
  return library;
}

}  // namespace

Result<const Library*> load_library(LibraryFile file, bool in_process) {
  static std::mutex mutex;
  static auto* known = new std::map<const Kept*, const Library*>;
  const std::lock_guard lock(mutex);
  DRIFTD_TRY(const Kept* const kept, open_code(std::move(file)));
  const auto found = known->find(kept);
  if (found != known->end()) return found->second;
  DRIFTD_TRY(auto library, load_fresh(*kept, in_process));
  return known->emplace(kept, library.release()).first->second;  // for ever, like the code it points into
}

Result<const Library*> load_library(const std::filesystem::path& file, bool in_process) {
  DRIFTD_TRY(LibraryFile opened, LibraryFile::open(file, {}));
  return load_library(std::move(opened), in_process);
}

}  // namespace driftd::host
