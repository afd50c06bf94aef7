// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <algorithm>
#include <random>

#include "core/value/schema.hpp"

namespace driftd::core {
namespace {

AttributeRule rule(ValueType type, std::string unit = "") {
  AttributeRule out;
  out.type = type;
  out.unit = std::move(unit);
  return out;
}
std::string normal(const AttributeRule& rule, std::string_view json) {
  const auto out = normalise(rule, parse(json).value());
  return out ? *out : "invalid";
}
std::string normal(ValueType type, std::string_view text, std::string unit = "") {
  const auto out = normalise(rule(type, std::move(unit)), Value(std::string(text)));
  return out ? *out : "invalid";
}

TEST(Normalise, DecimalsAreExactAndShort) {
  for (const auto* text : {"1", "1.0", "1e0", "01", "+1", "10e-1", "0.1E1", " 1 "})
    EXPECT_EQ(normal(ValueType::decimal, text), "1") << text;
  EXPECT_EQ(normal(ValueType::decimal, "-0.00"), "0");
  EXPECT_EQ(normal(ValueType::decimal, "0.30000000000000000000000000000004"), "0.30000000000000000000000000000004");
  EXPECT_EQ(normal(ValueType::decimal, "1e-3"), "0.001");
  EXPECT_EQ(normal(ValueType::decimal, "1e999"), "1e999");
  for (const auto* text : {"", "-", ".", "1e", "1.2.3", "0x10", "NaN", "1,5", "1e99999999999"})
    EXPECT_EQ(normal(ValueType::decimal, text), "invalid") << text;
}

TEST(Normalise, IntegersHaveNoFraction) {
  EXPECT_EQ(normal(ValueType::integer, "170141183460469231731687303715884105728"),
            "170141183460469231731687303715884105728");
  EXPECT_EQ(normal(ValueType::integer, "3.0"), "3");
  EXPECT_EQ(normal(ValueType::integer, "3.5"), "invalid");
}

TEST(Normalise, PostgresRoundsAsTheServerDoes) {
  EXPECT_EQ(normal(ValueType::bytes, "1.5MB", "postgres:8kB"), "1572864");
  EXPECT_EQ(normal(ValueType::bytes, "12kB", "postgres:8kB"), "16384");  // 1.5 pages: half to even, 2 pages
  EXPECT_EQ(normal(ValueType::bytes, "4kB", "postgres:8kB"), "0");       // 0.5 page: half to even, 0
  EXPECT_EQ(normal(ValueType::bytes, "2", "postgres:16MB"), "33554432");
  EXPECT_EQ(normal(ValueType::duration, "0.0001h", "postgres:ms"), "0");  // rounded to whole minutes first
  EXPECT_EQ(normal(ValueType::duration, "1.5d", "postgres:min"), "129600000000000");
  EXPECT_EQ(normal(ValueType::duration, "-1", "postgres:s"), "-1000000000");
  for (const auto* text : {"1gb", "1 K", "MB", "1MBx", ""})
    EXPECT_EQ(normal(ValueType::bytes, text, "postgres:8kB"), "invalid") << text;
}

TEST(Normalise, AnUnknownUnitTableIsInvalid) {
  EXPECT_EQ(normal(ValueType::bytes, "1", "furlongs"), "invalid");
  EXPECT_EQ(normal(ValueType::bytes, "1", "postgres:3MX"), "invalid");
  EXPECT_EQ(normal(ValueType::duration, "5"), "invalid");
  EXPECT_EQ(normal(ValueType::duration, "0"), "0");
}

TEST(Normalise, BytesOfOtherTables) {
  EXPECT_EQ(normal(ValueType::bytes, "2KiB"), "2048");
  EXPECT_EQ(normal(ValueType::bytes, "2KB", "si"), "2000");
  EXPECT_EQ(normal(ValueType::bytes, "4", "8kB"), "32768");
  EXPECT_EQ(normal(ValueType::bytes, "1Ki", "kubernetes"), "1024");
  EXPECT_EQ(normal(ValueType::decimal, "1n", "kubernetes"), "\"1/1000000000\"");
  for (const auto* text : {"1ki", "1KB", "Mi", "1 Mi", "1e", "--1"})
    EXPECT_EQ(normal(ValueType::decimal, text, "kubernetes"), "invalid") << text;
}

TEST(Normalise, DurationsAreRead) {
  EXPECT_EQ(normal(ValueType::duration, "-1h30m", "ms"), "-5400000000000");
  EXPECT_EQ(normal(ValueType::duration, "P1DT2H3M4.5S"), "93784500000000");
  EXPECT_EQ(normal(ValueType::duration, "P2W"), "1209600000000000");
  EXPECT_EQ(normal(ValueType::duration, "15", "redis:s"), "15000000000");
  for (const auto* text : {"P", "PT", "P1Y", "1x", "h", "1h-5m", "P1H", "P1DT", "PT1"})
    EXPECT_EQ(normal(ValueType::duration, text, "s"), "invalid") << text;
}

TEST(Normalise, PercentagesAreReadAsPercentOrRatio) {
  EXPECT_EQ(normal(ValueType::percent, "50 %"), "50");
  EXPECT_EQ(normal(ValueType::percent, "0.5", "ratio"), "50");
  EXPECT_EQ(normal(ValueType::percent, "50%", "ratio"), "50");
  EXPECT_EQ(normal(ValueType::percent, "half"), "invalid");
}

TEST(Normalise, TimestampsAreOneInstantInUtc) {
  for (const auto* text :
       {"2026-11-21T03:39:16Z", "2026-11-21 04:39:16+01", "2026-11-21t03:39:16.000z", "2026-11-20T22:09:16-05:30"}) {
    EXPECT_EQ(normal(ValueType::timestamp, text), "1795232356000000000") << text;
  }
  EXPECT_NE(normal(ValueType::timestamp, "2026-11-21T03:39:16.000000001Z"),
            normal(ValueType::timestamp, "2026-11-21T03:39:16Z"));
  EXPECT_EQ(normal(ValueType::timestamp, "1795232356", "s"), "1795232356000000000");
  EXPECT_EQ(normal(ValueType::timestamp, "infinity"), "\"infinity\"");
  EXPECT_EQ(normal(ValueType::timestamp, "2026-11-21"), normal(ValueType::timestamp, "2026-11-21 00:00:00+00"));
  EXPECT_NE(normal(ValueType::timestamp, "2026-11-22"), normal(ValueType::timestamp, "2026-11-21T00:00:00Z"));
  for (const auto* text : {"2026-02-30T00:00:00Z", "2026-11-21T03:39:16", "2026-02-30", "2026-11-21T25:00:00Z", "now"})
    EXPECT_EQ(normal(ValueType::timestamp, text), "invalid") << text;
}

TEST(Normalise, AddressesAreRefusedWhenTheyAreNone) {
  for (const auto* text : {"10.0.0.256", "::1::", "10.0.0.1/33", "x", "10.0.0.1/", "fe80::/129"})
    EXPECT_EQ(normal(ValueType::inet, text), "invalid") << text;
  for (const auto* text : {"h:99999", "h:p", "", "a b:1", "[::1", "[::1]x"})
    EXPECT_EQ(normal(ValueType::endpoint, text), "invalid") << text;
  EXPECT_EQ(normal(ValueType::endpoint, "unix:///run/x.sock"), "\"unix:/run/x.sock\"");
  EXPECT_EQ(normal(ValueType::endpoint, "h", "redis"), "\"h:6379\"");
  EXPECT_EQ(normal(ValueType::endpoint, "::1"), "\"[::1]\"");
}

TEST(Normalise, YamlErrorsAndBombsAreContained) {
  EXPECT_EQ(normal(ValueType::yaml, "a: [1"), "invalid");
  EXPECT_EQ(normal(ValueType::yaml, "a: 1\na: 2"), "invalid");
  EXPECT_EQ(normal(ValueType::yaml, "a: *missing"), "invalid");
  EXPECT_EQ(normal(ValueType::yaml, std::string(100'000, '[')), "invalid");
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string ref = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + ref;
    for (int n = 1; n < 10; ++n) bomb += "," + ref;
    bomb += "]\n";
  }
  EXPECT_EQ(normal(ValueType::yaml, bomb), "invalid");
  for (const auto* text : {"]", "}", "[]]", "{a: b}}", "- a\n]", ","})
    EXPECT_EQ(normal(ValueType::yaml, text), "invalid") << text;
  EXPECT_EQ(normal(ValueType::yaml, "--- 1\n--- 2\n"), "[1,2]");
}

TEST(Normalise, ATextThatYamlsReaderTakesForUtf16IsNoYaml) {
  const std::string one("\x01\0NUL xxx", 10), other("\x01\0NUL xxy", 10);
  EXPECT_EQ(normal(ValueType::yaml, one), "invalid")
      << "read as UTF-16 its last byte is dropped: it would equal the other";
  EXPECT_EQ(normal(ValueType::yaml, other), "invalid");
}

TEST(Normalise, AUnitOfNothingIsNoUnit) {
  EXPECT_EQ(normal(ValueType::bytes, "1MB", "postgres:0kB"), "invalid");
  EXPECT_EQ(normal(ValueType::duration, "1s", "postgres:0ms:real"), "invalid");
}

TEST(Normalise, NullIsNeverAScalar) {
  EXPECT_EQ(normal(rule(ValueType::integer), "null"), "null");
  EXPECT_EQ(normal(rule(ValueType::integer), "{}"), "invalid");
}

TEST(NormaliseProperty, ANormalFormOfANumberIsItsOwnNormalForm) {
  std::mt19937 random(5);
  for (int i = 0; i < 5'000; ++i) {
    std::string text = random() % 2 ? "-" : "";
    for (auto n = 1 + random() % 25; n > 0; --n) text += static_cast<char>('0' + random() % 10);
    if (random() % 2) text += "." + std::to_string(random() % 100'000);
    if (random() % 2) text += "e" + std::to_string(static_cast<int>(random() % 120) - 60);
    const auto once = normal(ValueType::decimal, text);
    ASSERT_NE(once, "invalid") << text;
    ASSERT_EQ(normal(ValueType::decimal, once), once) << text;
  }
}

TEST(NormaliseProperty, TextOfAnyTypeNeverCrashesAndNormalFormsOfTextTypesAreStable) {
  std::mt19937 random(11);
  const std::string alphabet = "0123456789.eE+-:/[]@%kKmMgGiPTHS \t\n#=,{}\"\\abch";
  const ValueType stable[] = {ValueType::string,   ValueType::integer,     ValueType::host,
                              ValueType::endpoint, ValueType::inet,        ValueType::cidr,
                              ValueType::version,  ValueType::enumeration, ValueType::json};
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    for (auto n = random() % 14; n > 0; --n) text += alphabet[random() % alphabet.size()];
    for (int type = 0; type <= static_cast<int>(ValueType::enumeration); ++type)
      (void)normalise(rule(static_cast<ValueType>(type), "s"), Value(text));
    for (const auto type : stable) {
      const auto once = normalise(rule(type), Value(text));
      if (!once) continue;
      const auto value = parse(*once);
      ASSERT_TRUE(value) << *once;
      if (type == ValueType::json && value->string()) continue;  // a JSON text inside a JSON text is parsed again
      ASSERT_EQ(normal(rule(type), *once), *once) << text;
    }
  }
}

constexpr const char* kEd25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFgioSfdGQSjkxOZrhrZemCV+p11MGdCLt34rPkb94y/";
constexpr const char* kOther = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP9ctueQRY85DwHRDwrHy+MYjcuhMme5kWRrLMRa3sIa";
constexpr const char* kCertificate =
    "ssh-ed25519-cert-v01@openssh.com "
    "AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29tAAAAIO4bNQl3TLq2Z4FFW+idLcKDZn/bC/"
    "1THEmMfTZr0FT7AAAAIFgioSfdGQSjkxOZrhrZemCV+p11MGdCLt34rPkb94y/AAAAAAAAAAAAAAABAAAAAm1lAAAACAAAAARyb290AAAAAAAAAAD/"
    "/////////"
    "wAAAAAAAACCAAAAFXBlcm1pdC1YMTEtZm9yd2FyZGluZwAAAAAAAAAXcGVybWl0LWFnZW50LWZvcndhcmRpbmcAAAAAAAAAFnBlcm1pdC1wb3J0LWZ"
    "vcndhcmRpbmcAAAAAAAAACnBlcm1pdC1wdHkAAAAAAAAADnBlcm1pdC11c2VyLXJjAAAAAAAAAAAAAACXAAAAB3NzaC1yc2EAAAADAQABAAAAgQDJU"
    "irD60t3+/6Mu/5nKrFUG9M2HP9bGJjAULbs7+IEIdtQNlumEdpLh4dqXyevc4hjqudtOFKgA/NZ8o5XB/IofpinzQlQyZcK4UyYWpAh1P/"
    "aVduJCoysa+qzsETqPg0qh1no0J8k9fbd43gMLdEUYz6Ik6Gpnz+"
    "yBGYX9UK4BQAAAJQAAAAMcnNhLXNoYTItNTEyAAAAgCf1yqmfyqJ4xy5lTdSCX5iMQcApOu1bgT1HFIElNOMFhTgzYb1s1EJwWnFYUHQRxLzFB1rxC"
    "LfvPsqwim2hWvv0/xlJTYNfubQ81HZUAvrDocXAZVzmg0PyUODNEB5CHJUab2SfyPL5C8B+1gguPK1I9EiBHo1bd8rgmavadeZU";

TEST(Normalise, SshKeysAreTheFingerprintsThatSshKeygenPrints) {
  const std::string expected = "[\"ssh-ed25519 SHA256:VMU3XM4ieXGrIpV5VlrXu1TUN9KHEHd99udrv63IHqg\"]";
  const std::string key = kEd25519;
  for (const auto& text : std::vector<std::string>{key, key + " alice@laptop", "  " + key + "\r\n",
                                                   "# who\n\n" + key + "\n" + key + " again"}) {
    EXPECT_EQ(normal(ValueType::ssh_key, text), expected) << text;
  }
  EXPECT_EQ(normal(ValueType::ssh_key, "# nobody\n"), "[]");
  EXPECT_NE(normal(ValueType::ssh_key, kCertificate), "invalid");
}

TEST(Normalise, OrderOfSshKeysSaysNothingButOrderOfTheLinesOfOneKey) {
  const std::string a = kEd25519, b = kOther;
  EXPECT_EQ(normal(ValueType::ssh_key, a + "\n" + b), normal(ValueType::ssh_key, b + " x\n" + a));
  EXPECT_NE(normal(ValueType::ssh_key, "no-pty " + a + "\n" + a), normal(ValueType::ssh_key, a + "\nno-pty " + a));
  EXPECT_EQ(normal(ValueType::ssh_key, "no-pty " + a + "\n" + b + "\nno-pty " + a),
            normal(ValueType::ssh_key, b + "\nno-pty " + a));
}

TEST(Normalise, OptionsOfAnSshKeyAreMeaning) {
  const std::string a = kEd25519;
  const std::string quoted = R"(command="say \"a  b\" # no comment",no-pty )";
  EXPECT_EQ(normal(ValueType::ssh_key, quoted + a + " x"), normal(ValueType::ssh_key, quoted + " " + a + " y"));
  EXPECT_NE(normal(ValueType::ssh_key, quoted + a), "invalid");
  EXPECT_NE(normal(ValueType::ssh_key, R"(command="say \"a b\" # no comment",no-pty )" + a),
            normal(ValueType::ssh_key, quoted + a));
  EXPECT_NE(normal(ValueType::ssh_key, "no-pty " + a), normal(ValueType::ssh_key, a));
}

TEST(Normalise, WhatIsNoWholeSshKeyIsNone) {
  const std::string a = kEd25519, blob = a.substr(a.find(' ') + 1);
  for (const auto& text : std::vector<std::string>{
           "ssh-ed25519", "ssh-ed25519 ", "ssh-ed25519 !!!!", "ssh-ed25519 AAAA", a.substr(0, a.size() - 1),
           a.substr(0, a.size() - 4), a + "AAAA", a + "====", "ssh-rsa " + blob, "ssh-new " + blob, blob,
           a + "\ngarbage", "\"unclosed " + a, "one two " + a, std::string("\0\0\0\0", 4), "ssh-ed25519 ////////",
           "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"}) {
    EXPECT_EQ(normal(ValueType::ssh_key, text), "invalid") << text;
  }
  EXPECT_EQ(normal(rule(ValueType::ssh_key), "{}"), "invalid");
}

TEST(Normalise, ThousandsOfSshKeysTakeNoTime) {
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "environment=\"N=" + std::to_string(i) + "\" " + kEd25519 + "\n";
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 10'000);
  const auto form = parse(normal(ValueType::ssh_key, many));
  ASSERT_TRUE(form && form->array());
  EXPECT_EQ(form->array()->size(), 10'000u);
}

}  // namespace
}  // namespace driftd::core
