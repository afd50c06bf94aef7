// SPDX-License-Identifier: Apache-2.0
#include "worker/library.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <map>
#include <memory>
#include <mutex>

#include "worker/ask_plugin.hpp"
#include "worker/negotiate.hpp"

namespace driftd::worker {
namespace {

constexpr char kProviderEntry[] = "driftd_provider_v1";
constexpr char kSinkEntry[] = "driftd_sink_v1";

/// A file that dlopen accepted. It is kept until the process ends, because Go, Rust thread-locals and pthread keys
/// cannot be unloaded. Its descriptor stays open too: the loader identifies a library by its name, which is that of the
/// descriptor.
struct OpenedLibrary {
  ipc::PluginFile file;
  boost::dll::shared_library code;
};

/// By key and not by path: an upgraded file is another library. Guarded by the mutex of load_library.
std::map<ipc::PluginFile::Key, OpenedLibrary>& opened_libraries() {
  static auto* all = new std::map<ipc::PluginFile::Key, OpenedLibrary>;
  return *all;
}

std::string loader_reason(const std::string& fallback, const std::string& name, const std::string& file) {
  const char* why = ::dlerror();
  std::string out = why != nullptr ? why : fallback;
  for (auto at = out.find(name); at != std::string::npos; at = out.find(name, at + file.size()))
    out.replace(at, name.size(), file);
  return out;
}

/// Opens the library by its descriptor, so that what was checked is what is loaded.
Result<const OpenedLibrary*> open_code(ipc::PluginFile file) {
  auto& all = opened_libraries();
  if (const auto known = all.find(file.key()); known != all.end()) return &known->second;
  const bool inode_in_use = std::any_of(all.begin(), all.end(), [&](const auto& other) {
    return other.first.device == file.key().device && other.first.inode == file.key().inode;
  });
  if (inode_in_use) DRIFTD_CHECK(file.seal());  // overwritten in place: the loader would return the old library
  const std::string name = file.load_name();
  boost::dll::fs::error_code failed;
  boost::dll::shared_library opened;
  opened.load(name, failed, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (failed) {
    return fail(Code::invalid, fmt::format("{}: cannot be loaded: {}", file.path(),
                                           loader_reason(failed.message(), name, file.path())));
  }
  const auto key = file.key();
  return &all.emplace(key, OpenedLibrary{std::move(file), std::move(opened)}).first->second;
}

/// Negotiates with the one symbol that the library exports, and fills in its tables.
Status negotiate_with(const OpenedLibrary& kept, bool in_process, Library& library) {
  if (kept.code.has(kProviderEntry)) {
    DRIFTD_TRY(library.table, negotiate(library.file, &kept.code.get<EntryFunction>(kProviderEntry), in_process));
    return {};
  }
  if (kept.code.has(kSinkEntry)) {
    DRIFTD_TRY(library.sink, negotiate_sink(library.file, &kept.code.get<SinkEntryFunction>(kSinkEntry), in_process));
    library.table = provider_part(*library.sink);
    return {};
  }
  return fail(Code::invalid,
              fmt::format("{}: does not export {} or {}; it is neither a driftd provider nor a sink plugin, or one of "
                          "another major version",
                          library.file, kProviderEntry, kSinkEntry));
}

Result<std::unique_ptr<const Library>> load_fresh(const OpenedLibrary& kept, bool in_process) {
  auto library = std::make_unique<Library>();
  library->file = kept.file.path();
  try {
    DRIFTD_CHECK(negotiate_with(kept, in_process, *library));
    DRIFTD_TRY(library->loaded, ask_plugin(*library));
  } catch (const std::exception& e) {
    return fail(Code::internal, fmt::format("{}: an exception crossed the ABI: {}", library->file, e.what()));
  } catch (...) {
    return fail(Code::internal, library->file + ": an exception crossed the ABI");
  }
  return library;
}

}  // namespace

Result<const Library*> load_library(ipc::PluginFile file, bool in_process) {
  static std::mutex mutex;
  static auto* known = new std::map<const OpenedLibrary*, const Library*>;
  const std::lock_guard lock(mutex);
  DRIFTD_TRY(const OpenedLibrary* const kept, open_code(std::move(file)));
  const auto found = known->find(kept);
  if (found != known->end()) return found->second;
  DRIFTD_TRY(auto library, load_fresh(*kept, in_process));
  return known->emplace(kept, library.release()).first->second;  // never freed, like the code it points into
}

Result<const Library*> load_library(const std::filesystem::path& file, bool in_process) {
  DRIFTD_TRY(ipc::PluginFile opened, ipc::PluginFile::open(file));
  return load_library(std::move(opened), in_process);
}

}  // namespace driftd::worker
