// SPDX-License-Identifier: Apache-2.0
#include "check/program.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <csignal>

#include <fcntl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>

#include "check/elf.hpp"
#include "check/interrupt.hpp"
#include "check/registry.hpp"
#include "check/report.hpp"
#include "check/settings.hpp"
#include "check/sink/plugin.hpp"
#include "check/sink/receiver.hpp"
#include "check/subject.hpp"
#include "check/unix_socket.hpp"

namespace driftd::check {
namespace {

constexpr int kWrongCommandLine = 2;
constexpr std::chrono::seconds kSchemaLimit{20};

struct Arguments {
  std::string plugin, settings, seed_text, answer;
  std::vector<std::string> only;
  std::uint64_t seed = 0;
  bool json = false, junit = false, list = false, sink = false;
};

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

void add_options(CLI::App& app, Arguments& to) {
  app.add_option("plugin", to.plugin, "the plugin, a .so: a provider or a sink");
  app.add_option("--settings", to.settings, "YAML or JSON: what stands under `settings:` of a backend or a sink");
  app.add_flag("--sink", to.sink, "check it as a sink; without this option its exported symbol decides");
  app.add_option("--answer", to.answer, "sinks: what the check's receiver answers to each line (`ok\\n`)");
  auto* json = app.add_flag("--json", to.json, "report as JSON");
  app.add_flag("--junit", to.junit, "report as JUnit XML")->excludes(json);
  app.add_flag("--list", to.list, "show all checks and run none");
  app.add_option("--only", to.only, "this check, or this group; may be repeated")->allow_extra_args(false);
  app.add_option("--seed", to.seed_text, "of everything random; the report of a run prints it");
}

Status parse_seed(Arguments& args) {
  const std::string& text = args.seed_text;
  if (text.empty()) return args.seed = random_seed(), Status();
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), args.seed);
  if (failed == std::errc() && end == text.data() + text.size()) return {};
  return fail(Code::invalid,
              fmt::format("--seed {}: expected a whole number from 0 to {}; a report prints the seed of its run", text,
                          ~std::uint64_t{0}));
}

/// Replaces \n, \r, \t and \\ in the text of --answer.
Status parse_answer(std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char code = ++i < text.size() ? text[i] : ' ';
    const std::size_t known = std::string_view("nrt\\").find(code);
    if (known == std::string_view::npos) {
      return fail(Code::invalid,
                  fmt::format("--answer {}: expected \\n, \\r, \\t or \\\\ after a backslash, found `{}`", text, code));
    }
    out += "\n\r\t\\"[known];
  }
  text = std::move(out);
  return {};
}

Result<std::string> read_text(const std::string& file) {
  const auto unreadable = [&](const char* why) {
    return fail(Code::invalid,
                fmt::format("--settings {}: cannot be read: {}; give a file of YAML or JSON with what stands "
                            "under `settings:` of a backend",
                            file, why));
  };
  if (std::filesystem::is_directory(file)) return unreadable("it is a folder");
  std::ifstream in(file, std::ios::binary);
  if (!in) return unreadable(std::strerror(errno));
  try {
    return std::string(std::istreambuf_iterator<char>(in), {});
  } catch (const std::ios_base::failure& e) {
    return unreadable(e.what());
  }
}

/// Asks for the settings schema in a child, because the parent never loads a provider.
Outcome ask_schema(const Subject& subject) {
  return run_in_child(kSchemaLimit, [&] {
    const CallTrace trace = subject.plugin == PluginKind::sink ? SinkPlugin::load(subject).schema("settings")
                                                               : Provider::load(subject).schema("settings");
    if (trace.status != DRIFTD_OK || trace.pushed.size() != 1)
      throw RuleBroken("schema(\"settings\") answered " + trace.why());
    return trace.pushed.front();
  });
}

/// Fills settings and secrets of the subject. Returns an error if they are wrong.
Status load_settings(const Arguments& args, Subject& subject, std::vector<std::string>& notes) {
  const Outcome schema = ask_schema(subject);
  const bool known = schema.ending == Ending::passed;
  if (!known) notes.push_back("the settings schema is not known, so settings are not validated: " + schema.text);
  Settings settings = default_settings(known ? schema.text : "{}");
  if (!args.settings.empty()) {
    DRIFTD_TRY(const std::string text, read_text(args.settings));
    DRIFTD_TRY(settings, read_settings(text, args.settings, known ? schema.text : "", args.seed, subject.plugin));
  }
  subject.settings_json = std::move(settings.json);
  subject.no_settings = std::move(settings.missing);
  subject.secrets = std::move(settings.secrets);
  return {};
}

int refuse(const std::string& why) {
  std::fprintf(stderr, "driftd-check: %s\n", safe(why).c_str());
  return kWrongCommandLine;
}

/// Prints the text and returns `code`. Returns kWrongCommandLine if not all of the text could be written.
int print(const std::string& text, int code) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return code;
  return refuse(fmt::format("the report could not be written to standard output: {}; the run had ended with {}",
                            std::strerror(errno), code));
}

