// SPDX-License-Identifier: Apache-2.0
// The change log's two sides without a store: what an entry looks like, and what the receiver refuses.
#include <gmock/gmock.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "grpc/change_log_client.hpp"
#include "grpc/change_log_entry.hpp"
#include "grpc/change_log_line.hpp"
#include "grpc/change_log_server.hpp"
#include "support/operations.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

using core::ChangeEntry;
using nlohmann::json;
using Answer = core::ChangeLogReceiver::Answer;
using Verdict = Answer::Verdict;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ChangeEntry entry_of(int number, std::size_t padding = 0) {
  ChangeEntry out;
  out.sequence = number;
  out.operation = ended_operation(number, padding);
  return out;
}

json line_of(const ChangeEntry& entry) { return json::parse(rpc::render_line(rpc::make_entry(entry)).value()); }

TEST(ChangeLogLine, HasTheFieldsOfTheOnePager) {
  ChangeEntry entry = entry_of(7);
  entry.operation.reason = "drifted back";
  const json line = line_of(entry);
  EXPECT_EQ(line.at("timestamp"), "2025-10-09T08:53:20.001Z");
  EXPECT_EQ(line.at("provider"), "redis:1.0.0");
  EXPECT_EQ(line.at("api_version"), "redis/v1");
  EXPECT_EQ(line.at("kind"), "topic");
  EXPECT_EQ(line.at("name"), "orders-7");
  EXPECT_EQ(line.at("external_name"), "id-7");
  EXPECT_EQ(line.at("operation"), "update");
  EXPECT_EQ(line.at("desired").at("config").at("retention.ms"), "604800000");
  EXPECT_EQ(line.at("observed").at("config").at("retention.ms"), "3600000");
  EXPECT_EQ(line.at("result"), json({{"status", "success"}}));
  EXPECT_EQ(line.at("operation_id"), "op-0000000000000007");
  EXPECT_EQ(line.at("sequence"), 7);
  EXPECT_EQ(line.at("digest"), std::string(64, 'a'));
  EXPECT_EQ(line.at("trace_id"), std::string(32, 'b'));
  EXPECT_EQ(line.at("details").at("commands"), "CONFIG SET maxmemory-policy noeviction");
  EXPECT_EQ(line.at("details").at("paths"), "config[\"retention.ms\"]");
  EXPECT_EQ(line.at("details").at("reason"), "drifted back");
  EXPECT_EQ(line.at("details").count("damage"), 0u);
}

TEST(ChangeLogLine, AFailureIsAnErrorObject) {
  ChangeEntry entry = entry_of(1);
  entry.operation.state = core::EnforcementState::rolled_back;
  entry.operation.text = "only one of two values stood";
  EXPECT_EQ(
      line_of(entry).at("result"),
      json({{"status", "error"}, {"error", {{"code", "rolled_back"}, {"message", "only one of two values stood"}}}}));
}

