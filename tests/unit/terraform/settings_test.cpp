// SPDX-License-Identifier: Apache-2.0
#include "terraform/settings.hpp"

#include <gmock/gmock.h>

#include "driftd/sdk/types.hpp"

namespace driftd::terraform {
namespace {

using testing::HasSubstr;

std::string refusal_of(const std::string& settings) {
  try {
    parse_settings(settings);
  } catch (const sdk::Failure& e) {
    EXPECT_EQ(e.code, DRIFTD_INVALID) << e.what();
    return e.what();
  }
  return "accepted";
}

TEST(TerraformSettings, APathIsABackendOfTypeLocal) {
  EXPECT_EQ(parse_settings(R"({"path": "/s"})").backend, (nlohmann::json{{"type", "local"}, {"path", "/s"}}));
  EXPECT_EQ(parse_settings(R"({"backend": {"type": "s3", "bucket": "b"}})").backend.at("bucket"), "b");
}

TEST(TerraformSettings, APathOrABackendIsGivenButNotBoth) {
  EXPECT_EQ(refusal_of("{}"),
            "settings.path: expected the absolute path of a terraform.tfstate file, or a backend with its type, "
            "found neither; add one of them to settings");
  EXPECT_EQ(refusal_of(R"({"path": "/s", "backend": {"type": "s3"}})"),
            "settings.path: expected either path or backend, found both; remove one of them");
  EXPECT_EQ(refusal_of(R"({"backend": {}})"),
            "settings.backend.type: expected the type of a Terraform backend, for example s3, found nothing; "
            "add it to settings.backend");
}

TEST(TerraformSettings, MistakesInRulesNameTheRule) {
  const auto with = [](const std::string& more) { return refusal_of(R"({"path": "/s", )" + more + "}"); };
  EXPECT_THAT(with(R"("declares": [{"resources": "a_*", "backend": "b"}, {"resources": "c_*"}])"),
              HasSubstr("settings.declares[1].backend: expected the name of a backend of driftd, found nothing"));
  EXPECT_THAT(with(R"("discover": {"resources": [{"resource": "a"}]})"), HasSubstr("settings.discover.resources[0]."));
  EXPECT_THAT(with(R"("workspace": "a/b")"), HasSubstr("settings.workspace: "));
  EXPECT_THAT(with(R"("poll_interval_ms": 86400001)"), HasSubstr("from 1 to 86400000, found 86400001"));
  EXPECT_THAT(with(R"("pathh": "/s")"), HasSubstr("settings.pathh: unknown setting"));
}

}  // namespace
}  // namespace driftd::terraform
