// SPDX-License-Identifier: Apache-2.0
// Reads agent.programs and `${exec:…}`.
#include "config/programs.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/trust.hpp"
#include "config/secrets.hpp"
#include "config/section.hpp"

namespace driftd::config {
namespace {

using std::chrono::milliseconds;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Returns true for a pipe, a list, a redirection or a substitution, which only a shell would understand.
bool is_for_a_shell(const std::string& word) {
  return word.find_first_of("|&;<>") == 0 || word.starts_with("2>") || word.find("$(") != std::string::npos ||
         word.find('`') != std::string::npos;
}

/// Splits one command line.
struct Splitter {
  std::string_view text;
  std::size_t at = 0;
  std::string word;
  bool quoted = false;  // part of this word was quoted

  /// Reads the rest of a quotation. Returns false if it is not closed.
  bool quotation(char mark) {
    for (quoted = true; at < text.size() && text[at] != mark; ++at) {
      if (mark == '"' && text[at] == '\\' && ++at == text.size()) return false;
      word += text[at];
    }
    return at++ < text.size();
  }
  /// Reads the rest of the word. Returns an error, or empty text.
  std::string rest() {
    while (at < text.size() && !is_blank(text[at])) {
      const char c = text[at++];
      if (c == '\\' && at == text.size()) return "it ends in a backslash";
      if (c == '\'' || c == '"') {
        if (!quotation(c)) return std::string("a quote (") + c + ") is not closed";
      } else if (c == '\\') {
        quoted = true;
        word += text[at++];
      } else {
        word += c;
      }
    }
    return !quoted && is_for_a_shell(word)
               ? "'" + word +
                     "' is shell syntax, but no shell runs this command; quote it, or put the command into a script"
               : "";
  }
};

bool is_name(std::string_view name) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  return !name.empty() && letter(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), [&](unsigned char c) { return letter(c) || std::isdigit(c) != 0; });
}

std::vector<std::string> read_environment(Section& section) {
  std::vector<std::string> out;
  const auto items = section.items("env");
  for (const Node* item : items) {
    const auto text = plain_text(section.report(), *item, "an item of 'env' of " + section.title());
    if (!text) continue;
    const std::string name = text->substr(0, text->find('='));
    if (!is_name(name)) {
      section.report().error(item->at, "'env' of " + section.title() + " is wrong",
                             "names of variables: NAME passes the "
                             "agent's own on, NAME=value sets it",
                             "'" + name + "'");
    } else if (name != *text && is_secret_name(name)) {
      section.report().warn(item->at, "a secret is in clear text in 'env' of " + section.title(),
                            "write " + name + " alone and set it in the environment of the agent");
    }
    out.push_back(*text);
  }
  return out;
}

}  // namespace

tl::expected<std::vector<std::string>, std::string> split_command(std::string_view text) {
  std::vector<std::string> out;
  Splitter splitter{text};
  for (;;) {
    while (splitter.at < text.size() && is_blank(text[splitter.at])) ++splitter.at;
    if (splitter.at == text.size()) return out;
    splitter.word.clear();
    splitter.quoted = false;
    if (std::string fault = splitter.rest(); !fault.empty()) return tl::unexpected(std::move(fault));
    out.push_back(splitter.word);
  }
}

Status check_program(const std::string& path) {
  const ResolvedPath resolved = resolve_path(path);
  if (resolved.error != 0) {
    const Code code = resolved.error == ENOENT || resolved.error == ENOTDIR ? Code::not_found : Code::denied;
    return fail(code, path + " cannot be run: " + std::strerror(resolved.error));
  }
  for (const auto& step : resolved.steps) {
    if (const std::string why = tamper_risk(step); !why.empty())
      return fail(Code::denied, path + " is not run, because " + why);
  }
  if (!S_ISREG(resolved.steps.back().st.st_mode))
    return fail(Code::invalid, path + " is not a regular file, so it cannot be run");
  // for root, access(2) succeeds for any file on some systems
  const bool bits = (resolved.steps.back().st.st_mode & 0111) != 0;
  if (bits && ::access(path.c_str(), X_OK) == 0) return {};
  return fail(Code::denied, path + " is not executable by uid " + std::to_string(::geteuid()));
}

