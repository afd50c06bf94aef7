// SPDX-License-Identifier: Apache-2.0
#include "core/redact.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/presentable_text.hpp"
#include "core/slow_digest.hpp"

namespace driftd::core {
namespace {

class Redaction : public testing::Test {
 protected:
  static constexpr const char* kCanary = "hunter2-canary";
  RedactionKey worker_{"aaaa1111", {1}}, store_{"bbbb2222", {2}};
  ResourceId id_{"role", "app"};
  std::shared_ptr<const KindSchema> schema_ =
      KindSchema::parse(
          R"({"schema":"driftd-schema/1","kind":"role","attributes":{"p":{"sensitive":true},"w":{"write_only":true},
          "s":{"sensitive":true,"collection":"set"},"n":{"sensitive":true,"type":"int"}}})")
          .value();

  std::string redacted(const std::string& body, const std::vector<std::string>& sensitive = {}) const {
    const auto out = redact(body, id_, *schema_, sensitive, worker_);
    return out ? *out : "error: " + out.error().message;
  }
  static DigestRef digest_at(const std::string& body, std::string_view member) {
    return as_digest(*parse(body).value().find(member)).value();
  }
};

TEST_F(Redaction, SensitiveWriteOnlyAndNamedValuesBecomeDigests) {
  const auto body =
      redacted(R"({"p":"hunter2-canary","w":"hunter2-canary","x":{"y":["hunter2-canary"]},"open":"yes"})", {"x.y[0]"});
  EXPECT_EQ(body.find(kCanary), std::string::npos) << body;
  EXPECT_NE(body.find(R"("open":"yes")"), std::string::npos);
  EXPECT_EQ(digest_at(body, "p").key_id, "aaaa1111");
  EXPECT_EQ(digest_at(body, "p").revision, kNormaliserRevision);
}

TEST_F(Redaction, DigestsAreBoundToIdentityAndPath) {
  const auto body = redacted(R"({"p":"x","w":"x"})");
  EXPECT_NE(digest_at(body, "p").hex, digest_at(body, "w").hex);
  const auto other = redact(R"({"p":"x"})", {"role", "other"}, *schema_, {}, worker_).value();
  EXPECT_NE(digest_at(body, "p").hex, digest_at(other, "p").hex);
}

TEST_F(Redaction, EqualNormalFormsGiveEqualDigests) {
  EXPECT_EQ(redacted(R"({"s":["a","b"],"n":"5"})"), redacted(R"({"n":5.0,"s":["b","a"]})"));
  EXPECT_NE(redacted(R"({"s":["a"]})"), redacted(R"({"s":["b"]})"));
}

TEST_F(Redaction, AsATextItIsPresentableAsItIsAsATree) {
  const std::string digest = R"({"$hmac":"aaaa1111:1:)" + std::string(64, '0') + "\"}",
                    withheld = R"({"$hmac":"aaaa1111:2:)" + std::string(64, 'f') + R"(:withheld"})";
  const std::string bodies[] = {digest,
                                "{\"a\":" + digest + ",\"b\":[" + withheld + ",1," + digest + "]}",
                                R"({"$hmac":"no digest"})",
                                R"({"$hmac":1})",
                                R"({"a":"{\"$hmac\":\"x\"}","b":"$hmac","c":["$hmac","{"],"{":"$hmac"})",
                                R"({"$hmac":"aaaa1111:1:00","b":2})",
                                R"({"a":{"$hmac":"\""}})",
                                "5",
                                "\"$hmac\"",
                                R"({"$hmac":)" + digest + "}"};
  for (const auto& body : bodies) EXPECT_EQ(presentable_text(body), presentable_json(body));
  std::string spaced = digest;
  spaced.replace(spaced.find(':'), 1, " :\n ").insert(1, "\t").insert(spaced.size() - 1, " ");
  EXPECT_EQ(presentable_text(spaced), "\"[REDACTED]\"");
}

TEST_F(Redaction, AbsentAndNullStay) { EXPECT_EQ(redacted(R"({"p":null,"a":1})"), R"({"a":1,"p":null})"); }

TEST_F(Redaction, AForgedDigestIsDigestedItself) {
  const std::string forged = R"({"$hmac":"aaaa1111:1:)" + std::string(64, '0') + "\"}";
  const auto body = redacted("{\"x\":" + forged + "}");
  EXPECT_NE(digest_at(body, "x").hex, std::string(64, '0'));
  EXPECT_EQ(redacted(forged), "error: a record's body: \"$hmac\" is reserved for digests");
}

