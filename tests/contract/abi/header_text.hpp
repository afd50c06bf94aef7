// SPDX-License-Identifier: Apache-2.0
// Parses the ABI's headers as text: each declaration with the comment that explains it.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace driftd::test {

/// Returns the paths of provider.h, which is the first, and of ext/*.h.
std::vector<std::string> abi_headers();
std::string without_comments(const std::string& text);

/// A function pointer (member or typedef) or an exported function.
struct DeclaredFunction {
  std::string name, returns, parameters;
  std::string comment;  ///< right before it; empty if there is none
};
std::vector<DeclaredFunction> functions_of(const std::string& header);

struct DeclaredMember {
  std::string type, name;
  std::string comment;  ///< behind it or right before it; empty if there is none
};
struct DeclaredStruct {
  std::string name;
  std::vector<DeclaredMember> members;
};
std::vector<DeclaredStruct> structs_of(const std::string& header);

struct DeclaredNumber {
  std::string name, value, comment;
};
/// Returns the macros that are defined as a number.
std::vector<DeclaredNumber> numbers_of(const std::string& header);

/// Returns the tags of a comment that say on which thread a function runs: `pure` of `[pure]`, `call` of `[call]`.
std::vector<std::string> thread_tags(const std::string& comment);
/// Returns the tags of a comment that say how long a pointer is valid: `call` of `{call}`, `process` of `{process}`.
std::vector<std::string> lifetimes(const std::string& comment);
/// Returns the statuses that a comment lists behind `->`: the words in capitals, and the names of sets of statuses,
/// `common` and `emit`. What is in parentheses does not count.
std::set<std::string> answers(const std::string& comment);

}  // namespace driftd::test
