// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <algorithm>
#include <random>

#include "driftd/consumer/credentials.hpp"

namespace driftd::consumer {
namespace {

using Scheme = CredentialReference::Scheme;

TEST(CredentialReferenceTest, EachFormIsParsedAndRenderedAgain) {
  for (const char* text : {"env:REDIS_PASSWORD", "env:_x9", "file:/run/secrets/redis/password", "file:/a b/ü",
                           "k8s:shop/cache#redis-password", "k8s:a/b.c-d.e#.dockerconfigjson", "k8s:n-1/x#A_b.c-9",
                           "agent:orders-cache#file:redis/password", "agent:a#k8s:shop/cache#password"}) {
    const auto parsed = parse_reference(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
    EXPECT_EQ(render(*parsed), text);
  }
  const auto secret = parse_reference("k8s:shop/cache#redis-password");
  EXPECT_EQ(*secret, (CredentialReference{Scheme::k8s, "cache", "shop", "redis-password"}));
  const auto agent = parse_reference("agent:orders#file:/a#b");
  EXPECT_EQ(*agent, (CredentialReference{Scheme::agent, "file:/a#b", "orders", ""}));
}

TEST(CredentialReferenceTest, WhatCouldLeadElsewhereIsRefusedAndNeverQuoted) {
  using namespace std::string_literals;
  const std::string bad[] = {"",
                             "hunter2",
                             ":",
                             "env:",
                             "env:9A",
                             "env:A-B",
                             "env:A=B",
                             "env:A B",
                             "env:"s + std::string(256, 'A'),
                             "ENV:A",
                             " env:A",
                             "env:A ",
                             "env:A\n",
                             "env:A\0B"s,
                             "file:",
                             "file:/",
                             "file:relative",
                             "file://host/x",
                             "file:/a/../b",
                             "file:/a/./b",
                             "file:/a/..",
                             "file:/a//b",
                             "file:/a/",
                             "file:/a\nb",
                             "file:/a\0b"s,
                             "file:/" + std::string(4'096, 'a'),
                             "k8s:",
                             "k8s:a",
                             "k8s:a/b",
                             "k8s:a#b",
                             "k8s:/b#c",
                             "k8s:a/#c",
                             "k8s:a/b#",
                             "k8s:a#b/c",
                             "k8s:A/b#c",
                             "k8s:a/B#c",
                             "k8s:a_/b#c",
                             "k8s:-a/b#c",
                             "k8s:a-/b#c",
                             "k8s:a/-b#c",
                             "k8s:a/b-#c",
                             "k8s:a/b..c#d",
                             "k8s:a/.b#c",
                             "k8s:a/b.#c",
                             "k8s:../b#c",
                             "k8s:a/..#c",
                             "k8s:a/b/c#d",
                             "k8s:a/b?x=1#c",
                             "k8s:a/b%2f#c",
                             "k8s:a/b#c d",
                             "k8s:a/b#..",
                             "k8s:a/b#.",
                             "k8s:a/b#..x",
                             "k8s:a/b#c/d",
                             "k8s:a/b#c#d",
                             "k8s:a.b/c#d",
                             "k8s:" + std::string(64, 'a') + "/b#c",
                             "k8s:a/" + std::string(254, 'b') + "#c",
                             "k8s:a/b#" + std::string(254, 'c'),
                             "k8s:a/b\r\nX: y#c",
                             "agent:",
                             "agent:orders",
                             "agent:#file:/a",
                             "agent:orders#",
                             "agent:orders#hunter2",
                             "agent:a b#file:/a",
                             "agent:a/b#file:/a",
                             "agent:*#file:/a",
                             "agent:a\n#file:/a",
                             "agent:a#file:/a\r\nX: y",
                             "agent:" + std::string(129, 'a') + "#file:/a",
                             "agent:a#file:/" + std::string(4'200, 'a'),
                             "exec:/bin/sh",
                             "http://x/y"};
  for (const auto& text : bad) {
    const auto parsed = parse_reference(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::invalid);
    EXPECT_NE(parsed.error().message.find("credential reference: "), std::string::npos);
    if (text.size() > 6) {
      EXPECT_EQ(parsed.error().message.find(text), std::string::npos) << "it may be a password";
    }
  }
}

/// Texts of the pieces that the grammar is made of, with mistakes: what is accepted must be safe in a path and in a
/// URL.
TEST(CredentialReferenceTest, OfAHundredThousandRandomTextsOnlySafeOnesAreAccepted) {
  std::mt19937 random(17);
  const std::string pieces[] = {"env:", "file:", "k8s:", "/",   "#",  ".", "..", "a",  "Z",
                                "9",    "-",     "_",    "%",   "?",  "&", " ",  "\n", std::string(1, '\0'),
                                "\xff", "ns",    "name", "key", "//", ":", "@",  "\\", "*"};
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text = pieces[random() % 3];
    for (auto left = random() % 8; left > 0; --left) text += pieces[random() % std::size(pieces)];
    const auto parsed = parse_reference(text);
    if (!parsed) continue;
    ++accepted;
    ASSERT_EQ(render(*parsed), text) << "nothing is dropped or added";
    for (const char c : text) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << text;
    if (parsed->scheme == Scheme::file) {
      ASSERT_EQ(parsed->name.find("/../"), std::string::npos);
      ASSERT_FALSE(parsed->name.ends_with("/.."));
    }
    if (parsed->scheme == Scheme::k8s) {
      const std::string url = parsed->space + "/" + parsed->name;
      ASSERT_EQ(url.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-./"), std::string::npos) << url;
      ASSERT_EQ(url.find(".."), std::string::npos);
      ASSERT_EQ(std::count(url.begin(), url.end(), '/'), 1);
    }
  }
  EXPECT_GT(accepted, 1'000) << "the test must reach what is accepted";
}

}  // namespace
}  // namespace driftd::consumer
