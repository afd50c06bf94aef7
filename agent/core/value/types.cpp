// SPDX-License-Identifier: Apache-2.0
// normalise(): from a rule and a value to the normal form.
#include "core/value/types.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>

#include "base/escape.hpp"
#include "core/value/parse_limits.hpp"

namespace driftd::core {
namespace types {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

std::string_view strip(std::string_view text) {
  static constexpr std::string_view kSpace = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

tl::unexpected<Error> type_mismatch(std::string_view type, std::string_view found) {
  return fail(Code::invalid, "expected " + std::string(type) + ", found '" + std::string(front(found, 64)) + "'");
}

tl::unexpected<Error> too_large(std::string what) { return fail(Code::budget, std::move(what)); }

Result<std::string> scalar_text(const Value& value) {
  if (const auto* text = value.string()) return *text;
  if (const auto* number = value.number()) return number->token;
  if (const auto* truth = value.boolean()) return std::string(*truth ? "true" : "false");
  return fail(Code::invalid, "expected a scalar, found " + std::string(value.is_null() ? "null"
                                                                       : value.array() ? "a list"
                                                                                       : "an object"));
}

/// Returns the text with \n as line ends, without trailing ones and without a byte order mark.
std::string trim_eol(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i];
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r')) out.pop_back();
  return out;
}

/// Returns the text with one space for each run of white space and none at its ends.
std::string single_spaces(std::string_view text) {
  std::string out;
  for (const char c : strip(text)) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space) out += c;
    if (space && !out.ends_with(' ')) out += ' ';
  }
  return out;
}

namespace {

/// Returns the text behind a pattern in which a star is written `\\*`. Empty for any other pattern.
std::optional<std::string> literal_star(std::string_view pattern) {
  const auto at = pattern.find("\\*");
  if (at == std::string_view::npos) return std::nullopt;
  return std::string(pattern.substr(0, at)) + "*" + std::string(pattern.substr(at + 2));
}

/// Returns how many bytes at the end of the text the pattern, which has at most one star, matches; 0 if it does not.
std::size_t matching_end(std::string_view text, std::string_view pattern) {
  if (const auto star = literal_star(pattern)) return text.ends_with(*star) ? star->size() : 0;
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return text.ends_with(pattern) ? pattern.size() : 0;
  const auto end = pattern.substr(star + 1);
  if (!text.ends_with(end)) return 0;
  const auto at = text.substr(0, text.size() - end.size()).rfind(pattern.substr(0, star));
  return at == std::string_view::npos ? 0 : text.size() - at;
}
std::size_t matching_begin(std::string_view text, std::string_view pattern) {
  if (const auto star = literal_star(pattern)) return text.starts_with(*star) ? star->size() : 0;
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return text.starts_with(pattern) ? pattern.size() : 0;
  const auto begin = pattern.substr(0, star), end = pattern.substr(star + 1);
  if (!text.starts_with(begin)) return 0;
  const auto at = text.find(end, begin.size());
  return at == std::string_view::npos ? 0 : at + end.size();
}

}  // namespace

/// Returns the text without the first of the rule's prefixes, and suffixes, that it has. Something must be left.
std::string without_ends(const AttributeRule& rule, std::string text) {
  for (const auto& prefix : rule.prefixes) {
    const auto size = matching_begin(text, prefix);
    if (size == 0 || size == text.size()) continue;
    text.erase(0, size);
    break;
  }
  for (const auto& suffix : rule.suffixes) {
    const auto size = matching_end(text, suffix);
    if (size == 0 || size == text.size()) continue;
    text.resize(text.size() - size);
    break;
  }
  return text;
}

std::string fold_and_trim(const AttributeRule& rule, std::string_view text) {
  std::string out(text);
  if (rule.dialect > 1) out = unicode_form(rule.unicode, decoded(rule.encoding, std::move(out)));
  if (rule.trim_eol) out = trim_eol(out);
  if (rule.trim_space) out = strip(out);
  if (rule.trim_runs) out = single_spaces(out);
  if (rule.trim_slash && out.size() > 1 && out.ends_with('/')) out.pop_back();
  if (rule.trim_dot && out.size() > 1 && out.ends_with('.')) out.pop_back();
  if (rule.trim_quotes && out.size() > 1 && out.starts_with('"') && out.ends_with('"'))
    out = out.substr(1, out.size() - 2);
  if (rule.fold) out = lower(out);
  return without_ends(rule, std::move(out));
}

