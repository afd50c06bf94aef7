// SPDX-License-Identifier: Apache-2.0
#include "unit/judge/resource_fixture.hpp"

#include <stdexcept>

namespace driftd::core {

std::shared_ptr<const KindSchema> schema_of(const std::string& text) {
  auto schema = KindSchema::parse(text);
  if (!schema) throw std::runtime_error(schema.error().message);
  return *schema;
}

std::string digest_value(char fill) { return R"({"$hmac":"0badc0de:1:)" + std::string(64, fill) + "\"}"; }

Glob path_glob(const std::string& text) {
  auto glob = Glob::parse_path(text);
  if (!glob) throw std::runtime_error(glob.error().message);
  return *glob;
}

PolicyRule policy(const std::string& path, Action action) {
  PolicyRule rule;
  rule.match.path = path_glob(path);
  rule.action = action;
  rule.where = "driftd.yaml:9:3";
  return rule;
}

IgnoreRule ignore_rule(const std::string& path) {
  IgnoreRule rule;
  rule.match.path = path_glob(path);
  return rule;
}

Expectation expectation(const std::string& path, const std::string& json) {
  Expectation out;
  out.attributes.emplace_back(*Path::parse(path), *parse(json));
  return out;
}

ResourceFixture::ResourceFixture() {
  context.backend_uid = "0123456789abcdef";
  context.schema = schema_of(kRoleSchema);
  context.established = true;
  context.now_ns = 1'000 * kSecond;
  row.id = next.id = {"role", "app"};
}

void ResourceFixture::keep(const Judgement& judgement) {
  log.insert(log.end(), judgement.transitions.begin(), judgement.transitions.end());
  if (judgement.dropped) return;
  row = judgement.next;
  ++row.revision;
}

Judgement ResourceFixture::judges(const Reading& reading) {
  rules.generation = 7;
  context.rules = std::make_shared<const Rules>(rules);
  Judgement out = judge(context, row, reading);
  keep(out);
  return out;
}

Judgement ResourceFixture::sees(const std::string& body) {
  wait(kSecond);
  next.body = body;
  next.observed_ns = now();
  return judges(Present{next, demoted});
}

Judgement ResourceFixture::is_gone() {
  wait(kSecond);
  return judges(Absent{now()});
}

Judgement ResourceFixture::cannot_tell(const std::string& reason) {
  wait(kSecond);
  return judges(Unknown{reason, now()});
}

Result<Judgement> ResourceFixture::decides(Decision::Verb verb, std::size_t index, std::optional<std::string> digest,
                                           std::optional<Nanos> expires) {
  wait(kSecond);
  if (!digest) digest = drift(index).digest;  // the person saw the current values
  Result<Judgement> out = decide(row, drift(index).id, {verb, "ann", "because", digest, expires, now()});
  if (out) keep(*out);
  return out;
}

std::vector<std::string> statuses(const Judgement& judgement) {
  std::vector<std::string> out;
  for (const auto& transition : judgement.transitions) {
    out.push_back(std::string(render(transition.drift.status)) + (transition.moved ? ":moved" : ""));
  }
  return out;
}

std::vector<std::string> paths(const Drift& drift) {
  std::vector<std::string> out;
  for (const auto& change : drift.changes) out.push_back(change.path);
  return out;
}

}  // namespace driftd::core