TEST_F(Redaction, ASensitivePathThatCannotBeReadHidesEverything) {
  EXPECT_EQ(redacted(R"({"open":"hunter2-canary"})", {"a..b"}).find(kCanary), std::string::npos);
}

TEST_F(Redaction, AValueThatIsNotOfItsTypeIsHiddenAndNotQuoted) {
  EXPECT_EQ(redacted(R"({"n":"hunter2-canary"})").find(kCanary), std::string::npos);
}

TEST_F(Redaction, WhatIsNoObjectIsCorrupt) {
  EXPECT_EQ(redact("[1]", id_, *schema_, {}, worker_).error().code, Code::corrupt);
  EXPECT_EQ(redact("{", id_, *schema_, {}, worker_).error().code, Code::corrupt);
}

TEST_F(Redaction, SealingHidesTheWorkerDigestAndKeepsBothKeyIds) {
  const auto body = redacted(R"({"p":"x","a":[{"$x":1}]})");
  const auto sealed = seal(body, store_).value();
  EXPECT_EQ(sealed.find(digest_at(body, "p").hex), std::string::npos);
  EXPECT_EQ(digest_at(sealed, "p").key_id, "bbbb2222aaaa1111");
  EXPECT_EQ(seal(body, store_).value(), sealed);
}

class RotatedKey : public Redaction {
 protected:
  RedactionKeys keys(std::size_t layers) const {
    RedactionKeys out{worker_, store_};
    for (std::size_t i = 0; i < layers; ++i) {
      out.store.layers.push_back({"cccc000" + std::to_string(i), {static_cast<std::uint8_t>(3 + i)}});
    }
    return out;
  }
  std::string sealed(const std::string& body, std::size_t layers) const {
    return seal(redacted(body), keys(layers).store).value();
  }
};

TEST_F(RotatedKey, StoredDigestOfEachFormerLinkBecomesTheOneThatIsMadeNow) {
  for (const char* body : {R"({"p":"x","w":"y","open":[{"a":1}]})", R"({"p":"x"})", R"({"open":1})"}) {
    for (std::size_t before = 0; before <= 3; ++before) {
      EXPECT_EQ(rewrap(sealed(body, before), keys(3)).value(), sealed(body, 3)) << before << body;
    }
  }
  EXPECT_EQ(digest_at(sealed(R"({"p":"x"})", 2), "p").key_id, "cccc0001aaaa1111");
}

TEST_F(RotatedKey, DigestOfOtherKeysAndTextThatLooksLikeOneStay) {
  const auto foreign = seal(redact(R"({"p":"x"})", id_, *schema_, {}, {"eeee1111", {1}}).value(), store_).value();
  EXPECT_EQ(rewrap(foreign, keys(1)).value(), foreign);
  const std::string text = R"({"open":"bbbb2222aaaa1111:1:)" + std::string(64, 'a') + R"("})";
  EXPECT_EQ(rewrap(text, keys(1)).value(), text);
}

TEST_F(RotatedKey, FormerLinksDoNotGiveTheNewDigest) {
  const auto before = digest_at(sealed(R"({"p":"x"})", 1), "p"), after = digest_at(sealed(R"({"p":"x"})", 2), "p");
  EXPECT_NE(before.hex, after.hex);
  RedactionKeys other = keys(2);
  other.store.layers[1].key = {99};
  EXPECT_NE(digest_at(seal(redacted(R"({"p":"x"})"), other.store).value(), "p").hex, after.hex);
}

TEST_F(RotatedKey, KnownValueIsComparedUnderAllLayers) {
  const auto made = sealed_digest(Value("x"), id_, Path().child("p"), *schema_, keys(2), false);
  EXPECT_EQ(as_digest(made.value()), digest_at(sealed(R"({"p":"x"})", 2), "p"));
}

/// Layer 1 of 3 is a slow one.
class SlowKey : public RotatedKey {
 protected:
  RedactionKeys keys(std::size_t layers) const {
    RedactionKeys out = RotatedKey::keys(layers);
    if (layers > 1) out.store.layers[1].kind = LayerKind::slow;
    return out;
  }
  std::string sealed(const std::string& body, std::size_t layers) const {
    return seal(redacted(body), keys(layers).store).value();
  }
};

