// SPDX-License-Identifier: Apache-2.0
// One resource that a test reads, changes, decides on and deletes. Each step takes one second.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/judge/judge.hpp"
#include "core/judge/rules.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {

inline constexpr Nanos kSecond = 1'000'000'000;

/// Kind `role`: `verifier` is a sensitive credential, `address` an endpoint, `load` health, `seen_at` volatile,
/// everything else config.
inline constexpr const char* kRoleSchema = R"({"schema":"driftd-schema/1","kind":"role","revision":1,"class":"config",
  "attributes":{"verifier":{"type":"string","class":"credential","sensitive":true},
    "address":{"type":"string","class":"endpoint"},"load":{"type":"string","class":"health"},
    "seen_at":{"type":"string","volatile":true},"timeout":{"type":"duration","unit":"ms"}}})";

std::shared_ptr<const KindSchema> schema_of(const std::string& text);
std::string digest_value(char fill);  ///< {"$hmac":…} with 64 times `fill`
Glob path_glob(const std::string& text);
PolicyRule policy(const std::string& path, Action action);
IgnoreRule ignore_rule(const std::string& path);
Expectation expectation(const std::string& path, const std::string& json);

class ResourceFixture {
 public:
  ResourceFixture();
  Rules rules;
  JudgeContext context;
  StoredResource row;
  Observation next;  ///< each sees() replaces the body
  std::vector<Present::DemotedChange> demoted;
  std::vector<Transition> log;  ///< all transitions so far

  /// Judges under the current `rules` and keeps the outcome as the stored row.
  Judgement sees(const std::string& body);
  Judgement is_gone();
  Judgement cannot_tell(const std::string& reason = "denied");
  Judgement judges(const Reading& reading);
  Result<Judgement> decides(Decision::Verb verb, std::size_t index = 0, std::optional<std::string> digest = {},
                            std::optional<Nanos> expires = {});
  const Drift& drift(std::size_t index = 0) const { return row.open.at(index); }
  Nanos now() const { return context.now_ns; }
  void wait(Nanos span) { context.now_ns += span; }

 private:
  void keep(const Judgement& judgement);
};

/// Returns `status[:moved]` of each transition, in order.
std::vector<std::string> statuses(const Judgement& judgement);
std::vector<std::string> paths(const Drift& drift);

}  // namespace driftd::core
