// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <boost/asio/steady_timer.hpp>
#include <cstdlib>

#include "loop.hpp"
#include "secrets/credential_answers.hpp"

namespace driftd::secrets {
namespace {

namespace fs = std::filesystem;
using config::CredentialUse;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using Texts = std::vector<std::string>;
using Answer = Result<std::vector<Secret>>;

class Answers : public testing::Test {
 protected:
  Answers() {
    ::setenv("DRIFTD_TEST_USER", "env-canary", 1);
    write("user", "app");
    write("password", "file-canary\n");
    uses_ = {{"cache", "${env:DRIFTD_TEST_USER}", CredentialUse::Kind::env, "DRIFTD_TEST_USER", {}},
             {"cache", "${file:user}", CredentialUse::Kind::file, {}, folder_.file("user")},
             {"cache", "${file:password}", CredentialUse::Kind::file, {}, folder_.file("password")},
             {"cache", "${exec:/usr/bin/token}", CredentialUse::Kind::program, {}, {}},
             {"other", "${file:other}", CredentialUse::Kind::file, {}, folder_.file("other")}};
    CredentialNeeds needs;
    needs.core = loop_.core.get_executor();
    needs.io = loop_.io.get_executor();
    needs.clock = &clock_;
    needs.uses = [this](const std::string& backend) {
      std::vector<CredentialUse> out;
      for (const auto& use : uses_) {
        if (use.backend == backend) out.push_back(use);
      }
      return out;
    };
    needs.audit = [this](core::AuditEntry line) { return write_line(std::move(line)); };
    answers_ = std::make_unique<CredentialAnswers>(std::move(needs));
    grant({.uid = 1001});
  }
  static Task<Status> result(Status status) { co_return status; }
  Task<Status> write_line(core::AuditEntry line) {
    if (!audit_) return result(audit_);
    lines_.push_back(std::move(line));
    return result({});
  }
  struct Given {
    std::optional<std::uint32_t> uid{}, gid{};
    std::string certificate{}, token{};
    Texts backends = {"cache"};
    int per_minute = 300;
  };
  void grant(const Given& given) {
    CredentialGrant one;
    one.uid = given.uid;
    one.gid = given.gid;
    one.certificate = given.certificate;
    one.token = given.token;
    one.backends = given.backends;
    answers_->set_grants({one}, given.per_minute);
  }
  /// Writes the file as a program that edits it in place does.
  void write(const std::string& name, const std::string& text) const {
    folder_.write(name, text);
    fs::permissions(folder_.file(name), fs::perms(0600));
  }
  static core::CredentialCaller process(std::int64_t uid, std::vector<std::uint32_t> gids = {}) {
    core::CredentialCaller out;
    out.name = "user" + std::to_string(uid);
    out.process = {uid, 5, 4711, {}};
    out.gids = std::move(gids);
    out.confidential = true;
    return out;
  }
  static core::CredentialCaller client(const Texts& certificates, const std::string& token = {}) {
    core::CredentialCaller out;
    out.name = token.empty() ? "cert:" + certificates.front() : "token:" + token;
    out.certificates = certificates;
    out.token = token;
    out.confidential = true;
    return out;
  }
  Answer ask(Texts references, std::string backend = "cache") {
    return ask_as(process(1001), std::move(references), std::move(backend));
  }
  Answer ask_as(core::CredentialCaller caller, Texts references = {"${file:password}"}, std::string backend = "cache") {
    core::CredentialRequest request{std::move(caller), std::move(backend), std::move(references)};
    auto out = loop_.wait(answers_->resolve(std::move(request)));
    return out ? std::move(*out) : fail(Code::deadline, "the test waited too long");
  }
  static Texts texts(const Answer& answer) {
    if (!answer) return {"error: " + answer.error().message};
    Texts out;
    for (const auto& value : *answer) out.emplace_back(value.reveal());
    return out;
  }
  static Code code(const Answer& answer) { return answer ? Code::ok : answer.error().code; }

