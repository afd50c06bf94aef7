// SPDX-License-Identifier: Apache-2.0
#include "contract/abi/header_text.hpp"

#include <algorithm>
#include <regex>

#include "support/process.hpp"

namespace driftd::test {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \n\t");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \n\t") - first + 1);
}

/// Returns the comment that ends right before `at`, with only white space between. Empty if there is none.
std::string comment_before(const std::string& text, std::size_t at) {
  const std::string before = trimmed(text.substr(0, at));
  if (!before.ends_with("*/")) return "";
  return before.substr(before.rfind("/*"));
}

/// Returns the comment that starts behind `at` on the same line. Empty if there is none.
std::string comment_behind(const std::string& text, std::size_t at) {
  const std::size_t line = text.find('\n', at), comment = text.find("/*", at);
  if (comment == std::string::npos || comment > line) return "";
  return text.substr(comment, text.find("*/", comment) + 2 - comment);
}

std::vector<std::string> all(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) out.push_back((*it)[1].str());
  return out;
}

DeclaredMember member_of(const std::string& text, std::size_t from, std::size_t end) {
  const std::string declared = trimmed(without_comments(text.substr(from, end - from)));
  const std::string behind = comment_behind(text, end);
  static const std::regex kPointer(R"(\(\*(\w+)\)\()"), kPlain(R"((\w+)$)");
  std::smatch found;
  const bool function = std::regex_search(declared, found, kPointer);
  if (!function) std::regex_search(declared, found, kPlain);
  DeclaredMember out{function ? "function" : trimmed(declared.substr(0, declared.size() - found[1].length())),
                     found[1].str(), behind};
  if (out.comment.empty()) out.comment = comment_before(text, text.find(declared.substr(0, declared.find(' ')), from));
  return out;
}

}  // namespace

std::vector<std::string> abi_headers() {
  const std::string root = DRIFTD_SOURCE_DIR "/plugin-api/include/driftd";
  std::vector<std::string> out = {root + "/provider.h"};
  for (const auto& entry : std::filesystem::directory_iterator(root + "/ext")) out.push_back(entry.path().string());
  std::sort(out.begin() + 1, out.end());
  return out;
}

std::string without_comments(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 2, "/*") == 0) {
      at = text.find("*/", at) + 2;
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::vector<DeclaredFunction> functions_of(const std::string& header) {
  std::vector<DeclaredFunction> out;
  static const std::regex kFunction(
      R"(\n *(?:typedef )?(?:DRIFTD_EXPORT )?((?:const )?\w+\*?) \(?\*?(\w+)\)?\(([^;{}]*)\);)");
  for (std::sregex_iterator it(header.begin(), header.end(), kFunction), end; it != end; ++it) {
    const auto& found = *it;
    out.push_back({found[2].str(), found[1].str(), found[3].str(),
                   comment_before(header, static_cast<std::size_t>(found.position()))});
  }
  return out;
}

std::vector<DeclaredStruct> structs_of(const std::string& header) {
  std::vector<DeclaredStruct> out;
  static const std::string kBegin = "typedef struct ";
  for (std::size_t at = header.find(kBegin); at != std::string::npos; at = header.find(kBegin, at + 1)) {
    const std::size_t brace = header.find('{', at), last = header.find("\n}", brace);
    DeclaredStruct declared{trimmed(header.substr(at + kBegin.size(), brace - at - kBegin.size())), {}};
    std::size_t from = brace + 1;
    for (std::size_t i = from; i < last; ++i) {
      if (header.compare(i, 2, "/*") == 0) i = header.find("*/", i) + 1;
      if (header[i] != ';') continue;
      declared.members.push_back(member_of(header, from, i));
      from = i + 1;
    }
    out.push_back(std::move(declared));
  }
  return out;
}

std::vector<DeclaredNumber> numbers_of(const std::string& header) {
  std::vector<DeclaredNumber> out;
  static const std::regex kDefine(R"(\n#define (DRIFTD_\w+) +(\(?-?\d+u?\)?))");
  for (std::sregex_iterator it(header.begin(), header.end(), kDefine), end; it != end; ++it) {
    const auto behind = static_cast<std::size_t>(it->position() + it->length());
    std::string comment = comment_behind(header, behind);
    if (comment.empty()) comment = comment_before(header, static_cast<std::size_t>(it->position()));
    out.push_back({(*it)[1].str(), (*it)[2].str(), comment});
  }
  return out;
}

std::vector<std::string> thread_tags(const std::string& comment) {
  return all(comment, std::regex(R"(\[(pure|serial|concurrent|call|any)\])"));
}

std::vector<std::string> lifetimes(const std::string& comment) {
  return all(comment, std::regex(R"(\{(call|out|user|process|instance)\})"));
}

std::set<std::string> answers(const std::string& comment) {
  const std::size_t arrow = comment.find("->");
  if (arrow == std::string::npos) return {};
  const std::string behind = std::regex_replace(comment.substr(arrow), std::regex(R"(\([^)]*\))"), "");
  const auto words = all(behind, std::regex(R"(\b([A-Z]{2,}[A-Z_]*|common|emit)\b)"));
  return {words.begin(), words.end()};
}

}  // namespace driftd::test
