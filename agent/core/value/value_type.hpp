// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace driftd::core {

/// How an attribute's values are read before they are compared.
enum class ValueType {
  any,  // compared by structure, numbers as exact decimals
  string,
  integer,
  decimal,
  boolean,
  bytes,
  duration,
  percent,
  json,
  yaml,
  properties,
  pem,
  ssh_key,
  url,
  endpoint,
  host,
  inet,
  cidr,
  version,
  timestamp,
  enumeration,
  // dialect 2
  mode,
  cron,
  rate,
  ini,
  xml,
  base64,
  reference,
  txt,    // strings of a DNS TXT record
  image,  // of a container
  hcl,
  sql,
  identifier  // of SQL
};
std::string_view name_of(ValueType type);  ///< as schemas write it: `duration`
bool is_document(ValueType type);          ///< a text with a structure: json, yaml, ini, xml, hcl

}  // namespace driftd::core
