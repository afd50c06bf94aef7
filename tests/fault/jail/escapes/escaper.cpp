// SPDX-License-Identifier: Apache-2.0
// A provider whose records are the results of attempts to leave its jail. Its constructor tries to write a file, too.
// If its settings name a path in `folder`, one more record says whether that path is readable.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "driftd/provider.hpp"
#include "escapes.hpp"

namespace {

using namespace driftd::sdk;

/// The result of write_early(), which runs in dlopen, before the host calls anything.
int constructor_errno = -1;
__attribute__((constructor)) void write_early() {
  const int fd = ::open(ESCAPE_CONSTRUCTOR_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  constructor_errno = fd < 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
}

/// Makes a system call by another table of the kernel. The filter kills the process for it in every mode.
void call_foreign_table(const std::string& table) {
#if defined(__x86_64__)
  if (table == "x32") (void)::syscall(0x40000000 | 39);
  if (table == "i386") {
    long result = 20;  // getpid
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  }
#else
  (void)table;
#endif
}

/// Reads a file, or each file of a folder. Returns 0 if all of it is readable, otherwise the first errno, and ENOENT
/// for a folder without a file.
int read_whole(const std::string& path) {
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr && errno == ENOTDIR) return driftd::escapes::try_open(path, O_RDONLY);
  if (folder == nullptr) return errno;
  int result = ENOENT;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_type != DT_REG) continue;
    result = driftd::escapes::try_open(path + "/" + entry->d_name, O_RDONLY);
    if (result != 0) break;
  }
  ::closedir(folder);
  return result;
}

class Escaper final : public Instance {
 public:
  explicit Escaper(std::string_view settings)
      : targets_(driftd::escapes::parse_targets(std::string(settings))),
        settings_(nlohmann::json::parse(settings)) {}

  RefreshResult refresh(Call& call, const Refresh&) override {
    const std::string only = settings_.value("only", "");
    if (only == "x32" || only == "i386") call_foreign_table(only);
    std::uint64_t count = 1;
    report(call, "constructor writes a file", constructor_errno);
    for (const auto& attempt : driftd::escapes::attempts()) {
      if (!only.empty() && only != attempt.name) continue;
      report(call, attempt.name, attempt.run(targets_));
      ++count;
    }
    if (settings_.contains("folder")) {
      report(call, "read the path of the settings", read_whole(settings_.at("folder")));
      ++count;
    }
    call.complete("attempt", count);
    return {};
  }
  void read(Call&, std::span<const Identity>) override {}
  Health health(Call&) override { return {}; }

 private:
  static void report(Call& call, const std::string& name, int error) {
    Record record{"attempt", name};
    record.body = nlohmann::json{{"errno", error}}.dump();
    call.emit(record);
  }
  const driftd::escapes::Targets targets_;
  const nlohmann::json settings_;
};

std::unique_ptr<Instance> open(Call&, std::string_view, std::string_view settings) {
  return std::make_unique<Escaper>(settings);
}

const Plugin& plugin() {
  static const Plugin kPlugin{
      R"({"id":"escaper","version":"1.0","types":["escaper"],"kinds":["attempt"],"concurrency":1})",
      {{"settings", R"({"type":"object","properties":{"socket":{"type":"string","format":"socket"},
                        "folder":{"type":"string","format":"path"},
                        "both":{"allOf":[{"format":"path"},{"format":"socket"}]}}})"},
       {"attempt", R"({"schema":"driftd-schema/1","kind":"attempt","revision":1,"class":"config","title":"an attempt",
                       "attributes":{"errno":{"type":"int"}}})"}},
      false,
      &open};
  return kPlugin;
}

}  // namespace

DRIFTD_PROVIDER(plugin)
