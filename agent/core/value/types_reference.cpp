// SPDX-License-Identifier: Apache-2.0
// References to one thing in several forms, and versions of several depths: equality that is no normal form.
#include <algorithm>
#include <optional>

#include "base/digest.hpp"
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

/// How an image of Google Cloud is named: `projects/p/global/images/x` is one image, with `family/` before its name the
/// newest one of a family, and `p/x` and `x` may be either.
struct ImageName {
  enum class Kind { image, family, either } kind = Kind::either;
  std::string_view project, name;  ///< project: empty if it is not named
};

std::optional<ImageName> image_name(std::string_view text) {
  if (text.starts_with("compute/projects/")) text.remove_prefix(8);
  ImageName out;
  const auto last = text.rfind('/');
  out.name = text.substr(last == std::string_view::npos ? 0 : last + 1);
  std::string_view folder = text.substr(0, last == std::string_view::npos ? 0 : last);
  if (out.name.empty()) return std::nullopt;
  const auto take_end = [&](std::string_view end) {
    const bool whole = folder == end || (folder.ends_with(end) && folder[folder.size() - end.size() - 1] == '/');
    if (whole) folder.remove_suffix(std::min(folder.size(), end.size() + 1));
    return whole;
  };
  if (folder == "family" || take_end("global/images/family")) {
    out.kind = ImageName::Kind::family;
    if (folder == "family") folder = {};
  } else if (take_end("global/images")) {
    out.kind = ImageName::Kind::image;
  }
  const bool prefixed = folder.starts_with("projects/");
  if (prefixed) folder.remove_prefix(9);
  const bool needed = out.kind != ImageName::Kind::either && !folder.empty();  // `p/global/images/x` is no name
  if (prefixed != needed || folder.find('/') != std::string_view::npos) return std::nullopt;
  out.project = folder;
  return out;
}

/// A family is continued by its images: `debian-cloud/debian-12` by
/// `projects/debian-cloud/global/images/debian-12-bookworm-v20260210`.
bool is_same_image(std::string_view a, std::string_view b) {
  using Kind = ImageName::Kind;
  auto one = image_name(a), other = image_name(b);
  if (!one || !other) return a == b;
  if (one->kind == Kind::image) std::swap(one, other);
  if (!one->project.empty() && !other->project.empty() && one->project != other->project) return false;
  const bool one_family = one->kind == Kind::family && other->kind == Kind::image;
  if (one->name == other->name) return !one_family;
  return one->kind != Kind::image && other->kind == Kind::image && other->name.starts_with(one->name) &&
         other->name[one->name.size()] == '-';
}

/// `www` is a name relative to a zone, such as `www.example.com`. Of two longer names none is relative.
bool is_relative_of(const Form& longer, const Form& label) {
  return !label.text.empty() && label.text.find_first_of(".@") == std::string::npos &&
         longer.text.starts_with(label.text + ".");
}

bool is_same(const std::string& unit, const Form& a, const Form& b) {
  if (unit == "image") return is_same_image(a.text, b.text);
  if (unit == "domain") return a.text == b.text || is_relative_of(a, b) || is_relative_of(b, a);
  return is_tail(a, b) || is_tail(b, a);
}

std::string_view take_part(std::string_view& rest) {
  const auto dot = std::min(rest.find('.'), rest.size());
  const auto part = rest.substr(0, dot);
  rest.remove_prefix(std::min(rest.size(), dot + 1));
  return part;
}
bool is_wildcard(std::string_view part) { return part == "x" || part == "*"; }

/// Returns how many numbers a version has before its wildcards: 2 for `3.7.x`. 0 if it is none of that form.
std::size_t numbers_before_wildcards(std::string_view version) {
  std::size_t numbers = 0;
  bool wild = false;
  while (!version.empty()) {
    const auto part = take_part(version);
    if (is_wildcard(part) ? numbers == 0 : wild || !all_digits(part)) return 0;
    wild = is_wildcard(part);
    numbers += wild ? 0 : 1;
  }
  return wild ? numbers : 0;
}

/// `1.2` and `1.2.7` are equal as far as both go. A wildcard of the expected version is any number. Normal forms
/// without their quotes.
bool same_as_far(std::string_view expected, std::string_view found) {
  const auto numbers = numbers_before_wildcards(expected);
  for (std::size_t at = 0; !expected.empty() && !found.empty(); ++at) {
    const auto one = take_part(expected), other = take_part(found);
    const bool any_number = numbers > 0 && at >= numbers;
    if (any_number ? !all_digits(other.substr(0, 1)) : one != other) return false;
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

namespace {

/// Longer texts are not hashed: they could be compared with many.
bool is_digest_of(DigestForm form, const std::string& digest, const std::string& text) {
  constexpr std::size_t kMaxText = 64u << 10, kSha1Digits = 40, kSha256Digits = 64;
  const bool sha1_form = form == DigestForm::sha1;
  if (digest.size() != (sha1_form ? kSha1Digits : kSha256Digits) || text.size() > kMaxText) return false;
  return digest == to_hex(sha1_form ? sha1(text) : sha256(text));
}

}  // namespace

bool accepts(const AttributeRule& rule, const Value& before, const Value& after) {
  if (rule.accepts.empty()) return false;
  const auto one = types::scalar_text(before), other = types::scalar_text(after);
  if (!one || !other) return false;
  const auto found = rule.accepts.find(*one);
  return found != rule.accepts.end() && std::any_of(found->second.begin(), found->second.end(),
                                                    [&](const Glob& pattern) { return pattern.matches(*other); });
}

bool equivalent(const AttributeRule& rule, const Value& a, const Value& b) {
  const bool reference = rule.type == ValueType::reference;
  if (rule.digest != DigestForm::none && a.string() != nullptr && b.string() != nullptr) {
    const auto either = [&](const std::string& one, const std::string& other) {
      return is_digest_of(rule.digest, one, other) || is_digest_of(rule.digest, other, one);
    };
    const std::string &one = *a.string(), &other = *b.string();  // what was hashed may have been the text as it is
    return either(one, other) || either(types::fold_and_trim(rule, one), types::fold_and_trim(rule, other));
  }
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
