// SPDX-License-Identifier: Apache-2.0
// The C SDK, compiled as C++: what it tells the host.
#include <gtest/gtest.h>

#include <string>

#include "driftd/sdk/call.h"

namespace driftd {
namespace {

struct Told {
  driftd_status code = DRIFTD_OK;
  std::string id, backend, text;
};
Told told;

std::string text_of(driftd_str s) { return s.data == nullptr ? "" : std::string(s.data, s.len); }
void host_diag(driftd_call, const driftd_diagnostic* d) {
  told = {d->code, text_of(d->id), text_of(d->backend), text_of(d->text)};
}
const driftd_host_table* host() {
  static const driftd_host_table kHost = [] {
    driftd_host_table out{};
    out.size = sizeof out;
    out.diag = &host_diag;
    return out;
  }();
  return &kHost;
}

TEST(CSdk, NotFoundNamesTheBackendOfTheIdentity) {
  const driftd_identity id{sizeof id, 0, driftd_text("role"), driftd_text("app"), driftd_text("db-2")};
  EXPECT_EQ(driftd_not_found(host(), 1, &id), DRIFTD_OK);
  EXPECT_EQ(told.code, DRIFTD_NOT_FOUND);
  EXPECT_EQ(told.id + " of " + told.backend, "app of db-2");
}

TEST(CSdk, AnIdentityOfAnOlderHostHasNoBackend) {
  const driftd_identity id{offsetof(driftd_identity, backend), 0, driftd_text("role"), driftd_text("app"),
                           driftd_text("junk")};
  EXPECT_EQ(driftd_not_found(host(), 1, &id), DRIFTD_OK);
  EXPECT_EQ(told.backend, "");
}

struct Health {
  std::uint32_t state = DRIFTD_HEALTH_UNKNOWN;
  std::string reason;
};
void take_health(void* user, const driftd_health* h) { *static_cast<Health*>(user) = {h->state, text_of(h->reason)}; }

TEST(CSdk, ASystemThatIsDownIsAReport) {
  Health got;
  char why[DRIFTD_FAILURE_ROOM] = "";
  *driftd_why() = why;
  const driftd_status status = driftd_fail(host(), 1, DRIFTD_UNAVAILABLE, nullptr, "%s: refused", "127.0.0.1:1");
  *driftd_why() = nullptr;
  EXPECT_EQ(driftd_push_health(status, why, &take_health, &got), DRIFTD_OK);
  EXPECT_EQ(got.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  EXPECT_EQ(got.reason, "127.0.0.1:1: refused");
}

TEST(CSdk, WhatIsNoAnswerOfTheSystemFailsTheHealthCall) {
  Health got;
  EXPECT_EQ(driftd_push_health(DRIFTD_DENIED, "", &take_health, &got), DRIFTD_DENIED);
  EXPECT_EQ(got.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UNKNOWN));
}

}  // namespace
}  // namespace driftd
