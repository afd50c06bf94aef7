// SPDX-License-Identifier: Apache-2.0
#include "terraform/cursor.hpp"

#include <nlohmann/json.hpp>

namespace driftd::terraform {

using nlohmann::json;

std::string render(const Cursor& cursor, const std::string& fingerprint) {
  const Head& head = cursor.head;
  return json{{"settings", fingerprint}, {"stamp", cursor.stamp},   {"history", cursor.history},    {"lineage", head.lineage},
              {"serial", head.serial},   {"digest", head.digest}, {"encrypted", head.encrypted}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Cursor parse_cursor(const std::string& text, const std::string& fingerprint) {
  const json from = json::parse(text, nullptr, false);
  if (!from.is_object() || text_of(from, "settings") != fingerprint) return {};
  Cursor out;
  out.stamp = text_of(from, "stamp");
  out.history = text_of(from, "history");
  out.head.lineage = text_of(from, "lineage");
  out.head.serial = text_of(from, "serial");
  out.head.digest = text_of(from, "digest");
  const auto encrypted = from.find("encrypted");
  out.head.encrypted = encrypted != from.end() && *encrypted == true;
  return out;
}

}  // namespace driftd::terraform
