// SPDX-License-Identifier: Apache-2.0
// Everything that the store accepts from a plugin is written to a record, and a record is read back completely.
#include "app/record.hpp"

#include <gmock/gmock.h>
#include <map>

#include "base/clock.hpp"
#include "unit/secrets/loop.hpp"

namespace driftd::app {
namespace {

class Records : public testing::Test {
 protected:
  Records() {
    config_.backends.resize(1), config_.backends[0].name = "orders", config_.backends[0].provider = "tester";
  }
  ~Records() override {
    from_.reset();
    to_.reset();
    threads_.join();
  }
  std::unique_ptr<store::SqliteStore> open(const std::string& name, bool keyed = false) {
    store::Settings settings;
    settings.data_dir = dir_.path() / name;
    settings.keyed = keyed;
    auto out = store::SqliteStore::open(settings, threads_.get_executor(), loop_.io.get_executor(), clock_);
    if (!out) throw std::runtime_error(out.error().message);
    return std::move(*out);
  }
  void put(const std::string& id, const std::string& body) {
    core::PageCommit page;
    page.backend.emplace();
    page.backend->uid = page.backend_uid = "0123456789abcdef";
    page.backend->name = "orders";
    page.backend->provider = page.backend->type = "tester";
    page.established = {"thing"};
    core::ResourceWrite& write = page.writes.emplace_back();
    write.next.id = {"thing", id};
    write.next.baseline = write.next.observed = body;
    const auto committed = loop_.wait(from_->commit(std::move(page)));
    ASSERT_TRUE(committed && *committed) << (*committed).error().message;
  }
  /// Fills another store from a record of this one.
  void read_back() {
    const Status saved = *loop_.wait(save_record(file_, *from_));
    ASSERT_TRUE(saved) << saved.error().message;
    std::filesystem::create_directories(dir_.path() / "to");
    std::filesystem::copy_file(dir_.path() / "from/installation.key", dir_.path() / "to/installation.key");
    to_ = open("to", true);
    const Status loaded = *loop_.wait(load_record(file_, config_, *to_));
    EXPECT_TRUE(loaded) << loaded.error().message;
  }
  std::string there(const std::string& id) {
    const auto backends = *loop_.wait(to_->backends());
    if (!backends || backends->empty()) return "no backend";
    std::vector<core::ResourceId> ids(1, core::ResourceId{"thing", id});
    const auto rows = *loop_.wait(to_->load(backends->at(0).uid, std::move(ids)));
    return rows && rows->size() == 1 ? rows->at(0).baseline.value_or("none") : "not there";
  }

  test::TempDir dir_;
  SystemClock clock_;
  secrets::Loop loop_;
  asio::thread_pool threads_{1};
  config::Config config_;
  std::string file_ = dir_.file("base.json");
  std::unique_ptr<store::SqliteStore> from_ = open("from"), to_;
};

/// A body may have the maximum depth of any JSON, and in a record its line adds levels to it.
TEST_F(Records, ABodyAsDeepAsOneMayBeIsReadBack) {
  std::map<std::string, std::string> bodies;
  for (const int depth : {1, 249, 250, 251, 254, 255, 256}) {
    const std::string within(static_cast<std::size_t>(depth) - 1, '[');
    const std::string body = R"({"a":)" + within + R"("[{\"[\\")" + std::string(within.size(), ']') + "}";
    ASSERT_TRUE(core::parse(body)) << depth;
    put("t" + std::to_string(depth), bodies["t" + std::to_string(depth)] = body);
  }
  read_back();
  for (const auto& [id, body] : bodies) EXPECT_EQ(there(id), body) << id;
}

TEST_F(Records, ABodyAsLongAsOneMayBeIsReadBack) {
  const std::string body = R"({"a":")" + std::string(6u << 20, 'x') + R"("})";
  put("long", body);
  read_back();
  EXPECT_TRUE(there("long") == body);
}

}  // namespace
}  // namespace driftd::app
