// SPDX-License-Identifier: Apache-2.0
// The C++ SDK at the border: what crosses, and what never does.
#include <gmock/gmock.h>

#include <functional>

#include "driftd/provider.hpp"

namespace driftd::sdk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A host as small as the table allows; what it was told.
struct Heard {
  std::vector<Diagnostic> diagnostics;
  std::vector<Record> records;
  std::vector<std::uint32_t> marks;
  std::string last_cursor;
  int secrets_asked = 0;
  std::uint64_t secret_bytes = 0;    // not 0: claims so many
  driftd_status answer = DRIFTD_OK;  // to emit, mark, permit and secret
};
Heard* heard = nullptr;

std::string text(driftd_str s) { return std::string(view(s)); }
std::int64_t host_now() { return 1'700'000'000'000'000'123; }
void host_log(driftd_call, std::int32_t, driftd_str, const driftd_kv*, std::uint32_t) {}
driftd_status host_metric(driftd_call, driftd_str, double) { return DRIFTD_OK; }
std::int32_t host_cancelled(driftd_call) { return 0; }
std::int64_t host_deadline(driftd_call) { return 7; }
std::int32_t host_cancel_fd(driftd_call) { return -1; }
driftd_status host_emit(driftd_call, const driftd_record* r, std::uint32_t, std::uint32_t) {
  Record copy{.kind = text(r->kind), .id = text(r->id), .body = text(r->body), .observed_ns = r->observed_ns};
  copy.schema_revision = r->schema_revision;
  copy.tombstone = r->tombstone != 0;
  for (std::uint32_t i = 0; i < r->unread_count; ++i) {
    copy.unread.push_back({text(r->unread[i].path), r->unread[i].code, text(r->unread[i].reason)});
  }
  for (std::uint64_t i = 0; i < r->sensitive_count; ++i) copy.sensitive.push_back(text(r->sensitive[i]));
  for (std::uint32_t i = 0; i < r->metadata_count; ++i)
    copy.metadata[text(r->metadata[i].key)] = text(r->metadata[i].value);
  heard->records.push_back(copy);
  return heard->answer;
}
driftd_status host_mark(driftd_call, const driftd_mark* mark) {
  heard->marks.push_back(mark->type);
  heard->last_cursor = text(mark->cursor);
  return heard->answer;
}
void host_diag(driftd_call, const driftd_diagnostic* d) {
  heard->diagnostics.push_back(
      {d->code, text(d->kind), text(d->id), text(d->path), text(d->text), text(d->right), d->retry_after_ms});
}
driftd_status host_permit(driftd_call, driftd_str, std::uint32_t) { return heard->answer; }
/// What is thrown through it would be undefined in a real host, and ends the test.
driftd_status host_secret(driftd_call, driftd_str, driftd_use_fn use, void* user) noexcept {
  ++heard->secrets_asked;
  if (heard->secret_bytes != 0) return use(user, nullptr, heard->secret_bytes), DRIFTD_OK;
  if (heard->answer == DRIFTD_OK) use(user, reinterpret_cast<const std::uint8_t*>("a\0b"), 3);
  return heard->answer;
}
const void* host_query(driftd_str, std::uint32_t) { return nullptr; }
const driftd_host_table kHost = {sizeof(driftd_host_table),
                                 0,
                                 host_now,
                                 host_log,
                                 host_metric,
                                 host_cancelled,
                                 host_deadline,
                                 host_cancel_fd,
                                 host_emit,
                                 host_mark,
                                 host_diag,
                                 host_permit,
                                 host_secret,
                                 host_query};

/// A provider whose functions do what the test says.
struct Script {
  std::function<void()> open, wake, health;
  bool opens_nothing = false;
  std::function<RefreshResult(Call&, const Refresh&)> refresh;
  std::function<void(Call&, std::span<const Identity>)> read;
};
Script* script = nullptr;
int alive = 0;

class Scripted final : public Instance {
 public:
  Scripted() { ++alive; }
  ~Scripted() override { --alive; }
  RefreshResult refresh(Call& call, const Refresh& request) override { return script->refresh(call, request); }
  void read(Call& call, std::span<const Identity> ids) override { script->read(call, ids); }
  Health health(Call&) override {
    if (script->health) script->health();
    return {DRIFTD_HEALTH_DEGRADED, 42, "slow", "replica", "id-1", "9.9"};
  }
  void wake() override { script->wake(); }
};

