// SPDX-License-Identifier: Apache-2.0
// Group binary: the .so before its first call. How it is linked, and what loading it does to a process.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "check/elf.hpp"
#include "check/host.hpp"
#include "check/negotiate.hpp"
#include "check/process_state.hpp"
#include "check/progress.hpp"
#include "check/runner.hpp"

namespace driftd::check {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

void loads(const Subject& subject) {
  set_progress("dlopen: its constructors run; they must not end the process");
  if (::dlopen(subject.file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
  throw RuleBroken(
      fmt::format("expected dlopen(RTLD_NOW | RTLD_LOCAL) to load it, found: {}; link every library that it needs "
                  "(-Wl,--no-undefined tells at build time) and install them where the loader looks",
                  ::dlerror()));
}

void entry(const Subject& subject) {
  const char* wanted = entry_symbol(subject.plugin);
  const auto exported = read_elf(subject.file).exported;
  if (std::find(exported.begin(), exported.end(), wanted) != exported.end()) return;
  throw RuleBroken(fmt::format(
      "expected the exported symbol {}, found {}; define it as DRIFTD_EXPORT (C: extern; C++: extern \"C\"; Rust: "
      "#[no_mangle] extern \"C\"; Go: //export)",
      wanted, exported.empty() ? "no symbol at all" : exported.front()));
}

void one_symbol(const Subject& subject) {
  const std::string wanted = entry_symbol(subject.plugin);
  std::vector<std::string> others;
  for (const auto& name : read_elf(subject.file).exported) {
    if (name != wanted) others.push_back(name);
  }
  if (others.empty()) return;
  std::string first;
  for (std::size_t i = 0; i < std::min<std::size_t>(others.size(), 5); ++i) first += (i == 0 ? "" : ", ") + others[i];
  throw RuleBroken(
      fmt::format("expected {} as the only exported symbol, found {} more ({}); a library of the same name in another "
                  "plugin would clash: link with --version-script={{ global: {}; local: *; }} and -fvisibility=hidden",
                  wanted, others.size(), first, wanted));
}

void no_textrel(const Subject& subject) {
  if (!read_elf(subject.file).text_relocations) return;
  throw RuleBroken(
      "expected code without relocations, found DT_TEXTREL: the loader would have to write into code; compile "
      "everything, static libraries too, with -fPIC and link with -Wl,-z,text");
}

void no_exec_stack(const Subject& subject) {
  const Elf elf = read_elf(subject.file);
  if (elf.stack_header && !elf.executable_stack) return;
  throw RuleBroken(
      fmt::format("expected PT_GNU_STACK without execute, found {}: loading it would make every stack of the process "
                  "executable; link with -Wl,-z,noexecstack, give assembly files a .note.GNU-stack section",
                  elf.stack_header ? "one with execute" : "no PT_GNU_STACK"));
}

/// Explains why another user could place a library there. Empty if none could.
std::string unsafe(const std::string& folder, const std::string& file) {
  std::string path = folder;
  for (const char* origin : {"$ORIGIN", "${ORIGIN}"}) {
    const std::size_t at = path.find(origin);
    if (at != std::string::npos) path.replace(at, std::strlen(origin), fs::path(file).parent_path().string());
  }
  if (path.empty() || path.front() != '/') return "it is relative to the working folder";
  bool strict = true;  // whoever may create files here decides what is loaded
  for (fs::path at = fs::path(path).lexically_normal();; at = at.parent_path()) {
    struct stat st {};
    if (::stat(at.c_str(), &st) == 0) {
      const bool tolerated = !strict && (st.st_mode & S_ISVTX) != 0 && st.st_uid == 0;
      if ((st.st_mode & S_IWOTH) != 0 && !tolerated) return fmt::format("others may write to {}", at.string());
      strict = false;
    }
    if (at == at.root_path()) return {};
  }
}

void no_rpath(const Subject& subject) {
  for (const auto& folder : read_elf(subject.file).rpaths) {
    const std::string why = unsafe(folder, subject.file);
    if (why.empty()) continue;
    throw RuleBroken(fmt::format(
        "expected no RPATH or RUNPATH that others control, found \"{}\": {}; link without -rpath (chrpath -d "
        "removes one) or use $ORIGIN",
        folder, why));
  }
}

void relro(const Subject& subject) {
  const Elf elf = read_elf(subject.file);
  if (elf.relro && elf.bind_now) return;
  throw RuleBroken(fmt::format("expected full RELRO, found {}; link with -Wl,-z,relro,-z,now",
                               !elf.relro ? "no PT_GNU_RELRO" : "lazy binding"));
}

void load_process(const Subject& subject) {
  const auto before = ProcessState::capture();
  std::string printed, redirected;
  {
    const Stdio stdio(true);
    (void)find_entry(subject);
    printed = stdio.printed();
    redirected = stdio.redirected();
  }
  const std::string differs = before.difference(ProcessState::capture());
  if (!differs.empty())
    throw RuleBroken(fmt::format("after loading: {}; do nothing in constructors, work starts in open", differs));
  if (!redirected.empty())
    throw RuleBroken(fmt::format("after loading: expected descriptors 0 to 2 as they were, found: {}", redirected));
  if (printed.empty()) return;
  throw RuleBroken(fmt::format(
      "loading printed: expected nothing on stdout and stderr, found \"{}\"; use the host's log, in a call", printed));
}

void load_signals(const Subject& subject) {
  const auto before = ProcessState::capture();
  (void)find_entry(subject);
  const std::string differs = before.signal_difference(ProcessState::capture());
  if (differs.empty()) return;
  throw RuleBroken(fmt::format(
      "after loading: {}; signals belong to the host (a Go runtime installs handlers at load: nothing can be "
      "done, and it runs in a worker of its own)",
      differs));
}

void load_threads(const Subject& subject) {
  const auto before = Footprint::capture();
  (void)find_entry(subject);
  const auto after = Footprint::capture();
  if (after.threads > before.threads) {
    throw RuleBroken(fmt::format(
        "expected no thread started by loading, found {}; start threads in open and end them in close (a Go "
        "runtime starts some at load: nothing can be done)",
        after.threads - before.threads));
  }
  if (after.fds > before.fds) {
    throw RuleBroken(
        fmt::format("expected no descriptor opened by loading, found {}; open them in open", after.fds - before.fds));
  }
}

/// Returns the milliseconds from dlopen to the entry's answer, measured in a child process.
double load_once(const Subject& subject) {
  const Outcome outcome = run_in_child(10s, [&] {
    const auto start = mono_ns();
    (void)negotiate(subject);
    return std::to_string(static_cast<double>(mono_ns() - start) / 1e6);
  });
  if (outcome.ending != Ending::passed) throw CheckNotMade(outcome.text + "; see binary.loads");
  return std::stod(outcome.text);
}

void load_time(const Subject& subject) {
  double best = load_once(subject);
  for (int i = 0; i < 4; ++i) best = std::min(best, load_once(subject));
  if (best <= 100) return;
  throw RuleBroken(fmt::format(
      "expected dlopen and {} within 100 ms, found {:.0f} ms at best of five; load and connect in open or later",
      entry_symbol(subject.plugin), best));
}

constexpr Check kBinaryChecks[] = {
    {"binary.loads", Level::must,
     "dlopen (RTLD_NOW, RTLD_LOCAL) returns: no undefined symbol, no constructor that exits or crashes", 20s, &loads},
    {"binary.entry", Level::must,
     "the entry symbol of this kind of plugin (driftd_provider_v1, driftd_sink_v1) is exported", 20s, &entry},
    {"binary.one_symbol", Level::must, "nothing else is exported", 20s, &one_symbol},
    {"binary.no_textrel", Level::must, "no relocations in code (DT_TEXTREL)", 20s, &no_textrel},
    {"binary.no_exec_stack", Level::must, "PT_GNU_STACK without execute", 20s, &no_exec_stack},
    {"binary.no_rpath", Level::must, "no RPATH or RUNPATH that is relative or in a folder that others may write", 20s,
     &no_rpath},
    {"binary.relro", Level::should, "full RELRO: BIND_NOW and PT_GNU_RELRO", 20s, &relro},
    {"binary.load_process", Level::must,
     "loading leaves working folder, umask, environment, locale, stdout and stderr alone", 20s, &load_process},
    {"binary.load_signals", Level::should, "loading leaves signal handlers and mask alone", 20s, &load_signals},
    {"binary.load_threads", Level::should, "loading starts no thread and opens no descriptor", 20s, &load_threads},
    {"binary.load_time", Level::should, "dlopen and entry within 100 ms", 60s, &load_time},
};

}  // namespace

std::span<const Check> binary_checks() { return kBinaryChecks; }

}  // namespace driftd::check
