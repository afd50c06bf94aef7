// SPDX-License-Identifier: Apache-2.0
#include "base/secret_text.hpp"

#include <gtest/gtest.h>

namespace driftd {
namespace {

TEST(SecretText, PrivateKeysAndPasswordsInUrlsAreCredentials) {
  for (const char* text : {"-----BEGIN RSA PRIVATE KEY-----\nMII", "redis://:p@h", "postgres://u:p@h/db", "see amqp://u:p?#x@h now",
                           "redis://u:sl/ash@h:6379", "redis://u:a:b/c@h"}) {
    EXPECT_TRUE(holds_secret(text)) << text;
  }
  for (const char* text : {"", "redis://h:6379", "https://h/path@v1", "https://h:443/a:b@c", "http://[::1]:80/x@y", "a@b:c",
                           "nats://h1:4222,nats://h2:4222"}) {
    EXPECT_FALSE(holds_secret(text)) << text;
  }
}

TEST(SecretText, WhatMayHoldOneIsWithheld) {
  for (const char* text : {"https://token@h/x", "Server=db;Pwd=hunter2;", "AccountName=a;AccountKey=abc==", "jdbc:x://h/d?password=hunter2",
                           "db:\n  password: hunter2\n", R"({"client_secret": "abc"})", "https://h/c?sv=1&sig=abc%3D",
                           "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x", "key AKIAABCDEFGHIJKLMNOP", "ghp_0123456789012345678901234567890123",
                           "users:\n- user:\n    client-key-data: LS0t", "--auth=hunter2"}) {
    EXPECT_TRUE(may_hold_secret(text)) << text;
  }
  for (const char* text : {"", "info", "max_tokens: 300", "password: ${DB_PASSWORD}", "password=", "password: null", "token_ttl=30s",
                           "https://h/x?replicas=3", "design: flat", "http://redis:6379", "secretName: tls", "tokenizer: standard"}) {
    EXPECT_FALSE(may_hold_secret(text)) << text;
  }
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
