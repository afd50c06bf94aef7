// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "terraform/document.hpp"
#include "terraform/scanner.hpp"

namespace driftd::terraform {

// Walks over JSON text that a Scanner accepted. They check nothing, and read up to kPadding bytes behind the text.

/// Returns the end of the value at `at`.
const char* end_of_value(const char* at);

/// Calls `member(key, value)` for each member of the object at `at`, with the key as it stands between its quotes and
/// the first byte of the value; it returns the end of the value. Returns the end of the object.
template <class F>
const char* each_member(const char* at, F member) {
  at = behind_blanks(at + 1);
  while (*at != '}') {
    const char* end = end_of_value(at);
    const std::string_view key(at + 1, static_cast<std::size_t>(end - at - 2));
    at = behind_blanks(end);
    at = behind_blanks(member(key, behind_blanks(at + 1)));
    if (*at == ',') at = behind_blanks(at + 1);
  }
  return at + 1;
}

/// Calls `element(value)` for each element of the list at `at`; it returns the end of the value. Returns the end of the
/// list.
template <class F>
const char* each_element(const char* at, F element) {
  at = behind_blanks(at + 1);
  while (*at != ']') {
    at = behind_blanks(element(at));
    if (*at == ',') at = behind_blanks(at + 1);
  }
  return at + 1;
}

/// Returns true if a key stands twice in an object of the value at `at`. Keys with a backslash are compared as they
/// stand. The value nests at most common::kMaxNesting deep.
bool has_key_twice(const char* at);

/// Returns the text without white space between tokens: a view of `to`, which is overwritten.
std::string_view minified(std::string_view text, std::string& to);

/// Returns the parts of an entry of `instances`; its traits are not set.
InstanceText split_instance(std::string_view text);

}  // namespace driftd::terraform
