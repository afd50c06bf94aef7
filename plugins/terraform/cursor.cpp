// SPDX-License-Identifier: Apache-2.0
#include "terraform/cursor.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <nlohmann/json.hpp>

namespace driftd::terraform {

using nlohmann::json;

namespace {

/// A cursor that was damaged on its way must not say "unchanged".
std::string sum_of(std::string_view text) { return std::to_string(XXH3_64bits(text.data(), text.size())); }

/// The member that holds the digest. It gets another name when the digest is made in another way: a former digest
/// counts as unknown then, not as that of other resources. `digest`: of the parts as nlohmann's dump wrote them.
constexpr const char* kDigest = "digest2";

constexpr std::size_t kMaxSpoken = 200;  // a cursor may have 64 KiB, a backend's name 128 bytes

}  // namespace

std::string render(const Cursor& cursor, const std::string& fingerprint) {
  const Head& head = cursor.head;
  json reported_backends = json::array();
  for (auto name = cursor.reported_backends.begin();
       name != cursor.reported_backends.end() && reported_backends.size() < kMaxSpoken; ++name)
    reported_backends.push_back(*name);
  const std::string text =
      json{{"settings", fingerprint},     {"stamp", cursor.stamp},      {"history", cursor.history},
           {"lineage", head.lineage},     {"serial", head.serial},      {kDigest, head.digest},
           {"encrypted", head.encrypted}, {"spoken", reported_backends}}
          .dump(-1, ' ', false, json::error_handler_t::replace);
  return sum_of(text) + " " + text;
}

Cursor parse_cursor(const std::string& text, const std::string& fingerprint) {
  const auto space = text.find(' ');
  if (space == std::string::npos || text.substr(0, space) != sum_of(std::string_view(text).substr(space + 1)))
    return {};
  const json from = json::parse(text.begin() + static_cast<std::ptrdiff_t>(space) + 1, text.end(), nullptr, false);
  if (!from.is_object() || text_of(from, "settings") != fingerprint) return {};
  Cursor out;
  out.stamp = text_of(from, "stamp");
  out.history = text_of(from, "history");
  out.head.lineage = text_of(from, "lineage");
  out.head.serial = text_of(from, "serial");
  out.head.digest = text_of(from, kDigest);
  const auto encrypted = from.find("encrypted");
  out.head.encrypted = encrypted != from.end() && *encrypted == true;
  for (const auto& name : from.value("spoken", json::array())) {
    if (name.is_string()) out.reported_backends.insert(name.get<std::string>());
  }
  return out;
}

}  // namespace driftd::terraform
