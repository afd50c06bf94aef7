// SPDX-License-Identifier: Apache-2.0
#include "operator/release_view.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace driftd::op {
namespace {

using nlohmann::json;

/// A Secret as Helm names and labels it, whose content is not a release.
json damaged(const std::string& status) {
  return {{"metadata",
           {{"namespace", "prod"},
            {"name", "sh.helm.release.v1.cache.v1"},
            {"labels", {{"owner", "helm"}, {"name", "cache"}, {"version", "1"}, {"status", status}}}}},
          {"data", {{"release", "bm90IGEgcmVsZWFzZQ=="}}}};
}

TEST(ReleaseView, AReleaseThatCannotBeUnpackedIsNotGone) {
  ReleaseView view;
  const controller::Key key{"prod", "cache"};
  EXPECT_FALSE(view.is_unreadable(key)) << "there is none";
  ASSERT_EQ(view.observe(damaged("deployed"), false), key);
  EXPECT_FALSE(view.find(key));
  EXPECT_TRUE(view.is_unreadable(key));
  view.observe(damaged("uninstalling"), false);
  EXPECT_FALSE(view.is_unreadable(key));
  ASSERT_EQ(view.observe(damaged("uninstalling"), true), key);
  EXPECT_FALSE(view.is_unreadable(key));
  EXPECT_TRUE(view.keys().empty());
}

TEST(ReleaseView, AReleaseThatWasNeverDeployedIsNone) {
  ReleaseView view;
  const controller::Key key{"prod", "cache"};
  ASSERT_EQ(view.observe(damaged("pending-install"), false), key);
  EXPECT_FALSE(view.find(key));
  EXPECT_FALSE(view.is_unreadable(key));
}

}  // namespace
}  // namespace driftd::op
