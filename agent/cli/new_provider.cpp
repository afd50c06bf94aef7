// SPDX-License-Identifier: Apache-2.0
// `driftd new-provider` writes the example provider of a language under another name, with driftd's headers beside it.
#include <CLI/CLI.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/command.hpp"
#include "new_provider_templates.hpp"

namespace driftd::cli {
namespace {

namespace fs = std::filesystem;
/// The name of the example providers. Their files use this word for nothing else.
constexpr std::string_view kExample = "files";
constexpr std::size_t kMaxNameLength = 40;

struct ProjectOptions {
  std::string name, language, folder;
};

bool is_name(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= kMaxNameLength && text[0] >= 'a' && text[0] <= 'z' &&
         std::all_of(text.begin(), text.end(), plain);
}

/// Returns the nearest allowed name. Empty if no character is left.
std::string nearest_name(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool letter = lower >= 'a' && lower <= 'z';
    if (out.empty() && !letter) continue;  // the name must begin with a letter
    const bool plain = letter || (lower >= '0' && lower <= '9');
    if (plain) out += lower;
    if (!plain && out.back() != '-') out += '-';
  }
  out.resize(std::min(out.size(), kMaxNameLength));
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

/// Replaces the example's name by `name` wherever it is a word of its own.
std::string renamed(std::string_view text, const std::string& name) {
  std::string out;
  std::size_t from = 0;
  for (auto at = text.find(kExample); at != std::string_view::npos; at = text.find(kExample, at + 1)) {
    const std::size_t end = at + kExample.size();
    if ((at > 0 && in_word(text[at - 1])) || (end < text.size() && in_word(text[end]))) continue;
    out.append(text.substr(from, at - from)).append(name);
    from = end;
  }
  return out.append(text.substr(from));
}

/// Renames `files.c` to `acme.c` and `files_test.go` to `acme_test.go`. Other paths stay.
std::string renamed_path(std::string_view path, const std::string& name) {
  const bool own = path.starts_with(kExample) && path.size() > kExample.size() && !std::isalnum(path[kExample.size()]);
  return own ? name + std::string(path.substr(kExample.size())) : std::string(path);
}

Outcome<void> write(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream out(file, std::ios::binary);
  out << text << std::flush;
  if (!error && out) return {};
  return tl::unexpected(Failure{kFinding, "cannot write " + file.string() + ": " +
                                              std::generic_category().message(error ? error.value() : errno)});
}

/// Writes the project and returns the paths of its files. Fails without writing if the folder is not empty.
Outcome<std::vector<std::string>> write_project(const ProjectOptions& options) {
  std::error_code error;
  if (fs::exists(options.folder, error) && !fs::is_empty(options.folder, error)) {
    return tl::unexpected(Failure{kFinding, "'" + options.folder + "' exists and is not empty: nothing was written. " +
                                                "Choose another folder with --dir, or remove it"});
  }
  std::vector<std::string> written;
  for (const auto& one : kTemplates) {
    if (one.language != options.language) continue;
    const std::string path = renamed_path(one.path, options.name);
    if (auto done = write(fs::path(options.folder) / path, renamed(one.text, options.name)); !done) {
      return tl::unexpected(done.error());
    }
    written.push_back(path);
  }
  return written;
}

int create(const Context& context, ProjectOptions options) {
  if (!is_name(options.name)) {
    const std::string meant = nearest_name(options.name);
    return context.fail(kUsage, "'" + options.name +
                                    "' cannot be a provider's name: expected a-z, 0-9 and '-', at most " +
                                    std::to_string(kMaxNameLength) + ", the first one a letter" +
                                    (meant.empty() ? "" : "; try `" + meant + "`"));
  }
  if (options.folder.empty()) options.folder = options.name;
  const auto written = write_project(options);
  if (!written) return context.fail(written.error());
  if (context.json()) {
    core::Value::Array paths(written->begin(), written->end());
    context.out() << json_text(core::Value::Object{{"folder", core::Value(options.folder)},
                                                   {"files", core::Value(std::move(paths))}})
                  << "\n";
    return kOk;
  }
  context.out() << "wrote " << written->size() << " files into " << options.folder << "; next:\n"
                << "  cd " << options.folder << "\n"
                << "  make                      # build/" << options.name << ".so\n"
                << "  make test                 # its unit test, then driftd-check\n"
                << "  make install DIR=FOLDER   # a folder of agent.plugin_dirs\n"
                << "README.md has its settings, permissions and limits.\n";
  return kOk;
}

}  // namespace

void add_new_provider(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("new-provider", "write a provider that builds, with a test, to start your own from");
  auto options = std::make_shared<ProjectOptions>();
  command->add_option("NAME", options->name, "its id and type: a-z, 0-9 and '-'")->required();
  command->add_option("--lang", options->language, "c, cpp, rust or go")
      ->required()
      ->check(CLI::IsMember({"c", "cpp", "rust", "go"}));
  command->add_option("--dir", options->folder, "the folder to make; default ./NAME");
  command->callback([&context, options] { context.exit = create(context, *options); });
}

}  // namespace driftd::cli
