// SPDX-License-Identifier: Apache-2.0
// json_schema() and the readers of the config know the same keys.
#include <gtest/gtest.h>

#include <set>

#include "config/load.hpp"
#include "core/value/value.hpp"

namespace driftd::config {
namespace {

using Keys = std::map<std::string, std::set<std::string>>;

const core::Value& follow(const core::Value& root, const core::Value& node) {
  const core::Value* ref = node.find("$ref");
  if (ref == nullptr) return node;
  return *root.find("$defs")->find(ref->string()->substr(std::string("#/$defs/").size()));
}

/// Keys of every object with fixed properties, by the readers' generic paths.
void collect(const core::Value& root, const core::Value& given, std::string path, Keys& out) {
  const core::Value& node = follow(root, given);
  const auto* own = node.find("properties");
  const auto* type = own == nullptr ? nullptr : own->find("type");
  if (type != nullptr) path += "{" + *type->find("const")->string() + "}";  // a sink: its keys depend on its type
  if (const auto* some = node.find("oneOf")) {
    for (const auto& one : *some->array()) collect(root, one, path, out);
  }
  if (const auto* items = node.find("items")) collect(root, *items, path + "[]", out);
  const auto* values = node.find("additionalProperties");
  if (values != nullptr && values->object() != nullptr) collect(root, *values, path + ".*", out);
  const auto* properties = node.find("properties");
  if (properties == nullptr) return;
  for (const auto& [name, property] : *properties->object()) {
    out[path].insert(name);
    collect(root, property, path.empty() ? name : path + "." + name, out);
  }
}

TEST(Schema, NamesExactlyTheKeysThatAreRead) {
  const auto schema = core::parse(json_schema());
  ASSERT_TRUE(schema) << schema.error().message;
  Keys written;
  collect(*schema, *schema, "", written);
  const std::string full =
      "agent: { programs: [ { path: /bin/true } ] }\n"
      "grpc: { socket: /s, tokens: [ { name: ci, token: \"${env:X}\" } ] }\n"
      "resolve: { grants: [ { uid: 1, backends: [a] } ] }\n"
      "defaults: { policy: [ { match: {}, action: auto } ], ignore: [ { path: a } ] }\n"
      "backends:\n- { name: a, provider: p, policy: [ { match: {}, action: auto } ], ignore: [ { path: a } ], expect: "
      "[ { match: {}, "
      "where: { a: 1 } } ], spoken_by: [ { source: b } ] }\n- { name: b, provider: p, policy: { config: auto }, "
      "enforce: { enabled: true } }\n"
      "sinks: { s: { type: stdout }, p: { type: plugin, plugin: x, budgets: { rss: 64MiB } }, n: { type: nats }, k: { "
      "type: kafka, bootstrap_servers: [\"h:1\"], sasl: { "
      "mechanism: PLAIN, username: u, "
      "password: p } }, d: { type: notifications }, f: { type: file, path: a }, w: { "
      "type: webhook, "
      "url: \"https://h\", secret: \"${env:X}\" }, m: { type: webhook, url: \"https://h\", format: slack } "
      "}\nnotifications: { links: { base_url: \"https://h\", sinks: [m] } }\nroutes: [ { to: [s], match: {} } ]\n";
  LoadOptions options;
  options.resolve_secrets = false;
  Keys read;
  for (const auto& text : {full, std::string("defaults: { policy: { config: auto } }\n")}) {
    Report report{"f", {}, {}, {}};
    const auto loaded = parse_reported(text, options, report);
    ASSERT_TRUE(loaded) << render(loaded.error());
    for (const auto& [path, keys] : report.known) read[path].insert(keys.begin(), keys.end());
  }
  EXPECT_EQ(read, written);
}

}  // namespace
}  // namespace driftd::config
