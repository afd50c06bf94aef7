// SPDX-License-Identifier: Apache-2.0
#include "controller/watcher.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "world.hpp"

namespace driftd::controller {
namespace {

class RecordingPublisher final : public EventPublisher {
 public:
  Status publish(const ChangeEvent& event) override {
    if (on_publish) return on_publish(event);
    events.push_back(event.id + " " + event.type + " " + event.subject);
    return {};
  }
  std::function<Status(const ChangeEvent&)> on_publish;
  std::vector<std::string> events;
};

struct Watching : testing::Test {
  Watcher watcher_of(Watcher::Options options) {
    return {std::move(options), settings, clock, &publisher, lines.log()};
  }
  void record(Watcher& watcher) {
    watcher.add_handler([this](const Change& change) {
      seen.push_back(std::string(render(change.type)) + " " + change.resource.key.name);
    });
  }

  Settings settings;
  StandingClock clock;
  RecordingPublisher publisher;
  Lines lines;
  std::vector<std::string> seen;
  const Watcher::Options options{"PrismBackend", "op", true};
};

using Words = std::vector<std::string>;

TEST_F(Watching, FindsWhatAListHasMoreOrLessOrOtherThanBefore) {
  auto watcher = watcher_of(options);
  record(watcher);
  watcher.observe_all({resource("a"), resource("b"), resource("c")});
  watcher.observe_all({resource("b", 2), resource("c"), resource("d")});
  EXPECT_EQ(seen, (Words{"CREATED a", "CREATED b", "CREATED c", "DELETED a", "UPDATED b", "CREATED d"}));
  EXPECT_EQ(watcher.keys(), (std::vector<Key>{key_of("b"), key_of("c"), key_of("d")}));
}

TEST_F(Watching, TakesSingleObservationsBesideLists) {
  auto watcher = watcher_of(options);
  record(watcher);
  watcher.observe_all({resource("a")});
  watcher.observe(resource("a", 2));
  watcher.observe(resource("b"));
  watcher.observe_all({resource("a", 2), resource("b")});
  watcher.observe_deleted(key_of("a"), "uid-a");
  watcher.observe_deleted(key_of("a"), "uid-a");
  EXPECT_EQ(seen, (Words{"CREATED a", "UPDATED a", "CREATED b", "DELETED a"}));
}

TEST_F(Watching, ALateTombstoneOfAFormerResourceMeansNothing) {
  auto watcher = watcher_of(options);
  watcher.observe(resource("a"));
  watcher.observe_deleted(key_of("a"), "uid of the former one");
  EXPECT_TRUE(watcher.find(key_of("a")));
  watcher.observe_deleted(key_of("a"));
  EXPECT_FALSE(watcher.find(key_of("a")));
}

TEST_F(Watching, AResourceThatWasMadeAgainIsDeletedAndCreated) {
  auto watcher = watcher_of(options);
  record(watcher);
  watcher.observe_all({resource("a")});
  auto other = resource("a");
  other.uid = "other";
  watcher.observe_all({other});
  EXPECT_EQ(seen, (Words{"CREATED a", "DELETED a", "CREATED a"}));
}

TEST_F(Watching, PublishesEachChangeAfterTheHandlersHadIt) {
  auto watcher = watcher_of(options);
  watcher.add_handler([&](const Change&) { EXPECT_TRUE(publisher.events.empty()); });
  watcher.observe(resource("a"));
  EXPECT_EQ(publisher.events, Words{"op-1 prismbackend.created infrastructure/a"});
}

TEST_F(Watching, HandsMetadataOnAndPublishesItNot) {
  auto watcher = watcher_of(options);
  record(watcher);
  watcher.observe(resource("a"));
  auto labelled = resource("a");
  labelled.rest_digest = 9;
  watcher.observe(labelled);
  EXPECT_EQ(seen, (Words{"CREATED a", "METADATA_UPDATED a"}));
  EXPECT_EQ(publisher.events.size(), 1U);
}

TEST_F(Watching, MayKeepTheFirstListToItself) {
  auto watcher = watcher_of({"PrismBackend", "op", false});
  record(watcher);
  watcher.observe_all({resource("a"), resource("b")});
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_TRUE(publisher.events.empty());
  watcher.observe_all({resource("a", 2)});
  EXPECT_EQ(publisher.events,
            (Words{"op-1 prismbackend.deleted infrastructure/b", "op-2 prismbackend.updated infrastructure/a"}));
}

TEST_F(Watching, AHandlerFindsInTheCacheWhatItIsToldAbout) {
  auto watcher = watcher_of(options);
  std::vector<std::size_t> known;
  watcher.add_handler([&](const Change& change) {
    known.push_back(watcher.keys().size());
    EXPECT_EQ(watcher.find(change.resource.key).has_value(), change.type != ChangeType::deleted);
  });
  watcher.observe(resource("a"));
  watcher.observe_deleted(key_of("a"));
  EXPECT_EQ(known, (std::vector<std::size_t>{1, 0}));
}

TEST_F(Watching, AHandlerThatThrowsHurtsNoOtherHandlerAndNoOtherResource) {
  auto watcher = watcher_of(options);
  watcher.add_handler([](const Change& change) {
    if (change.resource.key.name == "a") throw std::runtime_error("no room");
    throw 7;
  });
  record(watcher);
  watcher.observe_all({resource("a"), resource("b")});
  EXPECT_EQ(seen, (Words{"CREATED a", "CREATED b"}));
  EXPECT_EQ(publisher.events.size(), 2U);
  EXPECT_EQ(watcher.metrics().handler_failures, 2U);
  EXPECT_TRUE(lines.have("a handler of CREATED infrastructure/a threw: no room"));
  EXPECT_TRUE(lines.have("an exception of an unknown type"));
}

TEST_F(Watching, AnEventThatCannotBePublishedIsCountedAndLogged) {
  auto watcher = watcher_of(options);
  record(watcher);
  publisher.on_publish = [](const ChangeEvent& event) -> Status {
    if (event.subject == "infrastructure/a") return tl::unexpected(std::string("no server"));
    if (event.subject == "infrastructure/b") throw std::runtime_error("broken");
    return {};
  };
  watcher.observe_all({resource("a"), resource("b")});
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_EQ(watcher.metrics().publish_failures, 2U);
  EXPECT_EQ(watcher.metrics().events_published, 0U);
  EXPECT_EQ(watcher.metrics().last_publish_error, "the publisher threw: broken");
  EXPECT_TRUE(lines.have("the event prismbackend.created of infrastructure/a is lost: no server"));
  watcher.observe(resource("c"));
  EXPECT_EQ(watcher.metrics().events_published, 1U);
  EXPECT_EQ(watcher.metrics().last_publish_error, "");
}

TEST_F(Watching, ResourcesOfAnotherKindAreSkippedAloud) {
  auto watcher = watcher_of(options);
  auto other = resource("a");
  other.kind = "Secret";
  watcher.observe(other);
  watcher.observe_all({other, resource("b")});
  EXPECT_EQ(watcher.keys().size(), 1U);
  EXPECT_TRUE(lines.have("expected resources of that kind, found Secret infrastructure/a"));
}

TEST_F(Watching, HasTheMetricsOfTheRfc) {
  settings.watch_interval = 7s;
  auto watcher = watcher_of(options);
  record(watcher);
  EXPECT_FALSE(watcher.metrics().is_watching);
  watcher.set_watching(true);
  watcher.observe_all({resource("a"), resource("b")});
  const WatcherMetrics metrics = watcher.metrics();
  EXPECT_TRUE(metrics.is_watching);
  EXPECT_EQ(metrics.cached_resources, 2U);
  EXPECT_EQ(metrics.watch_interval, 7s);
  EXPECT_EQ(metrics.events_published, 2U);
  EXPECT_EQ(metrics.change_handlers, 1U);
  EXPECT_EQ(metrics.changes, 2U);
}

}  // namespace
}  // namespace driftd::controller
