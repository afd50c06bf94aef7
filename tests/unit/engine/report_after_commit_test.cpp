// SPDX-License-Identifier: Apache-2.0
// A page of a source may hold records for the store and reports for other backends. The reports count once the page is
// committed: otherwise another backend would act on a page that the agent does not remember.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

core::Observation about_b(core::ResourceId id, std::string body) {
  core::Observation out;
  out.backend = "b";
  out.digest = digest(1, {id.kind, id.id, body});
  out.id = std::move(id);
  out.body = std::move(body);
  out.observed_ns = SystemClock().wall();
  return out;
}

class ReportAfterCommit : public EngineOnTheStore {
 protected:
  ReportAfterCommit() {
    line_->source->kinds = {"registration", "object"};
    line_->source->schemas["registration"] = R"({"schema":"driftd-schema/1","kind":"registration","attributes":{}})";
  }
  /// The source sends one page with a declaration and a report about `b`.
  void send(int partitions, const std::string& topic) {
    core::RecordPage page;
    page.records.push_back(about_b(thing(1), R"({"partitions":)" + std::to_string(partitions) + "}"));
    page.records.push_back(about_b({"registration", "b"}, R"({"topic":")" + topic + R"("})"));
    line_->source->pages = {std::move(page)};
  }
  std::vector<core::Drift> cycle_and_drifts() {
    for (const char* name : {"source", "b"}) (void)line_->refresh(true, name);
    return line_->drifts();
  }
  void tamper_store(const std::string& sql) { tamper(dir_.file("data/store.db"), sql); }
};

TEST_F(ReportAfterCommit, ReportOfAPageThatTheStoreRefusedIsTakenWithTheNextOne) {
  send(3, "one");
  line_->start(false);
  ASSERT_THAT(cycle_and_drifts(), IsEmpty());
  ASSERT_THAT(cycle_and_drifts(), IsEmpty());
  tamper_store("CREATE TRIGGER no BEFORE UPDATE ON declaration BEGIN SELECT RAISE(ABORT, 'no more rows'); END");
  tamper_store("CREATE TRIGGER none BEFORE INSERT ON declaration BEGIN SELECT RAISE(ABORT, 'no more rows'); END");
  send(4, "two");
  EXPECT_THAT(cycle_and_drifts(), IsEmpty());
  tamper_store("DROP TRIGGER no");
  tamper_store("DROP TRIGGER none");
  EXPECT_THAT(cycle_and_drifts(), SizeIs(2)) << "of the registration, and of what is declared";
}

}  // namespace
}  // namespace driftd::test
