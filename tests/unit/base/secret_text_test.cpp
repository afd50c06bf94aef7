// SPDX-License-Identifier: Apache-2.0
#include "base/secret_text.hpp"

#include <gtest/gtest.h>
#include <random>

namespace driftd {
namespace {

TEST(SecretText, PrivateKeysAndPasswordsInUrlsAreCredentials) {
  for (const char* text : {"-----BEGIN RSA PRIVATE KEY-----\nMII", "redis://:p@h", "postgres://u:p@h/db",
                           "see amqp://u:p?#x@h now", "redis://u:sl/ash@h:6379", "redis://u:a:b/c@h"}) {
    EXPECT_TRUE(holds_secret(text)) << text;
  }
  for (const char* text : {"", "redis://h:6379", "https://h/path@v1", "https://h:443/a/repo@v1.2.3",
                           "oci://registry:5000/app@sha256:9f86d081884c7d65", "http://[::1]:80/x@y", "a@b:c",
                           "nats://h1:4222,nats://h2:4222"}) {
    EXPECT_FALSE(holds_secret(text)) << text;
  }
}

TEST(SecretText, WhatMayHoldOneIsWithheld) {
  for (const char* text :
       {"https://token@h/x", "Server=db;Pwd=hunter2;", "AccountName=a;AccountKey=abc==",
        "jdbc:x://h/d?password=hunter2", "db:\n  password: hunter2\n", R"({"client_secret": "abc"})",
        "https://h/c?sv=1&sig=abc%3D", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x", "key AKIAABCDEFGHIJKLMNOP",
        "ghp_0123456789012345678901234567890123", "users:\n- user:\n    client-key-data: LS0t", "--auth=hunter2"}) {
    EXPECT_TRUE(may_hold_secret(text)) << text;
  }
  for (const char* text :
       {"", "info", "max_tokens: 300", "password: ${DB_PASSWORD}", "password=", "password: null", "token_ttl=30s",
        "https://h/x?replicas=3", "design: flat", "http://redis:6379", "secretName: tls", "tokenizer: standard"}) {
    EXPECT_FALSE(may_hold_secret(text)) << text;
  }
}

/// Passwords that begin like ports and paths, with digits and slashes, followed by other text.
std::string password_of(std::mt19937& random) {
  constexpr std::string_view kLetters = "0123456789012345678901234567890123456789/abcXYZ:@.-_~!$&*+=";
  std::string out = (random() % 8 == 0 ? "" : std::to_string(random() % 100'000)) + "/";
  for (auto more = random() % 12; more > 0; --more) out += kLetters[random() % kLetters.size()];
  return out;
}

TEST(SecretText, APasswordOfDigitsWithASlashIsCutLikeEveryOther) {
  std::mt19937 random(20261123);
  for (int i = 0; i < 20'000; ++i) {
    const std::string password = password_of(random);
    for (const std::string server : {"h", "h:6379", "db.example:5432/app", "10.0.0.7", "[::1]:80"}) {
      const std::string url = "redis://u:" + password + "@" + server;
      EXPECT_EQ(without_credentials("GET " + url + " failed"), "GET redis://" + server + " failed") << url;
      EXPECT_TRUE(holds_secret(url)) << url;
    }
  }
}

TEST(SecretText, AnImageAVersionAndAListKeepWhatStandsInThem) {
  for (const char* text :
       {"registry:5000/app@sha256:9f86d081884c7d65", "oci://registry:5000/app@sha256:9f86d081884c7d65",
        "docker://10.0.0.1:5000/a/b:1.2@sha512:aa00", "https://git.example:8443/org/repo@v1.2.3",
        "nats://h1:4222,nats://h2:4222", "host:12/path@sha256", "http://[::1]:80/x@y", "http://h:80/x?a",
        R"({"url":"https://h:443/x","mail":"a@b.example"})"}) {
    EXPECT_EQ(without_credentials(text), std::string(text).substr(0, std::string(text).find('?'))) << text;
    EXPECT_FALSE(holds_secret(text)) << text;
  }
  EXPECT_EQ(without_credentials("nats://h1:4222,nats://c:12/3@h2:2"), "nats://h1:4222,nats://h2:2");
  EXPECT_EQ(without_credentials("x://u:12/34@h/app@v1.2.3"), "x://h/app@v1.2.3");
}

TEST(SecretText, UserInfoAndQueryAreCutFromEveryUrl) {
  EXPECT_EQ(without_credentials("redis://u:p@h:6379/0?token=x"), "redis://h:6379/0");
  EXPECT_EQ(without_credentials("GET http://h/s?private_token=x: HTTP 403"), "GET http://h/s HTTP 403");
  EXPECT_EQ(without_credentials("nats://a:b@h1:1,nats://c:d@e@h2:2"), "nats://h1:1,nats://h2:2");
  EXPECT_EQ(without_credentials("https://h/#access_token=x and s3://k:s/l@b/c"), "https://h/ and s3://b/c");
  EXPECT_EQ(without_credentials("h:6379"), "h:6379");
  EXPECT_EQ(without_credentials("http://h?back=http://u:p@x"), "http://h");
}

}  // namespace
}  // namespace driftd