std::unique_ptr<Instance> open_scripted(Call&, std::string_view, std::string_view) {
  if (script->open) script->open();
  if (script->opens_nothing) return nullptr;
  return std::make_unique<Scripted>();
}
const Plugin& scripted() {
  static const Plugin kPlugin{
      R"({"id":"scripted"})", {{"settings", "{}"}, {"thing", "{\"kind\":1}"}}, false, &open_scripted};
  return kPlugin;
}
const Plugin& broken() { throw std::runtime_error("cannot be described"); }

class Border : public testing::Test {
 protected:
  Border() {
    heard = &heard_;
    script = &script_;
    const driftd_offer offer{sizeof offer, 0, 0, 1, {}};
    accept_.size = sizeof accept_;
    EXPECT_EQ(detail::Table<&scripted>::entry(&kHost, &offer, &accept_), DRIFTD_OK);
    EXPECT_EQ(open_into(&instance_), DRIFTD_OK);
  }
  ~Border() override {
    table().close(instance_);
    EXPECT_EQ(alive, 0);
  }
  const driftd_provider_table& table() const { return *accept_.table; }
  driftd_status open_into(driftd_instance* out) const {
    const driftd_open_args args{sizeof args, 0, str("b"), str("{}")};
    return table().open(1, &args, out);
  }
  driftd_status refresh(std::function<RefreshResult(Call&, const Refresh&)> how, driftd_refresh_args args = {}) {
    script_.refresh = std::move(how);
    result_ = {sizeof result_, 0, 0};
    return table().refresh(instance_, 1, &args, &result_);
  }
  /// A refresh that only does `what`.
  driftd_status during(std::function<void(Call&)> what) {
    return refresh([what](Call& call, const Refresh&) { return what(call), RefreshResult{}; });
  }
  Heard heard_;
  Script script_;
  driftd_accept accept_{};
  driftd_instance instance_ = nullptr;
  driftd_refresh_result result_{};
};

TEST_F(Border, FailureBecomesItsStatusAndOneDiagnostic) {
  EXPECT_EQ(during([](Call&) { throw Failure(DRIFTD_DENIED, "no", "acl_user", "+acl|list", 250); }), DRIFTD_DENIED);
  ASSERT_EQ(heard_.diagnostics.size(), 1u);
  EXPECT_EQ(heard_.diagnostics[0].code, DRIFTD_DENIED);
  EXPECT_EQ(heard_.diagnostics[0].kind, "acl_user");
  EXPECT_EQ(heard_.diagnostics[0].text, "no");
  EXPECT_EQ(heard_.diagnostics[0].right, "+acl|list");
  EXPECT_EQ(heard_.diagnostics[0].retry_after_ms, 250);
}

TEST_F(Border, StandardExceptionBecomesInternalWithItsText) {
  EXPECT_EQ(during([](Call&) { throw std::out_of_range("index 9"); }), DRIFTD_INTERNAL);
  ASSERT_EQ(heard_.diagnostics.size(), 1u);
  EXPECT_EQ(heard_.diagnostics[0].text, "index 9");
}

TEST_F(Border, AnythingElseThrownBecomesInternal) {
  EXPECT_EQ(during([](Call&) { throw 42; }), DRIFTD_INTERNAL);
  EXPECT_EQ(heard_.diagnostics.size(), 1u);
}

TEST_F(Border, FailedOpenLeavesTheInstanceUntouched) {
  script_.open = [] { throw Failure(DRIFTD_INVALID, "settings.address: expected host:port"); };
  int here = 0;
  driftd_instance out = &here;
  EXPECT_EQ(open_into(&out), DRIFTD_INVALID);
  EXPECT_EQ(out, &here);
  EXPECT_THAT(heard_.diagnostics.at(0).text, HasSubstr("settings.address"));
}

TEST_F(Border, AnOpenThatGivesNoInstanceIsInternal) {
  script_.opens_nothing = true;
  int here = 0;
  driftd_instance out = &here;
  EXPECT_EQ(open_into(&out), DRIFTD_INTERNAL);
  EXPECT_EQ(out, &here);
  EXPECT_THAT(heard_.diagnostics.at(0).text, HasSubstr("open"));
}

TEST_F(Border, AFailureWithACodeThatIsNoFailureIsInternal) {
  for (const driftd_status code : {DRIFTD_OK, DRIFTD_FINISH_SOON}) {
    EXPECT_EQ(during([&](Call&) { throw Failure(code, "it failed"); }), DRIFTD_INTERNAL);
    EXPECT_EQ(heard_.diagnostics.back().code, DRIFTD_INTERNAL);
    EXPECT_EQ(heard_.diagnostics.back().text, "it failed");
  }
}

