// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "http/client.hpp"
#include "world.hpp"

namespace driftd::http {
namespace {

using testing::Certificates;
using ::testing::HasSubstr;
using testing::Hosted;
using testing::Server;

struct HttpTls : ::testing::Test {
  HttpTls() {
    if (certificates != nullptr) return;  // once a process
    certificates = std::make_unique<Certificates>();
    const std::vector own{certificates->file("server.pem"), certificates->file("server.key")};
    server = std::make_unique<Server>(own);
    strict = std::make_unique<Server>(std::vector{own[0], own[1], certificates->file("ca.pem")});
  }
  Hosted hosted;
  sdk::Call call{hosted.handle()};

  /// The status, or the failure's code as a negative number.
  int ask(const Tls& tls, const std::string& url) {
    Options options;
    options.tls = tls;
    Client client(options);
    try {
      return client.send(call, {url}).status;
    } catch (const sdk::Failure& failure) {
      text = failure.what();
      return -failure.code;
    }
  }
  static Tls trusted() {
    Tls out;
    out.ca_file = certificates->file("ca.pem");
    return out;
  }

  std::string text;
  static inline std::unique_ptr<Certificates> certificates;
  static inline std::unique_ptr<Server> server, strict;
};

TEST_F(HttpTls, TrustsTheCaOfTheSettingsAsFileOrText) {
  EXPECT_EQ(ask(trusted(), server->url("/echo", "localhost")), 200) << text;
  Tls tls;
  tls.ca_pem = certificates->text("ca.pem");
  EXPECT_EQ(ask(tls, server->url("/echo", "localhost")), 200) << text;
}

TEST_F(HttpTls, RefusesAnotherCaAndNoCa) {
  Tls tls;
  tls.ca_file = certificates->file("other.pem");
  EXPECT_EQ(ask(tls, server->url("/echo", "localhost")), -DRIFTD_UNAVAILABLE);
  EXPECT_THAT(text, HasSubstr("not trusted"));
  EXPECT_EQ(ask({}, server->url("/echo", "localhost")), -DRIFTD_UNAVAILABLE);
}

TEST_F(HttpTls, RefusesAnotherNameUnlessTheSettingsNameIt) {
  EXPECT_EQ(ask(trusted(), server->url("/echo")), -DRIFTD_UNAVAILABLE);
  EXPECT_THAT(text, HasSubstr("check the CA and the server name"));
  Tls tls = trusted();
  tls.server_name = "localhost";
  EXPECT_EQ(ask(tls, server->url("/echo")), 200) << text;
  tls.server_name = "elsewhere.test";
  EXPECT_EQ(ask(tls, server->url("/echo", "localhost")), -DRIFTD_UNAVAILABLE);
}

TEST_F(HttpTls, VerificationCanBeLeftOutOnPurpose) {
  Tls tls;
  tls.verify = false;
  EXPECT_EQ(ask(tls, server->url("/echo")), 200) << text;
}

TEST_F(HttpTls, ShowsTheClientsCertificateAsFileOrText) {
  EXPECT_EQ(ask(trusted(), strict->url("/echo", "localhost")), -DRIFTD_UNAVAILABLE);
  Tls tls = trusted();
  tls.certificate_file = certificates->file("client.pem");
  tls.key_file = certificates->file("client.key");
  EXPECT_EQ(ask(tls, strict->url("/echo", "localhost")), 200) << text;
  Tls blobs = trusted();
  blobs.certificate_pem = certificates->text("client.pem");
  blobs.key_pem = certificates->text("client.key");
  EXPECT_EQ(ask(blobs, strict->url("/echo", "localhost")), 200) << text;
}

TEST_F(HttpTls, AFileThatIsNoneIsTheSettingsFault) {
  Tls tls = trusted();
  tls.ca_file = certificates->file("missing.pem");
  EXPECT_EQ(ask(tls, server->url("/echo", "localhost")), -DRIFTD_INVALID) << text;
  tls = trusted();
  tls.certificate_file = tls.key_file = certificates->file("missing.pem");
  EXPECT_EQ(ask(tls, strict->url("/echo", "localhost")), -DRIFTD_INVALID) << text;
}

}  // namespace
}  // namespace driftd::http
