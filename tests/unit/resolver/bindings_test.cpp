// SPDX-License-Identifier: Apache-2.0
#include "resolver/bindings.hpp"

#include <gmock/gmock.h>

namespace driftd::resolver {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<Binding> good(const std::string& text) {
  auto out = parse_bindings(text);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *out : std::vector<Binding>{};
}

Binding to_backend(const std::string& slot, const std::string& backend, bool required = true) {
  Binding out;
  out.slot = slot;
  out.backend = backend;
  out.required = required;
  return out;
}

TEST(ResolverBindings, NamesAndObjectsSayTheSame) {
  const std::vector<Binding> expected = {to_backend("message_source", "kafka-production"),
                                         to_backend("state_store", "redis-production")};
  EXPECT_EQ(good("message_source=kafka-production, state_store=redis-production\n"), expected);
  EXPECT_EQ(good(R"({"message_source": "kafka-production", "state_store": {"backendRef": "redis-production"}})"),
            expected);
  EXPECT_EQ(good("message_source: kafka-production\nstate_store: { backendRef: redis-production }\n"), expected);
  EXPECT_EQ(good("orders-cache"), std::vector<Binding>{to_backend("orders-cache", "orders-cache")});
  EXPECT_EQ(good("a: { backendRef: b, required: false }"), std::vector<Binding>{to_backend("a", "b", false)});
}

/// The annotation `prism.io/backend-bindings` of the discovery RFC, literally.
TEST(ResolverBindings, TheAnnotationOfTheRfcIsUnderstood) {
  const auto found = good(
      "message_source:\n  service: kafka.infrastructure.svc.cluster.local:9092\n  secret: kafka-credentials\n"
      "state_store:\n  service: redis-master.infrastructure.svc.cluster.local:6379\n  secret: redis\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].slot, "message_source");
  EXPECT_EQ(found[0].service, "kafka.infrastructure.svc.cluster.local:9092");
  EXPECT_EQ(found[0].secret, "kafka-credentials");
  EXPECT_EQ(found[1].secret, "redis");
  EXPECT_TRUE(found[1].backend.empty());
}

TEST(ResolverBindings, AMistakeIsNamedAndItsValueIsNot) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "there is no binding"},
      {" , ", "there is no binding"},
      {"{}", "there is no binding"},
      {"[a, b]", "expected names"},
      {"{\"a\": ", "neither JSON nor YAML at line"},
      {"a=b,a=c", "a: the slot is there twice"},
      {"a: b\na: c", "a: the slot is there twice"},
      {"a=canary/x", "a: the backend's name is not a name of a backend"},
      {"ca nary=", "expected one of `backendRef`, `service` and `serviceBinding`, found 0"},
      {"a: { backendRef: b, service: \"c:1\" }", "found 2"},
      {"a: { backendRef: b, secret: canary }", "a.secret: a Secret is named beside a `service` only"},
      {"a: { serviceBinding: .. }", "a.serviceBinding: this is not a name of a folder"},
      {"a: { serviceBinding: canary/x }", "a.serviceBinding: this is not a name of a folder"},
      {"a: { service: canary }", "a.service: expected host:port"},
      {"a: { service: \"h:70000\" }", "a.service: expected host:port"},
      {"a: { service: \"h:1,canary\" }", "a.service: expected host:port"},
      {"a: { service: \"h:1\", key: canary }", "a.key: there is no `secret` beside it"},
      {"a: { backendRef: b, canary: c }", "a: there is an unknown member; expected backendRef"},
      {"a: { backendRef: b, backendRef: c }", "a.backendRef: it is there twice"},
      {"a: { backendRef: b, required: canary }", "a.required: expected true or false"},
      {"a: { backendRef: [canary] }", "a.backendRef: expected a string"},
      {"a: [canary]", "a: expected a backend's name or an object"},
  };
  for (const auto& [text, message] : cases) {
    const auto found = parse_bindings(text);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().code, consumer::Code::invalid);
    EXPECT_THAT(found.error().message, HasSubstr("BACKEND_BINDINGS"));
    EXPECT_THAT(found.error().message, HasSubstr(message)) << text;
    EXPECT_THAT(found.error().message, Not(HasSubstr("canary"))) << text;
  }
}

TEST(ResolverBindings, MoreThanTheLimitIsRefused) {
  std::string text;
  for (int i = 0; i < 1'024; ++i) text += "slot-" + std::to_string(i) + " ";
  EXPECT_EQ(good(text).size(), 1'024U);
  EXPECT_FALSE(parse_bindings(text + "one-more"));
}

}  // namespace
}  // namespace driftd::resolver