TEST(ChangeLogLine, NumbersLoseNothingAndControlCharactersAreEscaped) {
  ChangeEntry entry = entry_of(1);
  entry.operation.desired = R"({"big":18446744073709551617,"exact":1.10,"text":"a\nb"})";
  entry.operation.observed = "{\"text\":\"\xc2\x9b\"}";
  const std::string line = rpc::render_line(rpc::make_entry(entry)).value();
  EXPECT_THAT(line, AllOf(HasSubstr(R"("big":18446744073709551617)"), HasSubstr(R"("exact":1.10)"),
                          HasSubstr(R"("text":"a\nb")"), HasSubstr(R"(\u009b)")));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(ChangeLogLine, WithoutItsStatesItSaysWhy) {
  ChangeEntry entry = entry_of(1);
  entry.bare = true;
  entry.why_bare = "the receiver refused the whole entry: too large";
  const json line = line_of(entry);
  EXPECT_EQ(line.at("omitted"), entry.why_bare);
  EXPECT_EQ(line.count("desired") + line.count("observed"), 0u);
}

class LinesInMemory final : public rpc::ChangeLogOutput {
 public:
  Status write(const std::vector<std::string>& lines) override {
    if (!fault.empty()) return fail(Code::unavailable, fault);
    all.insert(all.end(), lines.begin(), lines.end());
    return {};
  }
  std::vector<std::string> all;
  std::string fault;
};

class ChangeLogServed : public testing::Test {
 protected:
  ChangeLogServed() { settings_.socket = dir_.file("run/log.sock"); }
  ~ChangeLogServed() override {
    asio::post(core_, [this] {
      if (client_) client_->stop();
      server_.reset();
    });
    guard_.reset();
    thread_.join();
  }
  Status serve() {
    auto opened = rpc::ChangeLogServer::open(settings_, output_, core_.get_executor());
    if (!opened) return fail(opened.error());
    server_ = std::move(*opened);
    return on_core([&] { return server_->start(); });
  }
  template <class F>
  std::invoke_result_t<F> on_core(F f) {
    std::packaged_task<std::invoke_result_t<F>()> task(std::move(f));
    auto result = task.get_future();
    asio::post(core_, [&task] { task(); });
    return result.get();
  }
  Answer send(std::vector<ChangeEntry> entries) {
    if (!client_) {
      rpc::ChangeLogTarget target;
      target.socket = settings_.socket;
      client_ = rpc::open_change_log(std::move(target), "test", "west", core_.get_executor());
    }
    return asio::co_spawn(core_, client_->write(std::move(entries)), asio::use_future).get();
  }

  TempDir dir_;
  rpc::ChangeLogServerSettings settings_;
  LinesInMemory output_;
  asio::io_context core_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_ = asio::make_work_guard(core_);
  std::thread thread_{[this] { core_.run(); }};
  std::unique_ptr<rpc::ChangeLogServer> server_;
  std::unique_ptr<core::ChangeLogReceiver> client_;
};

TEST_F(ChangeLogServed, EntriesAreLinesAndEachIsAcknowledged) {
  ASSERT_TRUE(serve());
  const Answer answer = send({entry_of(1), entry_of(2)});
  EXPECT_EQ(answer.verdict, Verdict::answered) << answer.text;
  EXPECT_THAT(answer.refusals, ElementsAre("", ""));
  ASSERT_THAT(output_.all, SizeIs(2));
  const json line = json::parse(output_.all[1]);
  EXPECT_EQ(line.at("sequence"), 2);
  EXPECT_EQ(line.at("agent"), "test");
  EXPECT_EQ(line.at("cluster"), "west");
}

TEST_F(ChangeLogServed, AnOversizeEntryIsRefusedByNameAndTheOthersAreWritten) {
  settings_.max_entry_bytes = 20'000;
  ASSERT_TRUE(serve());
  const Answer answer = send({entry_of(1), entry_of(2, 30'000), entry_of(3)});
  ASSERT_THAT(answer.refusals, SizeIs(3));
  EXPECT_THAT(answer.refusals[1],
              AllOf(HasSubstr("this receiver takes 20000 at most"), HasSubstr("--max-entry-bytes")));
  EXPECT_THAT(output_.all, SizeIs(2));
}

TEST_F(ChangeLogServed, AStateThatIsNoObjectAndAnEntryWithoutAnIdAreRefused) {
  ASSERT_TRUE(serve());
  ChangeEntry broken = entry_of(1), nameless = entry_of(2);
  broken.operation.observed = "{";
  nameless.operation.id.clear();
  const Answer answer = send({broken, nameless});
  ASSERT_THAT(answer.refusals, SizeIs(2));
  EXPECT_THAT(answer.refusals[0], HasSubstr("observed is not valid JSON"));
  EXPECT_THAT(answer.refusals[1], HasSubstr("no operation_id"));
  EXPECT_THAT(output_.all, IsEmpty());
}

TEST_F(ChangeLogServed, AnOutputThatFailsBlamesNoEntry) {
  ASSERT_TRUE(serve());
  output_.fault = "write log: No space left on device";
  for (int i = 0; i < 3; ++i) {
    const Answer answer = send({entry_of(1)});
    EXPECT_EQ(answer.verdict, Verdict::busy);
    EXPECT_THAT(answer.text, HasSubstr("No space left"));
  }
  EXPECT_EQ(send({}).verdict, Verdict::busy) << "nor does asking without entries hide it";
  output_.fault.clear();
  EXPECT_EQ(send({entry_of(1)}).verdict, Verdict::answered);
}

TEST_F(ChangeLogServed, WithoutAReceiverNothingIsBlamedEither) {
  const Answer answer = send({entry_of(1)});
  EXPECT_EQ(answer.verdict, Verdict::busy);
  EXPECT_NE(answer.text, "");
}

TEST_F(ChangeLogServed, OnlyAStaleSocketIsReplaced) {
  std::filesystem::create_directories(dir_.path() / "run");
  dir_.write("run/log.sock", "not a socket");
  const Status file = serve();
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, AllOf(HasSubstr("--listen: "), HasSubstr("is not a socket")));
  std::filesystem::remove(settings_.socket);
  ASSERT_TRUE(serve());
  LinesInMemory other_output;
  auto other = rpc::ChangeLogServer::open(settings_, other_output, core_.get_executor());
  const Status second = on_core([&] { return (*other)->start(); });
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("a server answers"));
  EXPECT_EQ(send({entry_of(1)}).verdict, Verdict::answered) << "the first one still serves";
}

TEST_F(ChangeLogServed, TheNetworkNeedsMutualTls) {
  settings_.socket.clear();
  settings_.address = "127.0.0.1:0";
  const Status plain = serve();
  ASSERT_FALSE(plain);
  EXPECT_THAT(plain.error().message, HasSubstr("needs mutual TLS: expected --tls-cert"));
  settings_.cert = settings_.key = settings_.client_ca = "/nonexistent.pem";
  const Status absent = serve();
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("--tls-cert: /nonexistent.pem cannot be read")) << "the option's name";
}

}  // namespace
}  // namespace driftd::test