  const test::TempDir folder_;
  Loop loop_;
  SystemClock clock_;
  std::vector<CredentialUse> uses_;
  Status audit_;
  std::vector<core::AuditEntry> lines_;
  std::unique_ptr<CredentialAnswers> answers_;
};

TEST_F(Answers, ValuesComeInTheOrderOfTheReferencesInBothFormsAndWithALineEach) {
  EXPECT_EQ(texts(ask({"${file:password}", "env:DRIFTD_TEST_USER", "file:user"})),
            (Texts{"file-canary", "env-canary", "app"}));
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_EQ(lines_[0].actor, "user1001");
  EXPECT_EQ(lines_[0].caller.pid, 4711);
  EXPECT_EQ(lines_[0].verb, "resolve");
  EXPECT_EQ(lines_[0].backend, "cache");
  EXPECT_EQ(lines_[0].subject, "file:password, env:DRIFTD_TEST_USER, file:user");
  EXPECT_EQ(lines_[0].outcome, "");
}

TEST_F(Answers, OnlyWhoHoldsAGrantForTheBackendGetsAValue) {
  EXPECT_EQ(code(ask_as(process(1002))), Code::denied);
  EXPECT_EQ(code(ask_as(process(0))), Code::denied) << "root must be named, too";
  EXPECT_EQ(code(ask_as(client({"1001"}))), Code::denied) << "a name is not a uid";
  EXPECT_EQ(code(ask({"${file:other}"}, "other")), Code::denied);
  EXPECT_EQ(code(ask({"${file:password}"}, "nowhere")), Code::denied) << "nobody learns which backends exist";
  grant({.gid = 77});
  EXPECT_EQ(code(ask_as(process(1001, {5, 77}))), Code::ok);
  EXPECT_EQ(code(ask_as(process(1001, {5}))), Code::denied);
  grant({.certificate = "order-*"});
  EXPECT_EQ(code(ask_as(client({"x", "order-runner"}))), Code::ok);
  EXPECT_EQ(code(ask_as(client({"border-runner"}))), Code::denied);
  EXPECT_EQ(code(ask_as(client({}, "order-ci"))), Code::denied) << "a token's name is not a certificate's";
  grant({.token = "ci"});
  EXPECT_EQ(code(ask_as(client({}, "ci"))), Code::ok);
  EXPECT_EQ(code(ask_as(client({"ci"}))), Code::denied);
  grant({.uid = 1001, .backends = {"c*"}});
  EXPECT_EQ(code(ask({"${file:password}"})), Code::ok);
  answers_->set_grants({}, 300);
  EXPECT_EQ(code(ask({"${file:password}"})), Code::denied) << "without grants nobody may";
}

TEST_F(Answers, NothingIsSentOverPlainTcpAndNothingToAPluginInTheAgentItself) {
  auto plain = process(1001);
  plain.confidential = false;
  EXPECT_THAT(ask_as(plain).error().message, HasSubstr("plain TCP"));
  auto self = process(1001);
  self.process.pid = ::getpid();
  EXPECT_EQ(code(ask_as(self)), Code::denied);
}

TEST_F(Answers, WhatIsNotAReferenceOfTheBackendIsRefusedAndNeverRepeated) {
  write("other", "other-canary");
  const std::string path = folder_.file("other");
  for (const std::string& wrong :
       {std::string("${file:other}"), "file:" + path, "${file:" + path + "}", std::string("file:./password"),
        std::string("file:../password"), std::string("${file:password"), std::string("file:password}"),
        std::string("${${file:password}}"), std::string("file:/etc/shadow"), std::string("env:PATH"),
        std::string("k8s:shop/cache#password"), std::string("hunter2-canary"), std::string("file:password\0", 14),
        std::string("file:password\n")}) {
    const auto answer = ask({"${file:password}", wrong});
    EXPECT_EQ(code(answer), Code::not_found) << wrong;
    EXPECT_THAT(answer.error().message, Not(HasSubstr(wrong)));
  }
  for (const auto& line : lines_) {
    EXPECT_EQ(line.subject, "file:password, (not one of this backend)");
    EXPECT_THAT(line.outcome, HasSubstr("not_found: reference 2"));
  }
  EXPECT_EQ(code(ask({"${exec:/usr/bin/token}"})), Code::unsupported);
  EXPECT_EQ(code(ask({})), Code::invalid);
  EXPECT_EQ(code(ask({""})), Code::invalid);
  EXPECT_EQ(code(ask(Texts(33, "${file:user}"))), Code::invalid);
  EXPECT_EQ(code(ask({std::string(5'000, 'x')})), Code::invalid);
  EXPECT_EQ(code(ask({"${file:user}"}, "")), Code::invalid);
}

TEST_F(Answers, WithoutAnAuditLineThereIsNoAnswer) {
  audit_ = fail(Code::unavailable, "database or disk is full");
  const auto answer = ask({"${file:password}"});
  EXPECT_EQ(code(answer), Code::unavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("database or disk is full"));
  audit_ = {};
  EXPECT_EQ(texts(ask({"${file:password}"})), Texts{"file-canary"});
}

TEST_F(Answers, AValueThatCannotBeReadIsAnErrorWithALineAndWithoutTheOthers) {
  fs::remove(folder_.file("user"));
  EXPECT_EQ(code(ask({"${file:password}", "${file:user}"})), Code::unavailable);
  write("user", "app");
  fs::permissions(folder_.file("user"), fs::perms(0666));
  EXPECT_EQ(code(ask({"${file:user}"})), Code::denied) << "others may write it";
  fs::remove(folder_.file("user"));
  ASSERT_EQ(::mkfifo(folder_.file("user").c_str(), 0600), 0);
  EXPECT_EQ(code(ask({"${file:user}"})), Code::invalid) << "a pipe would be read only once";
  ::unsetenv("DRIFTD_TEST_USER");
  EXPECT_EQ(code(ask({"${env:DRIFTD_TEST_USER}"})), Code::unavailable);
  ASSERT_THAT(lines_, SizeIs(4));
  for (const auto& line : lines_) EXPECT_THAT(line.outcome, Not(IsEmpty()));
}

TEST_F(Answers, EachRequestReadsTheFileAsItIsNow) {
  EXPECT_EQ(texts(ask({"${file:password}"})), Texts{"file-canary"});
  write("password", "next-canary");
  EXPECT_EQ(texts(ask({"${file:password}"})), Texts{"next-canary"});
}

/// A user and a password that are replaced one after the other, while they are being read: 50 ms after the first
/// reading and long before the second, whatever the machine does, because both times are timers of one executor.
TEST_F(Answers, ValuesOfOneRequestBelongTogether) {
  write("user", "next-user");
  asio::steady_timer replaced(loop_.core, std::chrono::milliseconds(50));
  replaced.async_wait([this](const boost::system::error_code&) { write("password", "next-password"); });
  EXPECT_EQ(texts(ask({"${file:user}", "${file:password}"})), (Texts{"next-user", "next-password"}));
}

TEST_F(Answers, TenThousandRequestsGetTheRateAndFillNothing) {
  grant({.uid = 1001, .per_minute = 60});
  std::map<Code, int> codes;
  for (int i = 0; i < 10'000; ++i) ++codes[code(ask({"${env:DRIFTD_TEST_USER}"}))];
  EXPECT_GE(codes[Code::ok], 60);
  EXPECT_LT(codes[Code::ok], 60 + 60) << "one a second more while the test runs";
  EXPECT_EQ(codes[Code::ok] + codes[Code::throttled], 10'000);
  EXPECT_LT(lines_.size(), static_cast<std::size_t>(codes[Code::ok]) + 15);
  EXPECT_EQ(code(ask_as(process(1002))), Code::denied) << "the limit is each caller's own";
}

TEST_F(Answers, RefusalsOfOneCallerAreCountedInItsNextLine) {
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(code(ask_as(process(1002))), Code::denied);
  EXPECT_THAT(lines_, SizeIs(testing::AllOf(testing::Ge(5u), testing::Lt(15u))));
  for (const auto& line : lines_) EXPECT_THAT(line.outcome, HasSubstr("denied"));
  const std::size_t before = lines_.size();
  EXPECT_EQ(code(ask_as(process(1003))), Code::denied);
  EXPECT_THAT(lines_, SizeIs(before + 1)) << "another caller has lines of its own";
}

TEST_F(Answers, AThousandCallersAreRememberedAndMoreAreToldToWait) {
  grant({.uid = 1001, .backends = {"*"}});
  for (int uid = 2'000; uid < 2'000 + 1'023; ++uid) EXPECT_EQ(code(ask_as(process(uid))), Code::denied);
  EXPECT_LT(lines_.size(), 60u) << "30 refusals a minute of all callers";
  EXPECT_EQ(code(ask({"${env:DRIFTD_TEST_USER}"})), Code::ok);
  EXPECT_EQ(code(ask_as(process(5'000))), Code::throttled);
  EXPECT_EQ(code(ask({"${env:DRIFTD_TEST_USER}"})), Code::ok) << "who is known is still served";
}

}  // namespace
}  // namespace driftd::secrets