namespace {

/// Appends to one string; returning strings would copy each of them once for every level above it.
void append_structure(std::string& out, const AttributeRule& rule, const Value& value) {
  if (const auto* text = value.string()) {
    out += render(Value(fold_and_trim(rule, *text)));
  } else if (const auto* number = value.number()) {
    out += decimal(number->token).value_or(number->token);
  } else if (const auto* array = value.array()) {
    out += '[';
    for (const auto& element : *array) {
      if (&element != array->data()) out += ',';
      append_structure(out, rule, element);
    }
    out += ']';
  } else if (const auto* object = value.object()) {
    out += '{';
    for (auto member = object->begin(); member != object->end(); ++member) {
      if (member != object->begin()) out += ',';
      out += render(Value(member->first)) + ":";
      append_structure(out, rule, member->second);
    }
    out += '}';
  } else {
    out += render(value);
  }
}

}  // namespace

std::string structure(const AttributeRule& rule, const Value& value) {
  std::string out;
  append_structure(out, rule, value);
  return out;
}

Result<std::string> boolean(const AttributeRule& rule, std::string_view text) {
  static const std::vector<std::string> kTrue = {"true", "yes", "on", "1"}, kFalse = {"false", "no", "off", "0"};
  const bool has_own_tokens = !rule.true_tokens.empty() || !rule.false_tokens.empty();
  const auto among = [word = lower(strip(text))](const std::vector<std::string>& tokens) {
    return std::any_of(tokens.begin(), tokens.end(), [&](const std::string& token) { return lower(token) == word; });
  };
  if (among(has_own_tokens ? rule.true_tokens : kTrue)) return std::string("true");
  if (among(has_own_tokens ? rule.false_tokens : kFalse)) return std::string("false");
  if (text == "true" || text == "false") return std::string(text);  // a JSON boolean, whatever the rule's own tokens
  return type_mismatch("a boolean", text);
}

/// Returns the normal form of JSON or YAML: a text is parsed, a structure is used as it is. `budget` stays, so that the
/// attribute is unknown; any other error means that the text is not of the type.
Result<std::string> document(const AttributeRule& rule, const Value& value) {
  const auto* text = value.string();
  const AttributeRule plain;
  if (text == nullptr) return structure(plain, value);
  DRIFTD_TRY(const Value parsed, read_document(rule, *text));
  return structure(plain, parsed);
}

Result<Value> read_properties(std::string_view text) {
  DRIFTD_TRY(const std::string json, properties(text));
  return parse(json);
}

Result<Value> read_text(ValueType type, const std::string& text) {
  switch (type) {
    case ValueType::json:
      return parse(text, ParseLimits{.bytes = kMaxJson, .nodes = kMaxNodes});
    case ValueType::ini:
      return ini(text);
    case ValueType::xml:
      return xml(text);
    case ValueType::hcl:
      return hcl(text);
    case ValueType::properties:
      return read_properties(text);
    default:
      return yaml(text);
  }
}

Result<Value> read_document(const AttributeRule& rule, std::string_view text) {
  auto parsed = read_text(rule.type, fold_and_trim(rule, text));
  if (parsed || parsed.error().code == Code::budget) return parsed;
  return fail(Code::invalid, parsed.error().message);
}

/// Reads a scalar's text, trimmed, as one type.
Result<std::string> read_as(ValueType type, const AttributeRule& rule, const Value& value, const std::string& text) {
  const bool second = rule.dialect > 1;
  switch (type) {
    case ValueType::integer:
      return integer(text);
    case ValueType::decimal:
      return rule.unit == "kubernetes" ? quantity(text) : decimal(text);
    case ValueType::boolean:
      return boolean(rule, text);
    case ValueType::bytes:
      return bytes(text, rule.unit);
    case ValueType::duration:
      return duration(text, rule.unit, second);
    case ValueType::percent:
      return percent(text, rule.unit);
    case ValueType::properties:
      return properties(text);
    case ValueType::pem:
      return pem(text);
    case ValueType::ssh_key:
      return ssh_key(text);
    case ValueType::url:
      return url(text);
    case ValueType::endpoint:
      return endpoint(text, rule.unit);
    case ValueType::host:
      return host(text, second);
    case ValueType::inet:
      return inet(text);
    case ValueType::cidr:
      return cidr(text, second);
    case ValueType::version:
      return version(text, rule.unit);
    case ValueType::timestamp:
      return timestamp(text, rule.unit);
    case ValueType::mode:
      return mode(text, value.number() != nullptr);
    case ValueType::cron:
      return cron(text);
    case ValueType::rate:
      return rate(text);
    case ValueType::base64:
      return base64_bytes(text);
    case ValueType::reference:
      return reference(text, rule.unit);
    case ValueType::txt:
      return txt(text);
    case ValueType::image:
      return image(text);
    case ValueType::sql:
      return sql(text);
    case ValueType::identifier:
      return sql_identifier(text);
    case ValueType::enumeration:
      return render(Value(lower(strip(text))));
    default:
      return render(Value(text));
  }
}