TEST_F(Border, ASecretThatDoesNotFitIntoMemoryFailsTheCallBehindTheHostsFrame) {
  heard_.secret_bytes = ~0ull;
  EXPECT_EQ(during([](Call& call) { call.secret("token-1"); }), DRIFTD_INTERNAL);
  EXPECT_THAT(heard_.diagnostics.at(0).text, HasSubstr("memory"));
}

TEST_F(Border, FunctionsWithoutACallLetNothingThroughEither) {
  driftd_accept accept{};
  const driftd_offer offer{sizeof offer, 0, 0, 1, {}};
  ASSERT_EQ(detail::Table<&broken>::entry(&kHost, &offer, &accept), DRIFTD_OK);
  const auto never = [](void*, driftd_str) { FAIL() << "pushed"; };
  EXPECT_EQ(accept.table->describe(never, nullptr), DRIFTD_INTERNAL);
  EXPECT_EQ(accept.table->schema(str("settings"), never, nullptr), DRIFTD_INTERNAL);
  EXPECT_EQ(accept.table->query(str(DRIFTD_EXT_WATCH), DRIFTD_EXT_WATCH_REVISION), nullptr);
  bool woken = false;
  script_.wake = [&] {
    woken = true;
    throw std::runtime_error("in wake");
  };
  table().wake(instance_);
  EXPECT_TRUE(woken);
}

TEST_F(Border, RecordCrossesWithEveryMember) {
  Record r{.kind = "role", .id = "app", .body = std::string("{\"n\":\"\0\"}", 9)};
  r.unread = {{"verifier", DRIFTD_DENIED, "pg_authid"}};
  r.sensitive = {"a.b", "c"};
  r.metadata = {{"serial", "9007199254740993"}};
  r.schema_revision = 3;
  EXPECT_EQ(during([&](Call& call) { EXPECT_TRUE(call.emit(r)); }), DRIFTD_OK);
  ASSERT_EQ(heard_.records.size(), 1u);
  const Record& got = heard_.records[0];
  EXPECT_EQ(got.body, r.body);
  EXPECT_EQ(got.unread.at(0).reason, "pg_authid");
  EXPECT_EQ(got.unread.at(0).code, DRIFTD_DENIED);
  EXPECT_THAT(got.sensitive, ElementsAre("a.b", "c"));
  EXPECT_EQ(got.metadata.at("serial"), "9007199254740993");
  EXPECT_EQ(got.schema_revision, 3u);
  EXPECT_EQ(got.observed_ns, host_now()) << "when the call began, if the provider does not say";
}

TEST_F(Border, FinishSoonIsToldAndARefusalEndsTheCall) {
  heard_.answer = DRIFTD_FINISH_SOON;
  EXPECT_EQ(during([](Call& call) { EXPECT_FALSE(call.emit({.kind = "k", .id = "i"})); }), DRIFTD_OK);
  heard_.answer = DRIFTD_BUDGET;
  EXPECT_EQ(during([](Call& call) { call.emit({.kind = "k", .id = "i"}); }), DRIFTD_BUDGET);
  EXPECT_EQ(during([](Call& call) { call.complete("k", 1); }), DRIFTD_BUDGET);
  heard_.answer = DRIFTD_CANCELLED;
  EXPECT_EQ(during([](Call& call) { call.permit("api"); }), DRIFTD_CANCELLED);
}

TEST_F(Border, SecretIsAllItsBytesAndAnEmptyTokenAsksNobody) {
  EXPECT_EQ(during([](Call& call) {
              EXPECT_EQ(call.secret("token-1"), std::string("a\0b", 3));
              EXPECT_EQ(call.secret(""), "");
            }),
            DRIFTD_OK);
  EXPECT_EQ(heard_.secrets_asked, 1);
  heard_.answer = DRIFTD_DENIED;
  EXPECT_EQ(during([](Call& call) { call.secret("forged"); }), DRIFTD_DENIED);
  EXPECT_THAT(heard_.diagnostics.at(0).text, testing::Not(HasSubstr("forged")));
}

