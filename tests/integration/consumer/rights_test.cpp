// SPDX-License-Identifier: Apache-2.0
// A consumer that has the rights of docs/consume.md and no others, and whose durable consumers somebody deletes.
#include <nats/nats.h>

#include "world.hpp"

namespace driftd::test {
namespace {

class IdleFactory final : public dc::SlotFactory {
 public:
  class IdleSlot final : public dc::Slot {
   public:
    dc::Status update_credentials(const dc::SlotConfig&) override { return {}; }
    void disconnect() override {}
  };
  dc::Result<std::shared_ptr<dc::Slot>> connect(const dc::SlotBinding&, const dc::SlotConfig&) override {
    return std::make_shared<IdleSlot>();
  }
};

std::string rights_of_the_page() {
  const std::string page = read_file(std::string(DRIFTD_SOURCE_DIR) + "/docs/consume.md");
  const std::size_t from = page.find("permissions = {", page.find("## Rights in NATS"));
  return page.substr(from, page.find("```", from) - from);
}

/// Deletes every durable consumer of the stream.
int delete_consumers(const std::string& url) {
  natsConnection* connection = nullptr;
  jsCtx* stream = nullptr;
  jsConsumerNamesList* names = nullptr;
  int deleted = 0;
  if (natsConnection_ConnectTo(&connection, url.c_str()) == NATS_OK &&
      natsConnection_JetStream(&stream, connection, nullptr) == NATS_OK &&
      js_ConsumerNames(&names, stream, "DRIFT", nullptr, nullptr) == NATS_OK) {
    for (int i = 0; i < names->Count; ++i) {
      deleted += js_DeleteConsumer(stream, "DRIFT", names->List[i], nullptr, nullptr) == NATS_OK ? 1 : 0;
    }
  }
  jsConsumerNamesList_Destroy(names);
  jsCtx_Destroy(stream);
  natsConnection_Destroy(connection);
  return deleted;
}

TEST(ConsumerRights, OfThePageSufficeAlsoForADurableConsumerThatWasDeleted) {
  NatsServer server("accounts: { APP: { jetstream: enabled, users: [\n  { user: app, password: pw,\n" +
                    rights_of_the_page() + "  }\n  { user: root, password: root }\n] } }\n");
  auto sink = at(server);
  sink.user = sink.password = "root";
  RelayRunner agent(nats_sink(sink));
  TempDir dir;
  Lines lines;
  auto settings = runner_settings(server, {{"state_store", "cache", "", {}}}, lines);
  settings.nats.user = "app";
  settings.nats.password = dc::Secret("pw");
  auto runner =
      dc::PatternRunner::create(settings, dc::file_source(dir.write("b.json", R"({"cache": {"endpoint": "x:1"}})")),
                                std::make_shared<IdleFactory>());
  ASSERT_TRUE(runner) << runner.error().message;
  ASSERT_TRUE((*runner)->start());
  agent.add(event_of("cache", 1, "updated", core::ChangeType::updated));
  ASSERT_TRUE(eventually([&] { return lines.count("UPDATED for backend cache") == 1; })) << lines.text();
  ASSERT_TRUE(subscribed(**runner)) << lines.text();
  ASSERT_EQ(delete_consumers("nats://root:root@" + server.address()), 2) << "of the backend, and of the agents";
  agent.add(event_of("cache", 2, "credentials.rotated", core::ChangeType::credential_rotated));
  EXPECT_TRUE(eventually([&] { return lines.contain("CREDENTIAL_ROTATED for backend cache"); })) << lines.text();
  EXPECT_EQ(lines.count("UPDATED for backend cache"), 1) << "it continues after the last event";
}

}  // namespace
}  // namespace driftd::test
