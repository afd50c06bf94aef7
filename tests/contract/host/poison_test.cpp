// SPDX-License-Identifier: Apache-2.0
// A record that breaks a rule affects only itself: it arrives with its whole body marked as unread, the other records
// and the COMPLETE of its kind arrive, and a diagnostic names it. The records are those of mode "poison" of tester.cpp.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <set>

#include "contract/host/core_thread.hpp"
#include "core/stand_in.hpp"
#include "ipc/limits.hpp"
#include "ipc/text.hpp"

namespace driftd::test {
namespace {

using core::SessionSpec;
using ::testing::Contains;
using ::testing::HasSubstr;

class Poison : public ::testing::TestWithParam<SessionSpec::Isolation> {
 protected:
  void SetUp() override {
    factory_ = host::make_session_factory(host_options(core_));
    factory_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
    open("poison");
  }
  void open(const std::string& mode, const std::string& also = {}) {
    SessionSpec spec;
    spec.backend = "b";
    spec.provider = DRIFTD_BINARY_DIR "/tests/providers/tester.so";
    spec.settings_json = "{\"mode\":\"" + mode + "\",\"also\":\"" + also + "\"}";
    spec.isolation = GetParam();
    if (kSanitized) spec.budgets.rss_bytes = 0;
    spec.worker_key = {"0a0b0c0d", {1, 2, 3}};
    session_ = factory_->open(spec).value();
  }
  void TearDown() override { core_.run(session_->stop()); }
  /// Refreshes and returns the records of all pages.
  std::vector<core::Observation> refreshed() {
    pages_->all.clear();
    const auto outcome = core_.run(session_->refresh({}, keep(pages_)));
    EXPECT_TRUE(outcome) << outcome.error().message;
    std::vector<core::Observation> out;
    for (const auto& page : pages_->all) out.insert(out.end(), page.records.begin(), page.records.end());
    return out;
  }
  /// Returns the first record whose id starts with `start`, or null.
  static const core::Observation* find(const std::vector<core::Observation>& all, const std::string& start) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& o) { return o.id.id.starts_with(start); });
    return found == all.end() ? nullptr : &*found;
  }

  Core core_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::shared_ptr<Pages> pages_ = std::make_shared<Pages>();
  std::vector<std::string> events_;
};

TEST_P(Poison, TheCountFitsEveryIdentityIsItsOwnAndTheNextRefreshSaysTheSame) {
  const auto first = refreshed();
  ASSERT_EQ(pages_->marks().size(), 1u);
  EXPECT_EQ(pages_->marks()[0].count, first.size());
  std::set<std::string> ids;
  for (const auto& o : first) {
    EXPECT_TRUE(ids.insert(o.id.id).second) << o.id.id;
    EXPECT_LE(o.id.id.size(), ipc::kMaxName);
    EXPECT_TRUE(ipc::is_utf8(o.id.id));
  }
  const auto again = refreshed();
  ASSERT_EQ(again.size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].digest, again[i].digest) << first[i].id.id;
}

TEST_P(Poison, WhatCannotBeJudgedIsUnreadAsAWholeWithItsReason) {
  const auto all = refreshed();
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"long-body", "`body` has "},
      {"deep", "`body`: "},
      {"deeper", "`body`: "},
      {"twice", "`body`: "},
      {"digest", "$hmac"},
      {"no-json", "`body`: "},
      {"bytes", "not UTF-8"},
      {"secrets", "`sensitive`"},
      {"blind", "`unread`"},
      {"~unidentified~iiii", "`id` has 5001 bytes, at most 4096"},
      {"~unidentified~~", "`id` must not be empty"}};
  for (const auto& [id, reason] : expected) {
    const auto* o = find(all, id);
    ASSERT_NE(o, nullptr) << id;
    EXPECT_EQ(o->body, "{}");
    ASSERT_EQ(o->unread.size(), 1u) << id;
    EXPECT_EQ(o->unread[0].path, "**");
    EXPECT_THAT(o->unread[0].reason, HasSubstr(reason));
  }
}

/// A record without a usable id gets a stand-in for it. A plugin may send another record with exactly that id; without
/// a check both would be stored as one resource.
TEST_P(Poison, NoPluginGivesTheIdThatStandsForAnother) {
  const auto ids_of_stand_ins = [](const std::vector<core::Observation>& all) {
    std::vector<std::string> out;
    for (const auto& o : all) {
      if (!o.unread.empty() && o.unread[0].reason.find("`id` ") != std::string::npos) out.push_back(o.id.id);
    }
    return out;
  };
  const auto stand_ins = ids_of_stand_ins(refreshed());
  ASSERT_GE(stand_ins.size(), 2u);
  for (const auto& taken : stand_ins) {
    core_.run(session_->stop());
    open("poison", taken);
    const auto all = refreshed();
    std::set<std::string> ids;
    for (const auto& o : all) EXPECT_TRUE(ids.insert(o.id.id).second) << "two records have the id " << o.id.id;
    EXPECT_EQ(pages_->marks().at(0).count, ids.size());
    EXPECT_EQ(ids_of_stand_ins(all).size(), stand_ins.size() + (taken.starts_with(core::kStandIn) ? 1 : 0)) << taken;
  }
}