TEST_F(Border, IdentitiesOfANewerHostAreReadByTheirStride) {
  struct Newer {
    driftd_identity known;
    std::uint64_t added;
  };
  const Newer ids[] = {{{sizeof(Newer), 0, str("role"), str("a")}, ~0ull},
                       {{sizeof(Newer), 0, str("role"), str("b")}, ~0ull}};
  std::vector<std::string> seen;
  script_.read = [&](Call&, std::span<const Identity> wanted) {
    for (const auto& id : wanted) seen.push_back(id.kind + "/" + id.id);
  };
  EXPECT_EQ(table().read(instance_, 1, &ids[0].known, 2, sizeof(Newer)), DRIFTD_OK);
  EXPECT_THAT(seen, ElementsAre("role/a", "role/b"));
}

TEST_F(Border, RefreshSeesItsScopeAndItsResultCrosses) {
  const driftd_str kinds[] = {str("role"), str("setting")};
  driftd_refresh_args args{sizeof args, DRIFTD_REFRESH_FULL, str("c1"), kinds, 2, 0};
  EXPECT_EQ(refresh(
                [](Call&, const Refresh& request) {
                  EXPECT_TRUE(request.full);
                  EXPECT_EQ(request.cursor, "c1");
                  EXPECT_TRUE(request.wants("setting"));
                  EXPECT_FALSE(request.wants("database"));
                  return RefreshResult{true, 1500};
                },
                args),
            DRIFTD_OK);
  EXPECT_EQ(result_.unchanged, 1u);
  EXPECT_EQ(result_.next_ms, 1500);
  EXPECT_TRUE(Refresh{}.wants("anything"));
}

TEST_F(Border, MarksKeepTheirTypeAndCursor) {
  EXPECT_EQ(during([](Call& call) {
              call.complete("role", 2);
              call.bookmark("b");
              call.checkpoint("page-1");
            }),
            DRIFTD_OK);
  EXPECT_THAT(heard_.marks, ElementsAre(DRIFTD_MARK_COMPLETE, DRIFTD_MARK_BOOKMARK, DRIFTD_MARK_CHECKPOINT));
  EXPECT_EQ(heard_.last_cursor, "page-1");
}

TEST_F(Border, HealthCrossesWithEveryMember) {
  Health got;
  const auto take = [](void* user, const driftd_health* h) {
    *static_cast<Health*>(user) = {
        h->state, h->latency_us, text(h->reason), text(h->role), text(h->system_identity), text(h->server_version)};
  };
  EXPECT_EQ(table().health(instance_, 1, take, &got), DRIFTD_OK);
  EXPECT_EQ(got.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED));
  EXPECT_EQ(got.latency_us, 42);
  EXPECT_EQ(got.reason + got.role + got.system_identity + got.server_version, "slowreplicaid-19.9");
}

TEST_F(Border, ASystemThatIsDownIsHealthThatSaysSo) {
  script_.health = [] { throw Failure(DRIFTD_UNAVAILABLE, "127.0.0.1:1: refused"); };
  Health got;
  const auto take = [](void* user, const driftd_health* h) {
    *static_cast<Health*>(user) = {h->state, h->latency_us, text(h->reason)};
  };
  EXPECT_EQ(table().health(instance_, 1, take, &got), DRIFTD_OK);
  EXPECT_EQ(got.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  EXPECT_EQ(got.reason, "127.0.0.1:1: refused");
}

TEST_F(Border, UnknownSchemaAndUnofferedExtensionAreToldApartFromErrors) {
  std::string pushed;
  const auto take = [](void* user, driftd_str s) { *static_cast<std::string*>(user) = text(s); };
  EXPECT_EQ(table().schema(str("thing"), take, &pushed), DRIFTD_OK);
  EXPECT_EQ(pushed, "{\"kind\":1}");
  EXPECT_EQ(table().schema(str("nothing"), take, &pushed), DRIFTD_NOT_FOUND);
  EXPECT_EQ(table().query(str(DRIFTD_EXT_WATCH), DRIFTD_EXT_WATCH_REVISION), nullptr);
  EXPECT_EQ(table().query(str("driftd.other"), 1), nullptr);
  EXPECT_EQ(table().diff(instance_, nullptr, nullptr, nullptr), DRIFTD_UNSUPPORTED);
}

TEST_F(Border, InstancesOfOneLibraryAreSeparate) {
  driftd_instance second = nullptr;
  ASSERT_EQ(open_into(&second), DRIFTD_OK);
  EXPECT_NE(second, instance_);
  EXPECT_EQ(alive, 2);
  table().close(second);
  EXPECT_EQ(alive, 1);
}

}  // namespace
}  // namespace driftd::sdk
