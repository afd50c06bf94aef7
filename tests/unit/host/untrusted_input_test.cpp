// SPDX-License-Identifier: Apache-2.0
#include "host/untrusted_input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace driftd::host {
namespace {

using testing::HasSubstr;

class Border : public testing::Test {
 protected:
  Border() {
    auto info = std::make_shared<core::ProviderInfo>();
    info->kinds = {"topic"};
    info_ = info;
  }
  core::Diagnostic received(core::Diagnostic sent) const {
    PageBuilder builder(info_, scrubber_, {10, 1u << 20, 10});
    std::vector<core::RecordPage> pages;
    EXPECT_TRUE(builder.add({ipc::FrameType::diagnostic, 1, ipc::encode(sent)}, pages));
    builder.finish(pages);
    return pages.at(0).diagnostics.at(0);
  }

 private:
  const std::map<std::string, std::string> none_;
  const ipc::Scrubber scrubber_{none_};
  std::shared_ptr<const core::ProviderInfo> info_;
};

core::Diagnostic of_kind(const std::string& kind, const std::string& backend = {}) {
  core::Diagnostic out;
  out.code = Code::denied;
  out.kind = kind;
  out.text = "no right";
  out.backend = backend;
  return out;
}

TEST_F(Border, ADiagnosticOfAKindThatNobodyDeclaredIsOfAll) {
  const auto diagnostic = received(of_kind("made-up"));
  EXPECT_EQ(diagnostic.kind, "");
  EXPECT_EQ(diagnostic.code, Code::denied);
  EXPECT_THAT(diagnostic.text, testing::AllOf(HasSubstr("made-up"), HasSubstr("no right")));
}

TEST_F(Border, ADiagnosticOfADeclaredKindOrOfAnotherBackendKeepsIt) {
  EXPECT_EQ(received(of_kind("topic")).kind, "topic");
  EXPECT_EQ(received(of_kind("registration")).kind, "registration");
  EXPECT_EQ(received(of_kind("acl", "orders")).kind, "acl");
}

}  // namespace
}  // namespace driftd::host