TEST_F(SlowKey, EqualStaysEqualAndOtherStaysOther) {
  EXPECT_TRUE(keys(3).store.slow());
  EXPECT_FALSE(keys(1).store.slow());
  const auto one = digest_at(sealed(R"({"p":"x"})", 3), "p");
  EXPECT_EQ(digest_at(sealed(R"({"p":"x"})", 3), "p"), one);
  EXPECT_NE(digest_at(sealed(R"({"p":"y"})", 3), "p").hex, one.hex);
  EXPECT_EQ(one.key_id, "cccc0002aaaa1111");
}

TEST_F(SlowKey, StoredDigestOfEachFormerLinkBecomesTheOneThatIsMadeNow) {
  for (std::size_t before = 0; before <= 3; ++before) {
    EXPECT_EQ(rewrap(sealed(R"({"p":"x","w":"y"})", before), keys(3)).value(), sealed(R"({"p":"x","w":"y"})", 3))
        << before;
  }
}

TEST_F(SlowKey, DigestIsNotFoundByHmacsAlone) {
  const auto wanted = digest_at(sealed(R"({"p":"x"})", 3), "p").hex;
  const std::string worker = digest_at(redacted(R"({"p":"x"})"), "p").hex;
  const RedactionKeys all = keys(3);
  std::vector<std::string> reached{worker};
  const auto layers = all.store.layers;
  // each link applied, or left out
  for (const Key& key : {all.store.key, layers[0].key, layers[1].key, layers[2].key}) {
    const std::size_t until = reached.size();
    for (std::size_t i = 0; i < until; ++i) reached.push_back(hmac_hex(key, {reached[i]}));
  }
  for (const auto& guess : reached) EXPECT_NE(guess, wanted);
}

TEST_F(SlowKey, KnownValueIsComparedUnderAllLayers) {
  const auto made = sealed_digest(Value("x"), id_, Path().child("p"), *schema_, keys(3), false);
  EXPECT_EQ(as_digest(made.value()), digest_at(sealed(R"({"p":"x"})", 3), "p"));
}

TEST_F(SlowKey, SecondAskingCostsNothing) {
  const std::string body = redacted(R"({"p":"asked for twice"})");
  const auto time = [&] {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(seal(body, keys(3).store));
    return std::chrono::steady_clock::now() - began;
  };
  const auto first = time();
  EXPECT_LT(std::min({time(), time(), time()}) * 10, first) << "scrypt is a few 10 ms, the rest some 10 µs";
}

TEST(SlowDigestsKnown, StayBoundedAndKeepWhatIsAskedFor) {
  SlowDigests known(100);
  const auto name = [](std::uint32_t n) {
    SlowDigests::Bytes out{};
    std::memcpy(out.data(), &n, sizeof n);
    return out;
  };
  known.put(name(7), name(70));
  for (std::uint32_t n = 1'000; n < 3'000; ++n) {
    known.put(name(n), name(n + 1));
    EXPECT_LE(known.size(), 100U);
    ASSERT_EQ(known.find(name(7)), name(70)) << "asked for all the time";
  }
  EXPECT_EQ(known.find(name(2'999)), name(3'000));
  EXPECT_FALSE(known.find(name(1'000)));
}

TEST_F(Redaction, WhatPeopleSeeHoldsNoDigest) {
  const auto body = redacted(R"({"p":"x","b":[1],"a":{"w":2}})", {"a.w"});
  EXPECT_EQ(presentable_json(body), R"({"a":{"w":"[REDACTED]"},"b":[1],"p":"[REDACTED]"})");
  EXPECT_EQ(presentable_json("{\"p\":"), "\"[REDACTED]\"");
}

TEST(DigestText, OnlyTheExactFormIsADigest) {
  const std::string hex(64, 'a');
  EXPECT_TRUE(as_digest(Value(Value::Object{{"$hmac", Value("ab12:1:" + hex)}})));
  for (const std::string& text : {std::string("ab12:1:") + hex + "0", "ab12:0:" + hex, "ab12:x:" + hex, "zz:1:" + hex,
                                  ":1:" + hex, "ab12:" + hex, std::string("ab12:1:") + std::string(64, 'G')}) {
    EXPECT_FALSE(as_digest(Value(Value::Object{{"$hmac", Value(text)}}))) << text;
  }
  EXPECT_FALSE(as_digest(Value(Value::Object{{"$hmac", Value("ab12:1:" + hex)}, {"x", Value()}})));
}

}  // namespace
}  // namespace driftd::core
