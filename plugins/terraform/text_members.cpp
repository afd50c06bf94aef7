// SPDX-License-Identifier: Apache-2.0
#include "terraform/text_members.hpp"

#include <simdjson.h>
#include <algorithm>
#include <vector>

#include "driftd/sdk/types.hpp"

namespace driftd::terraform {
namespace {

const char* end_of_quoted(const char* at) {
  for (++at;; at += 2) {  // an escape of more than two bytes goes on with plain ones
    at = end_of_plain(at);
    if (*at == '"') return at + 1;
  }
}

const char* look_for_twice(const char* at, bool& twice) {
  if (*at == '[') return each_element(at, [&twice](const char* element) { return look_for_twice(element, twice); });
  if (*at != '{') return end_of_value(at);
  std::vector<std::string_view> keys;
  at = each_member(at, [&](std::string_view key, const char* value) {
    keys.push_back(key);
    return look_for_twice(value, twice);
  });
  std::sort(keys.begin(), keys.end());
  twice = twice || std::adjacent_find(keys.begin(), keys.end()) != keys.end();
  return at;
}

}  // namespace

const char* end_of_value(const char* at) {
  if (*at == '"') return end_of_quoted(at);
  if (*at != '{' && *at != '[') {
    while (*at > ' ' && *at != ',' && *at != '}' && *at != ']' && *at != ':') ++at;
    return at;
  }
  for (std::size_t depth = 0;;) {
    const char c = *at;
    if (c == '"') {
      at = end_of_quoted(at);
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
}

bool has_key_twice(const char* at) {
  bool twice = false;
  look_for_twice(at, twice);
  return twice;
}

std::string_view minified(std::string_view text, std::string& to) {
  if (to.size() < text.size() + kPadding) to.resize(text.size() + kPadding);
  std::size_t size = 0;
  if (simdjson::minify(text.data(), text.size(), to.data(), size) != simdjson::SUCCESS)
    throw sdk::Failure(DRIFTD_INTERNAL, "a part of the state was accepted and then could not be minified");
  return std::string_view(to).substr(0, size);
}

InstanceText split_instance(std::string_view text) {
  InstanceText out;
  out.text = text;
  each_member(text.data(), [&out](std::string_view key, const char* value) {
    const char* end = end_of_value(value);
    const bool escaped = key.find('\\') != key.npos;
    const auto part = part_of(escaped ? text_value({key.data() - 1, key.size() + 2}) : key);
    if (part != nullptr) out.*part = {value, static_cast<std::size_t>(end - value)};
    return end;
  });
  return out;
}

}  // namespace driftd::terraform
