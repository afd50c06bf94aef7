// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "config/config.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

config::Loaded loaded_with(const std::string& enforce, const std::string& backend,
                           const std::string& policy = "manual") {
  return config::parse(enforce +
                           "agent: { name: edge-1, cluster: west, data_dir: /var/lib/driftd }\n"
                           "backends:\n"
                           "  - name: cache\n"
                           "    provider: redis\n"
                           "    policy: { config: " +
                           policy + " }\n" + backend,
                       "driftd.yaml");
}

core::EnforceSettings settings_of(const config::Loaded& loaded) {
  EXPECT_TRUE(loaded) << config::render(loaded.error());
  return loaded ? loaded->backends.at(0).enforce : core::EnforceSettings{};
}

TEST(EnforceConfig, IsOffUnlessBothAllowIt) {
  EXPECT_FALSE(settings_of(loaded_with("", "")).allowed());
  EXPECT_FALSE(settings_of(loaded_with("enforce: { enabled: true }\n", "")).allowed());
  EXPECT_FALSE(settings_of(loaded_with("", "    enforce: true\n")).allowed());
  EXPECT_TRUE(settings_of(loaded_with("enforce: { enabled: true }\n", "    enforce: true\n")).allowed());
  EXPECT_TRUE(settings_of(loaded_with("enforce: { enabled: true }\n", "    enforce: { per_cycle: 1 }\n")).allowed());
  EXPECT_FALSE(settings_of(loaded_with("enforce: { enabled: true }\n", "    enforce: { enabled: false }\n")).allowed());
}

TEST(EnforceConfig, ABackendOverridesWhatItSays) {
  const auto loaded =
      loaded_with("enforce: { enabled: true, minimum_age: 2h, per_hour: 7, windows: [\"Mon 01:00-02:00\"] }\n",
                  "    enforce: { per_cycle: 2, windows: [] }\n");
  const auto settings = settings_of(loaded);
  EXPECT_EQ(settings.minimum_age, std::chrono::hours(2));
  EXPECT_EQ(settings.per_hour, 7);
  EXPECT_EQ(settings.per_cycle, 2);
  EXPECT_THAT(settings.windows, IsEmpty());
  EXPECT_EQ(settings.owner, "west/edge-1");
  EXPECT_EQ(loaded->enforce.off_file, "/var/lib/driftd/enforce.off");
}

TEST(EnforceConfig, WarnsOfAPolicyThatNothingCarriesOut) {
  const auto idle = loaded_with("enforce: { enabled: true }\n", "", "enforce");
  ASSERT_TRUE(idle) << config::render(idle.error());
  ASSERT_THAT(idle->warnings, SizeIs(1));
  EXPECT_THAT(idle->warnings[0].what, HasSubstr("nothing is put back: `enforce: true` of the backend"));
  const auto on = loaded_with("enforce: { enabled: true }\n", "    enforce: true\n", "enforce");
  ASSERT_TRUE(on);
  EXPECT_THAT(on->warnings, IsEmpty());
}

TEST(EnforceConfig, NamesMistakes) {
  const auto window = loaded_with("enforce: { windows: [\"Mon 22:00\"] }\n", "");
  ASSERT_FALSE(window);
  EXPECT_THAT(config::render(window.error()), HasSubstr("expected [DAYS] HH:MM-HH:MM [UTC|local]"));
  const auto typo = loaded_with("enforce: { enable: true }\n", "");
  ASSERT_FALSE(typo);
  EXPECT_THAT(config::render(typo.error()), HasSubstr("did you mean 'enabled'?"));
  const auto below = loaded_with("", "    enforce: { minimal_age: 1h }\n");
  ASSERT_FALSE(below);
  EXPECT_THAT(config::render(below.error()), HasSubstr("did you mean 'minimum_age'?"));
}

}  // namespace
}  // namespace driftd::test