Result<std::string> scalar(const AttributeRule& rule, const Value& value) {
  DRIFTD_TRY(const std::string raw, scalar_text(value));
  const std::string text = fold_and_trim(rule, raw);
  if (rule.or_types.empty()) return read_as(rule.type, rule, value, text);
  std::vector<ValueType> types = rule.or_types;
  types.insert(types.begin(), rule.type);
  for (const auto type : types) {
    const auto read = read_as(type, rule, value, text);
    // with its type, because 1 second and 1000000000 are the same text
    if (read) return "[" + render(Value(std::string(name_of(type)))) + "," + *read + "]";
    if (read.error().code == Code::budget) return read;
  }
  return type_mismatch("one of its types", text);
}

}  // namespace types

namespace {

bool splits_at_commas(ValueType type) {
  return type == ValueType::endpoint || type == ValueType::host || type == ValueType::inet || type == ValueType::cidr;
}

/// Returns the elements of a collection: those of a list, the parts of `a:1,b:2`, or a single scalar.
Result<Value::Array> elements_of(const AttributeRule& rule, const Value& value) {
  if (const auto* array = value.array())
    return rule.flat ? parts_of_elements(*array, *rule.split) : Result<Value::Array>(*array);
  const auto* text = value.string();
  if (text != nullptr && rule.split) return split(*text, *rule.split);
  if (text == nullptr || !splits_at_commas(rule.type)) return Value::Array{value};
  return split(*text, ",");
}

}  // namespace

std::string join_collection(Collection collection, std::vector<std::string> parts) {
  const bool unordered =
      collection == Collection::set || collection == Collection::multiset || collection == Collection::map_by_keys;
  if (unordered) std::sort(parts.begin(), parts.end());
  if (collection == Collection::set) parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : ",") + part;
  return "[" + out + "]";
}

namespace {

Result<std::string> normal_form(const AttributeRule& rule, const Value& value) {
  const bool scalar = value.array() == nullptr && value.object() == nullptr;
  const bool single = (scalar && (rule.collection == Collection::scalar_or_list || splits_at_commas(rule.type))) ||
                      (rule.single && !value.array()) || (rule.split && value.string());
  if (rule.collection != Collection::none && !value.is_null() && (value.array() != nullptr || single)) {
    const AttributeRule element = element_rule(rule);
    std::vector<std::string> parts;
    DRIFTD_TRY(const Value::Array elements, elements_of(rule, value));
    for (const auto& part : elements) {
      DRIFTD_TRY(std::string text, normal_form(element, part));
      parts.push_back(std::move(text));
    }
    return join_collection(rule.collection, std::move(parts));
  }
  if (is_document(rule.type)) return types::document(rule, value);
  if (!rule.words.empty()) {
    const auto text = types::scalar_text(value);
    const auto word = text ? rule.words.find(types::lower(types::strip(*text))) : rule.words.end();
    if (word != rule.words.end()) return render(Value(word->second));
  }
  if (rule.type == ValueType::any || value.is_null()) return types::structure(rule, value);
  return types::scalar(rule, value);
}

}  // namespace

Result<std::string> normalise(const AttributeRule& rule, const Value& value) {
  try {
    return normal_form(rule, value);
  } catch (const std::bad_alloc&) {  // out of memory costs this attribute, not the agent
    return types::too_large("there is not enough memory to read it");
  } catch (const std::length_error&) {
    return types::too_large("it is too large to be read");
  } catch (const std::exception& error) {
    // An exception that a library throws for a value makes that attribute unknown and does not end the agent.
    return types::too_large(std::string("it cannot be read: ") + error.what());
  }
}

}  // namespace driftd::core
