// SPDX-License-Identifier: Apache-2.0
// Texts of one attribute, parsed as the agent's diff pool does.
#include <array>
#include <string>

#include "core/value/schema.hpp"
#include "core/value/value.hpp"
#include "fuzz/foreign/foreign.hpp"

namespace driftd::fuzz {
namespace {

using core::ValueType;

core::AttributeRule rule(ValueType type, std::string unit = "") {
  core::AttributeRule out;
  out.type = type;
  out.unit = std::move(unit);
  return out;
}

core::AttributeRule second(ValueType type) {
  core::AttributeRule out = rule(type);
  out.dialect = 2;
  return out;
}

/// A normal form is JSON and says twice the same.
void normal(const core::AttributeRule& of, std::string_view text) {
  const core::Value value{std::string(text)};
  const auto once = core::normalise(of, value);
  if (!once) return;
  require(core::parse(*once).has_value(), "a normal form is JSON");
  require(core::normalise(of, value).value_or("") == *once, "a normal form does not depend on the time of day");
}

/// A text that is UTF-8, as all that comes into the agent is.
bool is_text(std::string_view text) { return core::parse(core::render(core::Value(std::string(text)))).has_value(); }

}  // namespace

void yaml(std::string_view text) {
  if (is_text(text)) normal(rule(ValueType::yaml), text);
}

void json(std::string_view text) {
  const auto value = core::parse(text);
  if (value) {
    const auto again = core::parse(core::render(*value));
    require(again && *again == *value, "a rendered value is the value");
  }
  if (is_text(text)) normal(rule(ValueType::json), text);
}

void properties(std::string_view text) {
  if (is_text(text)) normal(rule(ValueType::properties), text);
}

void pem(std::string_view text) {
  if (is_text(text)) normal(rule(ValueType::pem), text);
}

void ssh(std::string_view text) {
  if (is_text(text)) normal(rule(ValueType::ssh_key), text);
}

void address(std::string_view text) {
  if (!is_text(text)) return;
  for (const auto type : {ValueType::url, ValueType::endpoint, ValueType::host, ValueType::inet, ValueType::cidr}) {
    auto one = rule(type);
    normal(one, text);
    one.collection = core::Collection::set;
    normal(one, text);
  }
}

void quantity(std::string_view text) {
  if (!is_text(text)) return;
  constexpr std::array kTypes = {ValueType::integer, ValueType::decimal,   ValueType::percent,
                                 ValueType::version, ValueType::timestamp, ValueType::boolean};
  for (const auto type : kTypes) normal(rule(type), text);
  normal(rule(ValueType::decimal, "kubernetes"), text);
  for (const auto* unit : {"", "postgres:8kB", "postgres:MB:real", "redis", "si", "kubernetes"})
    normal(rule(ValueType::bytes, unit), text);
  for (const auto* unit : {"", "ms", "postgres:ms", "postgres:min:real", "iso8601", "redis:s"})
    normal(rule(ValueType::duration, unit), text);
}

void hcl(std::string_view text) {
  if (is_text(text)) normal(second(ValueType::hcl), text);
}

void sql(std::string_view text) {
  if (!is_text(text)) return;
  normal(second(ValueType::sql), text);
  normal(second(ValueType::identifier), text);
}

/// The other types of dialect 2, and what is done to a text before it is read.
void words(std::string_view text) {
  if (!is_text(text)) return;
  constexpr std::array kTypes = {ValueType::txt,  ValueType::image, ValueType::xml,    ValueType::ini, ValueType::cron,
                                 ValueType::rate, ValueType::mode,  ValueType::base64, ValueType::host};
  for (const auto type : kTypes) normal(second(type), text);
  for (const auto* unit : {"arn", "path", "azure", "name", "domain", "image"}) {
    auto one = second(ValueType::reference);
    one.unit = unit;
    normal(one, text);
  }
  for (const auto encoding : {core::Encoding::base64, core::Encoding::gzip_base64, core::Encoding::percent}) {
    auto one = second(ValueType::string);
    one.encoding = encoding;
    one.unicode = core::UnicodeForm::nfkc;
    one.trim_quotes = one.trim_runs = true;
    one.prefixes = {"a*b", "x"};
    one.suffixes = {"a*b", "\\*"};
    normal(one, text);
    one.split = "";
    one.collection = core::Collection::set;
    normal(one, text);
  }
}

}  // namespace driftd::fuzz
