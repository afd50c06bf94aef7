// SPDX-License-Identifier: Apache-2.0
#include "k8s/selector.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == text.npos ? std::string_view{} : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Splits at the commas outside of parentheses.
std::vector<std::string_view> parts(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t from = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (i < text.size() && (c != ',' || depth > 0)) continue;
    out.push_back(trimmed(text.substr(from, i - from)));
    from = i + 1;
  }
  return out;
}

bool meets(std::string_view requirement, const json& labels) {
  const auto value = [&](std::string_view key) { return find(labels, {std::string(trimmed(key)).c_str()}); };
  const auto is = [&](std::string_view key, std::string_view text) { return value(key) == json(trimmed(text)); };
  if (const auto list = requirement.find('('); list != requirement.npos) {
    const auto words = trimmed(requirement.substr(0, list));
    const bool without = words.ends_with(" notin");
    const auto key = words.substr(0, words.rfind(' '));
    const auto values = parts(requirement.substr(list + 1, requirement.rfind(')') - list - 1));
    return without != std::any_of(values.begin(), values.end(), [&](auto each) { return is(key, each); });
  }
  const auto eq = requirement.find('=');
  if (eq == requirement.npos)
    return requirement.starts_with('!') ? !value(requirement.substr(1)).is_string() : value(requirement).is_string();
  const bool without = eq > 0 && requirement[eq - 1] == '!', twice = requirement.substr(eq + 1).starts_with('=');
  return without != is(requirement.substr(0, eq - (without ? 1 : 0)), requirement.substr(eq + (twice ? 2 : 1)));
}

}  // namespace

bool selects(const std::string& selector, const json& labels) {
  const auto all = parts(selector);
  return std::all_of(all.begin(), all.end(), [&](auto each) { return each.empty() || meets(each, labels); });
}

}  // namespace driftd::k8s