std::vector<Program> read_programs(Section& agent) {
  std::vector<Program> out;
  const auto items = agent.items("programs");
  for (const Node* item : items) {
    Section section(agent.report(), item, "agent.programs[]", "a program of 'agent'");
    Program program;
    program.path = section.required_text("path", "the absolute path of a program");
    program.environment = read_environment(section);
    program.timeout = section.duration("timeout", program.timeout, milliseconds(100), milliseconds(60'000));
    program.refresh = section.duration("refresh", program.refresh, milliseconds(500), milliseconds(86'400'000));
    section.close();
    const auto same = [&](const Program& other) { return other.path == program.path; };
    if (!program.path.empty() && program.path.front() != '/') {
      agent.report().error(section.at("path"), "program '" + program.path + "' is not an absolute path",
                           "/path/to/program");
    } else if (std::any_of(out.begin(), out.end(), same)) {
      agent.report().error(section.at("path"), "program " + program.path + " occurs twice in 'programs'",
                           "each path once");
    }
    out.push_back(std::move(program));
  }
  return out;
}

// The part of SettingsReader that reads `${exec:…}`.

SettingsReader::Pair SettingsReader::convert_program(const Node& node, const std::string& path) {
  constexpr std::string_view kOpen = "${exec:";
  const auto command =
      split_command(std::string_view(node.text).substr(kOpen.size(), node.text.size() - kOpen.size() - 1));
  const std::string token = make_token(path);
  const Pair out{core::Value(token), core::Value(node.text)};
  if (programs_ == nullptr) {
    report_.error(node.at, "${exec:…} in a sink", "${file:…}, ${env:…} or ${credential:…}", "",
                  "programs run for settings of backends only: a sink keeps the secret that it was opened with");
  } else if (programs_->empty()) {
    report_.error(node.at, "${exec:…} is off: agent.programs names no program that may run",
                  "a reference that runs no program", "",
                  "list the program in agent.programs, or use ${file:…}, ${env:…} or ${credential:…}");
  } else if (!command) {
    report_.error(
        node.at, "the command of ${exec:…} cannot be read: " + command.error(),
        "an absolute path and arguments; an argument with blanks stands in '…' or \"…\", or has \\ before each blank");
  } else if (command->empty()) {
    report_.error(node.at, "a secret reference that names nothing", "${exec:/path/to/program arguments}");
  } else if (const Program* program = find_program(node, command->front()); program != nullptr) {
    for (const auto& word : *command) {
      if (!holds_credentials(word)) continue;
      report_.warn(node.at,
                   "a secret is in clear text in the command of setting '" + path.substr(1) + "' of '" + owner_ + "'",
                   "let the program take it from a file or from its environment");
    }
    out_.programs.push_back({owner_, path.substr(1), token, *command, *program, node.at});
    out_.references.push_back({owner_, node.text, CredentialUse::Kind::program, {}, {}});
  }
  return out;
}

const Program* SettingsReader::find_program(const Node& node, const std::string& path) {
  std::vector<std::string> known;
  for (const auto& program : *programs_) known.push_back(program.path);
  if (!path.starts_with('/')) {
    report_.error(node.at, "program '" + path + "' is not an absolute path", one_of(known));
    return nullptr;
  }
  const auto found = std::find(known.begin(), known.end(), path);
  if (found == known.end()) {
    report_.error(node.at, "program " + path + " may not run: it is not in agent.programs", one_of(known), "",
                  suggest(path, known));
    return nullptr;
  }
  const Status usable = options_.resolve_secrets ? check_program(path) : Status{};
  if (!usable) {
    report_.error(node.at, "program " + usable.error().message,
                  "an executable file in the hands of root or the agent's user");
    return nullptr;
  }
  return &(*programs_)[static_cast<std::size_t>(found - known.begin())];
}

}  // namespace driftd::config
