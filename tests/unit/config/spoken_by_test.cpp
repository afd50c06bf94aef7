// SPDX-License-Identifier: Apache-2.0
// `spoken_by`: which sources may report the registration of a backend.
#include <gmock/gmock.h>

#include "config/load.hpp"

namespace driftd::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SpokenBy, IsNobodyUnlessItIsWritten) {
  const auto loaded = parse("backends: [ { name: cache, provider: redis } ]\n", "driftd.yaml");
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_TRUE(loaded->backends.at(0).spoken_by.empty());
}

TEST(SpokenBy, NamesSourcesAndWhereTheyReadIt) {
  const auto loaded = parse(
      "backends:\n- { name: cluster, provider: k8s }\n"
      "- { name: cache, provider: redis, spoken_by: [ { source: cluster, namespace: prod }, { source: cluster } ] }\n",
      "driftd.yaml");
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_THAT(loaded->backends.at(1).spoken_by,
              ElementsAre(core::Registrar{"cluster", "prod"}, core::Registrar{"cluster", ""}));
}

TEST(SpokenBy, ASourceThatIsNotThereIsAMistakeWithItsPlace) {
  const auto loaded = parse(
      "backends:\n- { name: cluster, provider: k8s }\n"
      "- name: cache\n  provider: redis\n  spoken_by:\n  - { source: clustr }\n",
      "driftd.yaml");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(render(loaded.error()), HasSubstr("driftd.yaml:6:15"));
  EXPECT_THAT(render(loaded.error()), HasSubstr("'spoken_by' names 'clustr', which is not a backend of this file"));
  EXPECT_THAT(render(loaded.error()), HasSubstr("did you mean 'cluster'?"));
}

TEST(SpokenBy, OneFileForAFleetMeansTheSourceOfTheSameNode) {
  const auto loaded = parse(
      "agent: { node: n1 }\nbackends:\n- { name: cluster, provider: k8s, node: \"*\" }\n"
      "- { name: cache, provider: redis, node: n1, spoken_by: [ { source: cluster } ] }\n",
      "driftd.yaml");
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_THAT(loaded->backends.at(1).spoken_by, ElementsAre(core::Registrar{"cluster-n1", ""}));
}

}  // namespace
}  // namespace driftd::config
