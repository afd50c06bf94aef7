// SPDX-License-Identifier: Apache-2.0
// References to one thing in several forms, and versions of several depths: equality that is no normal form.
#include <algorithm>

#include "core/value/types.hpp"

namespace driftd::core {
namespace types {
namespace {

struct Form {
  std::string text;
  std::string_view separators;
};

/// `arn:aws:iam::123456789012:root` is the account 123456789012.
std::string arn(std::string_view text) {
  if (!text.starts_with("arn:") || !text.ends_with(":root")) return std::string(text);
  const auto iam = text.find(":iam::");
  if (iam == std::string_view::npos) return std::string(text);
  const auto account = text.substr(iam + 6, text.size() - iam - 6 - 5);
  return all_digits(account) ? std::string(account) : std::string(text);
}

bool is_api_version(std::string_view segment) {
  if (segment == "beta" || segment == "alpha") return true;
  return segment.size() > 1 && segment[0] == 'v' && segment[1] >= '0' && segment[1] <= '9';
}

/// A self link without scheme, host and the version of the API.
std::string path(std::string_view text) {
  const bool link = text.find("://") != std::string_view::npos;
  if (const auto scheme = text.find("://"); scheme != std::string_view::npos) {
    const auto slash = text.find('/', scheme + 3);
    text = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  }
  if (text.starts_with("//")) text.remove_prefix(std::min(text.find('/', 2), text.size()));
  std::string out;
  int number = 0;  // of the segment; the API's version is the first or second of a link: /compute/v1/projects/…
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('/', at), text.size());
    const auto segment = text.substr(at, end - at);
    const bool version = link && number++ < 2 && is_api_version(segment);
    if (!segment.empty() && !version) out += (out.empty() ? "" : "/") + std::string(segment);
    at = end + 1;
  }
  return out;
}

Form form_of(const std::string& unit, std::string_view text) {
  text = strip(text);
  if (unit == "arn") return {arn(text), ":/"};
  if (unit == "path") return {path(text), "/"};
  if (unit == "azure") {
    std::string out = lower(text);
    while (out.ends_with('/')) out.pop_back();
    return {out, "/"};
  }
  return {std::string(text), "."};
}

bool is_tail(const Form& longer, const Form& shorter) {
  if (shorter.text.empty() || shorter.text == "*" || !longer.text.ends_with(shorter.text)) return false;
  const auto begin = longer.text.size() - shorter.text.size();
  return begin == 0 || longer.separators.find(longer.text[begin - 1]) != std::string_view::npos;
}

/// `1.2` and `1.2.7`: equal as far as both go. Normal forms without their closing quotes.
bool same_as_far(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (b.size() == a.size() || b[a.size()] == '.');
}

}  // namespace

Result<std::string> reference(std::string_view text, const std::string& unit) {
  return render(Value(form_of(unit, text).text));
}

std::string last_part(std::string_view text, const std::string& unit) {
  const Form form = form_of(unit, text);
  const auto at = form.text.find_last_of(form.separators);
  return at == std::string::npos ? form.text : form.text.substr(at + 1);
}

}  // namespace types

bool equivalent(const AttributeRule& rule, const Value& a, const Value& b) {
  const bool reference = rule.type == ValueType::reference;
  if (rule.dialect < 2 || (!reference && (rule.type != ValueType::version || rule.unit != "declared"))) return false;
  const auto first = types::scalar_text(a), second = types::scalar_text(b);
  if (!first || !second) return false;
  const std::string one = types::fold_and_trim(rule, *first), other = types::fold_and_trim(rule, *second);
  if (reference) {
    const auto left = types::form_of(rule.unit, one), right = types::form_of(rule.unit, other);
    return types::is_tail(left, right) || types::is_tail(right, left);
  }
  auto left = types::version(one, rule.unit), right = types::version(other, rule.unit);
  if (!left || !right) return false;
  left->pop_back();  // the closing quote
  right->pop_back();
  return types::same_as_far(*left, *right);
}

bool names_no_version(const AttributeRule& rule, const Value& value) {
  if (rule.type != ValueType::version || rule.unit != "declared" || value.string() == nullptr) return false;
  const std::string text = types::lower(types::strip(*value.string()));
  return text.empty() || text == "latest";
}

}  // namespace driftd::core
