// SPDX-License-Identifier: Apache-2.0
// The ABI's headers as text: what they declare, each with the comment that explains it.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace driftd::test {

/// Paths of provider.h and ext/*.h.
std::vector<std::string> abi_headers();
std::string without_comments(const std::string& text);

/// A function pointer (member or typedef) or an exported function.
struct DeclaredFunction {
  std::string name, returns, parameters;
  std::string comment;  ///< right before it; empty: none
};
std::vector<DeclaredFunction> functions_of(const std::string& header);

struct DeclaredMember {
  std::string type, name;
  std::string comment;  ///< behind it, or right before it
};
struct DeclaredStruct {
  std::string name;
  std::vector<DeclaredMember> members;
};
std::vector<DeclaredStruct> structs_of(const std::string& header);

struct DeclaredNumber {
  std::string name, value, comment;
};
/// #defines of numbers.
std::vector<DeclaredNumber> numbers_of(const std::string& header);

/// `[pure]`, `[call]` … in a comment.
std::vector<std::string> thread_tags(const std::string& comment);
/// `{call}`, `{process}` … in a comment.
std::vector<std::string> lifetimes(const std::string& comment);
/// Words in capitals, and `common`, behind `->`.
std::set<std::string> answers(const std::string& comment);

}  // namespace driftd::test
