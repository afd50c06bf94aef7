// SPDX-License-Identifier: Apache-2.0
// The exit code of a refresh: whether everything could be compared.
#include <gtest/gtest.h>

#include "cli/command.hpp"
#include "core/value/value.hpp"

namespace driftd::cli {
namespace {

int exit_code(const std::string& coverage) {
  return refresh_exit_code(
      core::parse(R"({"refreshed":[{"backend":"b","ok":true,"coverage":[)" + coverage + "]}]}").value());
}

TEST(CliRefresh, ExitsWith3UnlessEverythingCouldBeCompared) {
  EXPECT_EQ(exit_code(R"({"kind":"a","complete":true,"unknown":0,"reasons":[]})"), kOk);
  EXPECT_EQ(exit_code(R"({"kind":"a","complete":false,"unknown":0,"reasons":["denied: x"]})"), kIncomplete);
  EXPECT_EQ(exit_code(R"({"kind":"a","complete":true,"unknown":1,"reasons":[]})"), kIncomplete);
}

std::string whole(const std::string& kind, const std::string& reason) {
  return R"({"complete":true,"unknown":0,"kind":")" + kind + R"(","reasons":[")" + reason + "\"]}";
}

TEST(CliRefresh, AWholeListOfWhichSomethingWasLeftOutIsIncompleteToo) {
  EXPECT_EQ(exit_code(whole("job", "denied: Jobs of CronJobs (grant list cronjobs.batch)")), kIncomplete);
  EXPECT_EQ(exit_code(whole("object", "unsupported: Thing.none.example is not served")), kIncomplete);
}

/// A tenant of a cluster must not be able to make every refresh fail.
TEST(CliRefresh, WhatWasComparedAllTheSameOrWasRefusedToOthersIsNotIncomplete) {
  EXPECT_EQ(exit_code(whole("helm_release", "conflict: revision 2 is pending")), kOk);
  EXPECT_EQ(exit_code(whole("declared:cache/registration", "denied: it may not report on this backend")), kOk);
}

}  // namespace
}  // namespace driftd::cli
