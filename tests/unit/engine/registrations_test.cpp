// SPDX-License-Identifier: Apache-2.0
// Who is the registrar of a configured backend, for how long, and what happens when a source stops reporting.
#include "on_the_store.hpp"

#include "proto/codec.hpp"

namespace driftd::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kSchema = R"({"schema":"driftd-schema/1","kind":"registration","attributes":{
  "config.password":{"class":"credential"}}})";

class Words : public EngineOnTheStore {
 protected:
  Words() { prepare(); }
  void prepare() {
    for (ScriptedWorld* of : {line_->source.get(), line_->other.get()}) {
      of->kinds = {"registration", "object"};  // it has no registrations of its own: all were listed
      of->extensions = {"driftd.discover"};
      of->schemas["registration"] = kSchema;
    }
    line_->interval = std::chrono::milliseconds(1);
  }
  ScriptedWorld& source() { return *line_->source; }
  ScriptedWorld& other() { return *line_->other; }
  static void say(ScriptedWorld& world, const std::string& password, const std::string& backend = "b") {
    world.declared_kinds.insert({backend, "registration"});
    world.declared[{backend, {"registration", backend}}] =
        R"({"config":{"password":")" + password + R"(","topic":")" + password + "\"}}";
  }
  static void fall_silent(ScriptedWorld& world) {
    world.declared_kinds.clear();
    world.declared.clear();
  }
  void cycle(const std::string& backend) { report_ = line_->refresh(true, backend); }
  void both() {
    for (const char* name : {"source", "other", "b"}) cycle(name);
  }
  /// A new process: `first` finishes its first cycle before the other source.
  void restart_with(const std::string& first, bool with_source = true) {
    const ScriptedWorld b = *line_->world, s = source(), o = other();
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    *line_->world = b;
    if (with_source) *line_->source = s;
    *line_->other = o;
    line_->interval = std::chrono::milliseconds(1);
    line_->start(false);
    cycle(first);
  }
  std::vector<std::string> event_types() {
    std::vector<std::string> out;
    for (const auto& event : line_->events()) {
      if (event.backend == "b" && event.what != "created") out.push_back(event.what);
    }
    return out;
  }
  core::Coverage registration() {
    const auto views = line_->on_core([&] { return line_->engine().view(); });
    for (const auto& view : views) {
      for (const auto& coverage : view.coverage) {
        if (view.name == "b" && coverage.kind == "registration") return coverage;
      }
    }
    return {};
  }
};

TEST_F(Words, FirstSpeakerStaysTheSpeakerWhoeverStartsFirst) {
  say(source(), "one");
  say(other(), "another");
  line_->start(false);
  both();
  ASSERT_THAT(event_types(), IsEmpty());
  restart_with("other");
  EXPECT_THAT(reasons(), HasSubstr("source source already reports on backend b; the first source counts"));
  both();
  EXPECT_THAT(event_types(), IsEmpty()) << "the other one's password is no rotation";
}

TEST_F(Words, SourceThatIsSilentAndConfirmsItLetsTheOtherOneSpeak) {
  say(source(), "one");
  say(other(), "another");
  line_->start(false);
  both();
  fall_silent(source());
  both();
  both();
  EXPECT_THAT(event_types(), ElementsAre("config.updated", "config.updated", "credentials.rotated"))
      << "gone, there again, and it says something else";
  cycle("other");
  EXPECT_THAT(reasons(), IsEmpty());
}

TEST_F(Words, SilenceWithoutAReadThatConfirmsItIsNoDeletion) {
  say(source(), "one");
  line_->start(false);
  both();
  source().read_fails = Error{Code::unavailable, "the cluster is busy"};
  fall_silent(source());
  both();
  EXPECT_THAT(line_->drifts(), IsEmpty());
  EXPECT_THAT(reasons(), HasSubstr("the source cannot confirm it: the cluster is busy"));
  source().read_fails.reset();
  both();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].operation, core::Operation::deleted);
}

TEST_F(Words, WhatAReadStillFindsIsThere) {
  say(source(), "one");
  line_->start(false);
  both();
  source().declared_kinds.clear();  // not listed, but a read finds it
  both();
  both();
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(Words, ListThatIsNotWholeTakesNothingBack) {
  say(source(), "one");
  line_->start(false);
  both();
  source().sends_complete = false;
  fall_silent(source());
  both();
  EXPECT_THAT(line_->drifts(), IsEmpty());
  EXPECT_EQ(core::coverage_state(registration()), "stale");
}

TEST_F(Words, CoverageSaysThatTheSourceIsDown) {
  say(source(), "one");
  line_->start(false);
  both();
  ASSERT_EQ(core::coverage_state(registration()), "seen");
  source().refresh_fails = Error{Code::unavailable, "connection refused"};
  both();
  EXPECT_EQ(core::coverage_state(registration()), "stale");
  EXPECT_THAT(registration().reasons, ElementsAre(HasSubstr("source source: connection refused")));
  source().refresh_fails.reset();
  both();
  EXPECT_EQ(core::coverage_state(registration()), "seen");
}

TEST_F(Words, SourceThatLeftTheConfigSpeaksNoMore) {
  say(source(), "one");
  say(other(), "two");
  line_->start(false);
  both();
  say(source(), "two");
  both();
  ASSERT_THAT(line_->drifts(), SizeIs(1)) << "config is manual";
  restart_with("other", false);
  EXPECT_THAT(reasons(), IsEmpty()) << "the other one may speak now";
  cycle("b");
  ASSERT_THAT(line_->drifts(true), testing::Not(IsEmpty()));
  for (const auto& drift : line_->drifts(true)) {
    if (drift.status == core::DriftStatus::retired) return;
  }
  ADD_FAILURE() << "the drift of a source that is gone was not retired";
}

TEST_F(Words, SourceDoesNotSpeakOfItself) {
  say(source(), "one", "source");
  line_->start(false);
  cycle("source");
  EXPECT_THAT(reasons(), HasSubstr("a source cannot report its own registration"));
}

TEST_F(Words, SourceThatIsSpokenForStillConfirmsWhatItTookBack) {
  say(other(), "hub", "source");
  say(source(), "one");
  line_->start(false);
  cycle("other");
  both();
  both();
  fall_silent(source());
  both();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].operation, core::Operation::deleted);
}

