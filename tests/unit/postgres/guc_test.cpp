// SPDX-License-Identifier: Apache-2.0
#include "postgres/guc.hpp"

#include <gtest/gtest.h>

namespace driftd::postgres {
namespace {

TEST(Guc, MemoryIsInBytesWhateverTheBaseUnit) {
  for (const auto& guc : {Guc{"16384", "8kB", "integer"}, Guc{"131072", "kB", "integer"}, Guc{"128", "MB", "integer"},
                          Guc{"134217728", "B", "integer"}, Guc{"8", "16MB", "integer"}}) {
    EXPECT_EQ(typed(guc).attribute, "bytes") << guc.unit;
    EXPECT_EQ(typed(guc).json, "134217728") << guc.unit;
  }
}

TEST(Guc, TimeIsInMillisecondsWhateverTheBaseUnit) {
  EXPECT_EQ(typed({"5", "min", "integer"}).json, "300000");
  EXPECT_EQ(typed({"300", "s", "integer"}).json, "300000");
  EXPECT_EQ(typed({"0.5", "ms", "real"}).json, "0.5");
  EXPECT_EQ(typed({"300", "s", "integer"}).attribute, "duration");
}

TEST(Guc, ANegativeValueIsAWordAndIsNotScaled) {
  EXPECT_EQ(typed({"-1", "8kB", "integer"}).json, "-1");
  EXPECT_EQ(typed({"-1", "min", "integer"}).json, "-1");
}

TEST(Guc, NumbersKeepTheServersDigitsAndTextsAreQuoted) {
  EXPECT_EQ(typed({"0.0025", "", "real"}).json, "0.0025");
  EXPECT_EQ(typed({"Infinity", "", "real"}).json, "\"Infinity\"");
  EXPECT_EQ(typed({"9223372036854775807", "", "integer"}).json, "9223372036854775807");
  EXPECT_EQ(typed({"a\"b", "", "string"}).json, "\"a\\\"b\"");
  EXPECT_EQ(typed({"on", "", "bool"}).json, "true");
  EXPECT_EQ(typed({"replica", "", "enum"}).attribute, "value");
}

TEST(Guc, AFileMaySayTheValueInForceInAnotherUnit) {
  EXPECT_TRUE(same_value("128MB", {"16384", "8kB", "integer"}));
  EXPECT_TRUE(same_value("5min", {"300", "s", "integer"}));
  EXPECT_TRUE(same_value("5 min", {"300000", "ms", "integer"}));
  EXPECT_TRUE(same_value("YES", {"on", "", "bool"}));
  EXPECT_TRUE(same_value("Replica", {"replica", "", "enum"}));
  EXPECT_TRUE(same_value("iso, mdy", {"ISO, MDY", "", "string"}));
  EXPECT_TRUE(same_value("0x10", {"16", "", "integer"}));
}

TEST(Guc, AFileThatSaysSomethingElseIsNotInForce) {
  EXPECT_FALSE(same_value("129MB", {"16384", "8kB", "integer"}));
  EXPECT_FALSE(same_value("300", {"300000", "ms", "integer"}));
  EXPECT_FALSE(same_value("off", {"on", "", "bool"}));
  EXPECT_FALSE(same_value("logical", {"replica", "", "enum"}));
  EXPECT_FALSE(same_value("5parsec", {"300", "s", "integer"}));
  EXPECT_FALSE(same_value("", {"300", "s", "integer"}));
}

TEST(Guc, NamesThatSpeakOfSecretsAreSecret) {
  for (const auto* name : {"primary_conninfo", "app.jwt_secret", "ssl_passphrase_command", "my.API_KEY"}) {
    EXPECT_TRUE(secret_guc(name)) << name;
  }
  for (const auto* name : {"password_encryption", "work_mem", "ssl_key_file"}) EXPECT_FALSE(secret_guc(name)) << name;
}

}  // namespace
}  // namespace driftd::postgres
