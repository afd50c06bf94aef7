// SPDX-License-Identifier: Apache-2.0
#include "controller/change.hpp"

#include <gtest/gtest.h>

#include "controller/cloud_event.hpp"
#include "world.hpp"

namespace driftd::controller {
namespace {

/// The types of the changes, as words.
std::string between(const std::optional<ResourceMeta>& before, const std::optional<ResourceMeta>& now) {
  std::string out;
  for (const Change& change : changes_between(before, now)) {
    out += (out.empty() ? "" : " ") + std::string(render(change.type));
  }
  return out;
}

ResourceMeta with(ResourceMeta meta, const std::function<void(ResourceMeta&)>& change) {
  change(meta);
  return meta;
}

const ResourceMeta kRedis = resource("redis", 3);

TEST(Changes, OfWhatIsThereForTheFirstTimeAndNoMore) {
  EXPECT_EQ(between(std::nullopt, kRedis), "CREATED");
  EXPECT_EQ(between(kRedis, std::nullopt), "DELETED");
  EXPECT_EQ(between(kRedis, kRedis), "");
}

TEST(Changes, AnotherGenerationIsUpdated) {
  EXPECT_EQ(between(kRedis, resource("redis", 4)), "UPDATED");
  EXPECT_EQ(between(kRedis, resource("redis", 2)), "UPDATED") << "the store of the cluster was restored";
}

TEST(Changes, UpdatedIsOneChangeAlsoWhenTheStatusChangedWithIt) {
  EXPECT_EQ(between(kRedis, with(resource("redis", 4), [](auto& meta) { meta.status_digest = 9; })), "UPDATED");
}

TEST(Changes, StatusAloneIsStatusUpdated) {
  EXPECT_EQ(between(kRedis, with(kRedis, [](auto& meta) { meta.status_digest = 9; })), "STATUS_UPDATED");
  EXPECT_EQ(between(kRedis, with(kRedis, [](auto& meta) { meta.observed_generation = 3; })), "STATUS_UPDATED");
}

TEST(Changes, LabelsAndAnnotationsAreMetadataUpdated) {
  const auto now = with(kRedis, [](auto& meta) { meta.rest_digest = 9; });
  EXPECT_EQ(between(kRedis, now), "METADATA_UPDATED");
  const auto both = with(now, [](auto& meta) { meta.status_digest = 9; });
  EXPECT_EQ(between(kRedis, both), "STATUS_UPDATED");
  EXPECT_TRUE(changes_between(kRedis, both).at(0).metadata_changed);
}

TEST(Changes, AKindWithoutGenerationsIsUpdatedByItsDigest) {
  const auto before = resource("credentials", 0);
  EXPECT_EQ(between(before, with(before, [](auto& meta) { meta.rest_digest = 9; })), "UPDATED");
}

TEST(Changes, TheBeginningOfADeletionIsUpdated) {
  const auto deleting = with(kRedis, [](auto& meta) { meta.deleting = true; });
  EXPECT_EQ(between(kRedis, deleting), "UPDATED");
  EXPECT_EQ(between(deleting, deleting), "");
}

TEST(Changes, AnotherUidIsDeletedAndCreated) {
  const auto other = with(kRedis, [](auto& meta) { meta.uid = "other"; });
  const auto changes = changes_between(kRedis, other);
  ASSERT_EQ(between(kRedis, other), "DELETED CREATED");
  EXPECT_EQ(changes[0].resource, kRedis);
  EXPECT_EQ(changes[1].resource, other);
}

TEST(Changes, CarryTheFormerResource) {
  const auto changes = changes_between(kRedis, resource("redis", 4));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].resource.generation, 4);
  EXPECT_EQ(changes[0].before->generation, 3);
}

TEST(ChangeEvents, HaveTheFormOfTheRfc) {
  auto now = resource("redis-master", 4);
  now.observed_generation = 3;
  const auto change = changes_between(resource("redis-master", 3), now).at(0);
  const ChangeEvent event = event_of(change, "op-1-7", std::chrono::system_clock::time_point(1'500ms));
  EXPECT_EQ(render(event),
            R"({"specversion":"1.0","id":"op-1-7","source":"watcher/prismbackend","type":"prismbackend.updated",)"
            R"("subject":"infrastructure/redis-master","time":"1970-01-01T00:00:01.500Z",)"
            R"("datacontenttype":"application/json","data":{"resourceUid":"uid-redis-master",)"
            R"("apiVersion":"prism.io/v1alpha1","kind":"PrismBackend","changeType":"UPDATED","generation":4,)"
            R"("observedGeneration":3}})");
}

TEST(ChangeEvents, NameEachPublishedType) {
  const auto type_of = [](ChangeType type) { return event_of({type, kRedis, {}, false}, "", {}).type; };
  EXPECT_EQ(type_of(ChangeType::created), "prismbackend.created");
  EXPECT_EQ(type_of(ChangeType::updated), "prismbackend.updated");
  EXPECT_EQ(type_of(ChangeType::deleted), "prismbackend.deleted");
  EXPECT_EQ(type_of(ChangeType::status_updated), "prismbackend.status_updated");
}

TEST(ChangeEvents, OfAResourceWithoutNamespaceAndObservedGeneration) {
  auto backend = resource("redis", 1);
  backend.key.name_space.clear();
  const ChangeEvent event = event_of({ChangeType::created, backend, {}, false}, "1", {});
  EXPECT_EQ(event.subject, "redis");
  EXPECT_TRUE(render_data(event).ends_with(R"("generation":1,"observedGeneration":null})"));
}

TEST(ChangeEvents, EscapeWhatJsonCannotHold) {
  auto backend = resource("a\"b\\c\n\x01 ü € 😀 \xff \xc3", 1);
  backend.uid = "\xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82";
  const std::string data = render(event_of({ChangeType::created, backend, {}, false}, "1", {}));
  EXPECT_NE(data.find(R"(a\"b\\c\u000a\u0001 ü € 😀 \ufffd \ufffd)"), std::string::npos) << data;
  EXPECT_NE(data.find(R"("resourceUid":"\ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\ufffd \ufffd\ufffd")"), std::string::npos)
      << data;
}

}  // namespace
}  // namespace driftd::controller