/// Makes sure that descriptors 0 to 2 are open and that enough others are available; otherwise a check would blame the
/// provider for a shortage of ours.
Status prepare_descriptors() {
  constexpr rlim_t kWanted = 1024, kMinimum = 256;
  if (::fcntl(STDOUT_FILENO, F_GETFD) < 0) {
    return fail(Code::invalid, "standard output is closed, and the report goes there; open it (`> report.txt`)");
  }
  for (const int fd : {STDIN_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);  // opens as the lowest free descriptor
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < kWanted) {
    limit.rlim_cur = std::min(kWanted, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= kMinimum) return {};
  return fail(Code::invalid,
              fmt::format("the limit of open files: expected at least {}, found {}; raise it (ulimit -n {})", kMinimum,
                          limit.rlim_cur, kWanted));
}

Outcome not_run() { return {Ending::not_made, fmt::format("{} came before it was run", interrupted()), {}, {}}; }

Run run_all(const std::vector<Check>& checks, const Subject& subject, std::vector<std::string> notes) {
  const bool progress = ::isatty(STDERR_FILENO) == 1;
  Run out{subject.file, subject.seed, std::move(notes), {}};
  for (const auto& check : checks) {
    if (progress) std::fprintf(stderr, "\r\x1b[K[%zu/%zu] %s", out.checks.size() + 1, checks.size(), check.id);
    out.checks.push_back({check, interrupted() == nullptr ? run_check(check, subject) : not_run()});
  }
  if (progress) std::fputs("\r\x1b[K", stderr);
  return out;
}

/// Returns the kind that the file's exported symbols name. A file that cannot be read is checked as a provider.
PluginKind kind_of(const std::string& file) {
  const Outcome read = run_in_child(kSchemaLimit, [&] {
    std::string names = "\n";
    for (const auto& name : read_elf(file).exported) names += name + '\n';
    return names;
  });
  const auto exports = [&](PluginKind kind) {
    return read.text.find('\n' + std::string(entry_symbol(kind)) + '\n') != std::string::npos;
  };
  const bool sink = read.ending == Ending::passed && exports(PluginKind::sink) && !exports(PluginKind::provider);
  return sink ? PluginKind::sink : PluginKind::provider;
}

/// Fills file, kind, seed and answer of the subject. Without a plugin (--list) its file stays empty.
Status find_plugin(const Arguments& args, Subject& subject) {
  subject.seed = args.seed;
  subject.answer = args.answer;
  subject.plugin = args.sink ? PluginKind::sink : PluginKind::provider;
  if (args.plugin.empty()) return {};
  std::error_code failed;
  subject.file = std::filesystem::canonical(args.plugin, failed).string();
  if (failed) {
    return fail(Code::invalid, fmt::format("{}: {}; give the path of a plugin's .so", args.plugin, failed.message()));
  }
  if (!args.sink) subject.plugin = kind_of(subject.file);
  if (subject.plugin == PluginKind::sink || args.answer.empty()) return {};
  return fail(Code::invalid, fmt::format("--answer: expected a sink, found a provider ({})", args.plugin));
}

int run_with(Arguments& args) {
  if (const auto ready = prepare_descriptors(); !ready) return refuse(ready.error().message);
  if (const auto taken = parse_seed(args); !taken) return refuse(taken.error().message);
  if (const auto taken = parse_answer(args.answer); !taken) return refuse(taken.error().message);
  watch_interrupts();
  Subject subject;
  if (const auto found = find_plugin(args, subject); !found) return refuse(found.error().message);
  const auto checks = select_checks(all_checks(subject.plugin), args.only);
  if (!checks) return refuse(checks.error().message);
  if (args.list) return print(args.json ? list_json(*checks) : list_text(*checks), 0);
  if (subject.file.empty()) return refuse("no plugin given; usage: driftd-check plugin.so [--settings FILE]");
  std::vector<std::string> notes;
  if (const auto given = load_settings(args, subject, notes); !given) return refuse(given.error().message);
  std::optional<SocketFolder> sockets;
  if (subject.plugin == PluginKind::sink && names_unix_address(subject.settings_json))
    subject.socket_folder = sockets.emplace().path();
  const Run done = run_all(*checks, subject, std::move(notes));
  return print(args.json ? render_json(done) : args.junit ? render_junit(done) : render_text(done), exit_code(done));
}

}  // namespace

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker does the same
  CLI::App app(
      "driftd-check: an adversarial host for a plugin of driftd, a provider or a sink. It loads the plugin and treats "
      "it worse than the agent ever will. docs/driftd-check.md explains each check.");
  Arguments args;
  app.set_version_flag("--version", "driftd-check " DRIFTD_VERSION);
  add_options(app, args);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kWrongCommandLine;
  }
  try {
    return run_with(args);
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
}

}  // namespace driftd::check