/// A stand-in is an id that the provider does not know, so it answers "not found" although the record exists. That
/// answer must not count as a deletion.
TEST_P(Poison, NotFoundOfWhatStandsForARecordIsNoWordOfIt) {
  std::vector<core::ResourceId> ids = {{"thing", "0"}, {"thing", "not-there"}};
  for (const auto& o : refreshed()) {
    if (o.id.id.starts_with(core::kStandIn)) ids.push_back(o.id);
  }
  ASSERT_GE(ids.size(), 5u);
  const auto answer = core_.run(session_->read(ids, std::chrono::seconds(20)));
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->found.size(), 1u);
  EXPECT_EQ(answer->found[0].id.id, "0");
  EXPECT_EQ(answer->not_found, (std::vector<core::ResourceId>{{"thing", "not-there"}}));
  std::set<std::string> reported;
  for (const auto& d : answer->diagnostics) {
    EXPECT_EQ(d.code, Code::unsupported) << d.text;
    reported.insert(d.id);
  }
  EXPECT_EQ(reported.size(), ids.size() - 2);
  const auto alone = core_.run(session_->read({ids.back()}, std::chrono::seconds(20)));
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_TRUE(alone->found.empty() && alone->not_found.empty());
  EXPECT_EQ(alone->diagnostics.size(), 1u);
}

TEST_P(Poison, WhatIsNotJudgedCostsOnlyItself) {
  const auto all = refreshed();
  for (const auto& [id, size] : {std::pair("status", 7), {"metadata", 8}, {"version", 9}}) {
    const auto* o = find(all, id);
    ASSERT_NE(o, nullptr) << id;
    EXPECT_EQ(o->body, "{\"size\":" + std::to_string(size) + "}");
    EXPECT_TRUE(o->unread.empty()) << id;
  }
  EXPECT_EQ(find(all, "2")->unread.at(0).path, "owner")
      << "the good record beside them has its own unread attribute only";
}

TEST_P(Poison, TheCulpritIsToldAndCounted) {
  const auto all = refreshed();
  std::map<std::string, std::string> reported;
  for (const auto& page : pages_->all) {
    for (const auto& d : page.diagnostics) reported[d.id] = d.kind + " " + std::string(render(d.code)) + " " + d.text;
  }
  EXPECT_THAT(reported["deep"], HasSubstr("thing corrupt emit: record 0 (thing/deep): `body`: "));
  EXPECT_THAT(reported["status"], HasSubstr("`status` has "));
  EXPECT_EQ(reported.size(), all.size() - 2);
  EXPECT_EQ(session_->status().misuses.at("emit"), all.size() - 2);
  EXPECT_THAT(events_, Contains(HasSubstr("(thing/long-body): `body` has 5242")));
}

/// A source reports backends of many namespaces. If a record of a backend breaks a rule, it keeps the namespace in
/// which the backend is defined, and the diagnostic names that backend, not the source.
TEST_P(Poison, WhatIsSaidOfAnotherBackendKeepsWhereItIsDefinedAndIsBlamedOnThatOne) {
  core_.run(session_->stop());
  open("source");
  const auto all = refreshed();
  ASSERT_EQ(all.size(), 2u);
  for (const auto& o : all) {
    EXPECT_EQ(o.backend, "orders");
    EXPECT_EQ(o.metadata, (std::map<std::string, std::string>{{"defined_in", "db"}})) << o.id.id;
  }
  std::size_t reported = 0;
  for (const auto& page : pages_->all) {
    for (const auto& d : page.diagnostics) {
      EXPECT_EQ(d.backend + " " + d.kind + " " + d.path, "orders registration db") << d.text;
      ++reported;
    }
  }
  EXPECT_EQ(reported, 2u);
}

INSTANTIATE_TEST_SUITE_P(Isolations, Poison,
                         ::testing::Values(SessionSpec::Isolation::process, SessionSpec::Isolation::in_process),
                         [](const auto& info) {
                           return info.param == SessionSpec::Isolation::process ? "Process" : "InProcess";
                         });

}  // namespace
}  // namespace driftd::test
