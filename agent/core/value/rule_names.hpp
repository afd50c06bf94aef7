// SPDX-License-Identifier: Apache-2.0
// The words with which a rule names types, collections and encodings. No other room includes this.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "core/value/attribute_rule.hpp"

namespace driftd::core {

template <class E>
struct Name {
  std::string_view name;
  E value;
  int dialect = 1;
};

inline constexpr std::array<Name<ValueType>, 33> kTypes = {{{"any", ValueType::any},
                                                            {"string", ValueType::string},
                                                            {"int", ValueType::integer},
                                                            {"decimal", ValueType::decimal},
                                                            {"bool", ValueType::boolean},
                                                            {"bytes", ValueType::bytes},
                                                            {"duration", ValueType::duration},
                                                            {"percent", ValueType::percent},
                                                            {"json", ValueType::json},
                                                            {"yaml", ValueType::yaml},
                                                            {"properties", ValueType::properties},
                                                            {"pem", ValueType::pem},
                                                            {"ssh_key", ValueType::ssh_key},
                                                            {"url", ValueType::url},
                                                            {"endpoint", ValueType::endpoint},
                                                            {"host", ValueType::host},
                                                            {"inet", ValueType::inet},
                                                            {"cidr", ValueType::cidr},
                                                            {"version", ValueType::version},
                                                            {"timestamp", ValueType::timestamp},
                                                            {"enum", ValueType::enumeration},
                                                            {"mode", ValueType::mode, 2},
                                                            {"cron", ValueType::cron, 2},
                                                            {"rate", ValueType::rate, 2},
                                                            {"ini", ValueType::ini, 2},
                                                            {"xml", ValueType::xml, 2},
                                                            {"base64", ValueType::base64, 2},
                                                            {"reference", ValueType::reference, 2},
                                                            {"txt", ValueType::txt, 2},
                                                            {"image", ValueType::image, 2},
                                                            {"hcl", ValueType::hcl, 2},
                                                            {"sql", ValueType::sql, 2},
                                                            {"identifier", ValueType::identifier, 2}}};
inline constexpr std::array<Name<Collection>, 5> kCollections = {{{"list", Collection::list},
                                                                  {"set", Collection::set},
                                                                  {"multiset", Collection::multiset},
                                                                  {"map", Collection::map_by_keys},
                                                                  {"scalar_or_list", Collection::scalar_or_list}}};
inline constexpr std::array<Name<Encoding>, 3> kEncodings = {
    {{"base64", Encoding::base64, 2}, {"gzip+base64", Encoding::gzip_base64, 2}, {"percent", Encoding::percent, 2}}};
inline constexpr std::array<Name<DigestForm>, 2> kDigestForms = {
    {{"sha1", DigestForm::sha1, 2}, {"sha256", DigestForm::sha256, 2}}};

inline constexpr std::array<Name<UnicodeForm>, 2> kUnicodeForms = {
    {{"nfc", UnicodeForm::nfc, 2}, {"nfkc", UnicodeForm::nfkc, 2}}};

template <class E, std::size_t N>
std::string_view name_of(const std::array<Name<E>, N>& names, E value) {
  const auto it = std::find_if(names.begin(), names.end(), [&](const auto& one) { return one.value == value; });
  return it == names.end() ? "?" : it->name;
}

}  // namespace driftd::core
