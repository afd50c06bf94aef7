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
  if (unit == "image") return {path(text), "/"};
  if (unit == "domain") {
    std::string out = lower(text);
    if (out.ends_with('.')) out.pop_back();
    return {out, "."};
  }
  return {std::string(text), "."};
}

bool is_tail(const Form& longer, const Form& shorter) {
  if (shorter.text.empty() || shorter.text == "*" || !longer.text.ends_with(shorter.text)) return false;
  const auto begin = longer.text.size() - shorter.text.size();
  return begin == 0 || longer.separators.find(longer.text[begin - 1]) != std::string_view::npos;
}

/// `debian-cloud/debian-12` is a family, `projects/debian-cloud/global/images/debian-12-bookworm-v20260210` one of its
/// images: the same project, and a name that begins with the family's.
bool is_image_of(const Form& image, const Form& family) {
  const auto parts = [](std::string_view text) {
    const auto slash = text.rfind('/');
    const auto folder = text.substr(0, slash == std::string_view::npos ? 0 : slash);
    return std::pair(folder, text.substr(slash == std::string_view::npos ? 0 : slash + 1));
  };
  const auto project = [](std::string_view folder) {
    if (folder.ends_with("/global/images/family")) folder.remove_suffix(21);
    if (folder.ends_with("/global/images")) folder.remove_suffix(14);
    return folder.substr(folder.rfind('/') == std::string_view::npos ? 0 : folder.rfind('/') + 1);
  };
  const auto [folder, name] = parts(image.text);
  const auto [of, begin] = parts(family.text);
  if (!name.starts_with(begin) || begin.empty()) return false;
  const bool whole = name.size() == begin.size() || name[begin.size()] == '-';
  return whole && (of.empty() || of == "family" || of == "global/images/family" || project(of) == project(folder));
}

/// `www` and `www.example.com`: one is the first labels of the other.
bool is_head(const Form& longer, const Form& shorter) {
  return !shorter.text.empty() && longer.text.starts_with(shorter.text) &&
         (longer.text.size() == shorter.text.size() || longer.text[shorter.text.size()] == '.');
}

bool is_same(const std::string& unit, const Form& a, const Form& b) {
  if (unit == "image") return is_image_of(a, b) || is_image_of(b, a);
  if (unit == "domain") return is_head(a, b) || is_head(b, a);
  return is_tail(a, b) || is_tail(b, a);
}

/// `1.2`, `1.2.7` and `1.x`: equal as far as both go. Normal forms without their quotes.
bool same_as_far(std::string_view a, std::string_view b) {
  const auto take = [](std::string_view& rest) {
    const auto dot = std::min(rest.find('.'), rest.size());
    const auto part = rest.substr(0, dot);
    rest.remove_prefix(std::min(rest.size(), dot + 1));
    return part;
  };
  while (!a.empty() && !b.empty()) {
    const auto one = take(a), other = take(b);
    if (one != other && one != "x" && one != "*" && other != "x" && other != "*") return false;
  }
  return true;
}

}  // namespace

Result<std::string> reference(std::string_view text, const std::string& unit) {
  return render(Value(form_of(unit, text).text));
}

std::string last_part(std::string_view text, const std::string& unit) {
  if (unit == "image" || unit == "domain") return {};  // the forms of one thing share no part
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
    return types::is_same(rule.unit, left, right);
  }
  auto left = types::version(one, rule.unit), right = types::version(other, rule.unit);
  if (!left || !right) return false;
  const auto unquoted = [](std::string_view text) { return text.substr(1, text.size() - 2); };
  return types::same_as_far(unquoted(*left), unquoted(*right));
}

bool names_no_version(const AttributeRule& rule, const Value& value) {
  if (rule.type != ValueType::version || rule.unit != "declared" || value.string() == nullptr) return false;
  const std::string text = types::lower(types::strip(*value.string()));
  return text.empty() || text == "latest";
}

}  // namespace driftd::core
