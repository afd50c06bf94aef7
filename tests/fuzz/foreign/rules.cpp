// SPDX-License-Identifier: Apache-2.0
// Paths, patterns and schemas, as a plugin declares its attributes, and bodies of resources, as a worker sends them.
#include "core/judge/diff.hpp"
#include "core/redact.hpp"
#include "core/value/glob_match.hpp"
#include "core/value/schema.hpp"
#include "fuzz/foreign/foreign.hpp"

namespace driftd::fuzz {
namespace {

constexpr std::string_view kBody =
    R"({"a":{"b":[{"name":"x","port":80},{"name":"y"}],"c.d":"1h","e":"a: [1, 2]"},"f":"1.5GB","g":["h:1","h:2"],"s":"secret"})";

/// The text up to the first line end, and what is behind it.
std::pair<std::string_view, std::string_view> halves(std::string_view text) {
  const auto end = std::min(text.find('\n'), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

}  // namespace

void path(std::string_view text) {
  const auto [pattern, path] = halves(text);
  const auto parsed = core::Path::parse(path);
  if (parsed && !parsed->empty()) {
    const auto again = core::Path::parse(parsed->render());
    require(again && *again == *parsed, "a rendered path is the path");
  }
  (void)core::wild_match(pattern, path);
  const auto glob = core::Glob::parse_path(pattern);
  if (!glob) return;
  (void)glob->specificity();
  if (!parsed) return;
  (void)glob->matches(*parsed);
  core::Value value = core::parse(kBody).value();
  (void)core::find(value, *parsed);
  const core::Value one("1");
  if (core::assign(value, *parsed, &one)) (void)core::assign(value, *parsed, nullptr);
}

void schema(std::string_view text) {
  const auto parsed = core::KindSchema::parse(text);
  if (!parsed) return;
  core::Value before = core::parse(kBody).value(), after = before;
  for (const auto* at : {"a.b[1].port", "a.e", "f", "g", "s"}) {
    const core::Value moved("2");
    (void)core::assign(after, core::Path::parse(at).value(), &moved);
  }
  (void)core::diff(before, after, **parsed, {});
  (void)core::redact(kBody, {"thing", "id"}, **parsed, {"s"}, {"aaaaaaaa", {}});
}

/// As a record goes: redacted in the worker, sealed in the agent, compared with what was there.
void body(std::string_view text) {
  static const auto known =
      core::KindSchema::parse(
          R"({"schema":"driftd-schema/1","kind":"thing","attributes":{"a.b":{"collection":"map","keys":["name"]},)"
          R"("**.d":{"type":"yaml"},"f":{"type":"bytes"},"g":{"type":"endpoint","collection":"set"},"p":{"sensitive":true}}})")
          .value();
  const auto redacted = core::redact(text, {"thing", "id"}, *known, {"s", "a.b[*].token"}, {"aaaaaaaa", {}});
  if (!redacted) return;
  const auto sealed = core::seal(*redacted, {"bbbbbbbb", {}});
  require(sealed.has_value(), "what was redacted can be sealed");
  const auto after = core::parse(*sealed), before = core::parse(kBody);
  core::DiffOptions options;
  options.unread = {{"a.*.x", Code::denied, "denied"}};
  (void)core::diff(*before, *after, *known, options);
  const auto same = core::diff(*after, *after, *known, {});
  require(same.changes.empty(), "a body does not differ from itself");
}

}  // namespace driftd::fuzz