TEST_F(Words, ConfigThatNamesADiscoveredBackendKeepsItsSpeaker) {
  core::Discovered found;
  found.name = "b";
  found.type = "kafka";
  source().discovered.backends = {found};
  source().discovered.complete = true;
  say(source(), "one");
  say(other(), "another");
  line_->start(false, {}, false);
  for (int i = 0; i < 2; ++i) {
    cycle("source");
    cycle("b");
  }
  restart_with("other");
  EXPECT_THAT(reasons(), HasSubstr("source source already reports on backend b"));
}

TEST_F(Words, RestartWithTheSourceDownSaysSo) {
  say(source(), "one");
  line_->start(false);
  both();
  source().refresh_fails = Error{Code::unavailable, "connection refused"};
  fall_silent(source());
  restart_with("source");
  cycle("b");
  EXPECT_EQ(core::coverage_state(registration()), "stale");
  EXPECT_THAT(registration().reasons, ElementsAre(HasSubstr("source source: connection refused")));
}

struct ManyDiscovered : Words {
  ManyDiscovered() {
    source().discovered.complete = true;
    for (int i = 0; i < 30; ++i) {
      core::Discovered one;
      one.name = "d" + std::to_string(i);
      one.type = "kafka";
      source().discovered.backends.push_back(one);
    }
  }
  int registered() {
    return line_->on_core([&] { return static_cast<int>(line_->engine().view().size()); }) - 3;
  }
  /// The source lists so many from now on. Runs cycles until `settled`, because discoveries within one interval count
  /// once.
  template <class F>
  bool lose(std::size_t left, F settled) {
    source().discovered.backends.resize(left);
    return eventually([&] {
      cycle("source");
      return settled();
    });
  }
  bool asks() { return line_->drifts().size() == 1; }
};

TEST_F(ManyDiscovered, FewThatVanishAreGone) {
  line_->start(false);
  cycle("source");
  ASSERT_EQ(registered(), 30);
  EXPECT_TRUE(lose(22, [&] { return registered() == 22; }));
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(ManyDiscovered, ManyThatVanishAtOnceAreHeldUntilSomebodyDecides) {
  line_->start(false);
  cycle("source");
  ASSERT_TRUE(lose(5, [&] { return asks(); }));
  EXPECT_EQ(registered(), 30);
  auto asked = line_->drifts();
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].resource, (core::ResourceId{"scope", "discovered"}));
  EXPECT_THAT(asked[0].changes.at(0).new_value.value_or(""), HasSubstr("\"count\":25"));
  restart_with("source");
  asked = line_->drifts();
  ASSERT_THAT(asked, SizeIs(1)) << "a restart asks the same question";
  ASSERT_TRUE(line_->decide(asked[0].id, decision(core::Decision::Verb::approve)));
  EXPECT_TRUE(lose(5, [&] { return registered() == 5; }));
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(ManyDiscovered, HeldOnesStayHeldWhenFewerAreMissing) {
  const auto all = source().discovered.backends;
  line_->start(false);
  cycle("source");
  ASSERT_TRUE(lose(18, [&] { return asks(); }));
  ASSERT_TRUE(line_->decide(line_->drifts()[0].id, decision(core::Decision::Verb::reject)));
  source().discovered.backends.assign(all.begin(), all.begin() + 20);  // ten are missing: not a mass deletion any more
  for (int i = 0; i < 5; ++i) cycle("source");
  EXPECT_EQ(registered(), 30);
  EXPECT_TRUE(asks());
}

TEST_F(ManyDiscovered, ApprovalOutlivesARestart) {
  line_->start(false);
  cycle("source");
  ASSERT_TRUE(lose(5, [&] { return asks(); }));
  ASSERT_TRUE(line_->decide(line_->drifts()[0].id, decision(core::Decision::Verb::approve)));
  restart_with("source");
  EXPECT_TRUE(lose(5, [&] { return registered() == 5; }));
}

TEST_F(ManyDiscovered, ManyThatComeBackAskNoMore) {
  const auto all = source().discovered.backends;
  line_->start(false);
  cycle("source");
  ASSERT_TRUE(lose(5, [&] { return asks(); }));
  source().discovered.backends = all;
  cycle("source");
  EXPECT_THAT(line_->drifts(), IsEmpty());
  EXPECT_EQ(registered(), 30);
}

}  // namespace
}  // namespace driftd::test
