// SPDX-License-Identifier: Apache-2.0
// The SDK under a host whose tables and structs end earlier than this header's: nothing behind them is touched.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>

#include "driftd/provider.hpp"

namespace driftd::sdk {
namespace {

using testing::ElementsAre;

/// Bytes that end right before a page that cannot be read.
class AtPageEnd {
 public:
  AtPageEnd() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    base_ = static_cast<char*>(::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mprotect(base_ + page_, page_, PROT_NONE), 0);
  }
  ~AtPageEnd() { ::munmap(base_, 2 * page_); }
  AtPageEnd(const AtPageEnd&) = delete;
  AtPageEnd& operator=(const AtPageEnd&) = delete;
  /// The first `size` bytes of a struct, which says so itself.
  template <class T>
  T* cut(T from, std::size_t size) {
    from.size = static_cast<std::uint32_t>(size);
    char* at = base_ + page_ - size;
    std::memcpy(at, static_cast<const void*>(&from), size);
    return reinterpret_cast<T*>(at);
  }

 private:
  std::size_t page_;
  char* base_;
};

std::vector<std::string>* seen = nullptr;

driftd_host_table full_host() {
  driftd_host_table t = detail::bare_host();
  t.now = []() -> std::int64_t { return 77; };
  t.diag = [](driftd_call, const driftd_diagnostic* d) { seen->push_back("diag " + std::string(view(d->text))); };
  return t;
}

class Recorder final : public Instance {
 public:
  RefreshResult refresh(Call& call, const Refresh& request) override {
    seen->push_back("refresh '" + request.cursor + "' at " + std::to_string(call.started_ns()));
    return {false, 5};
  }
  void read(Call&, std::span<const Identity> ids) override {
    for (const auto& id : ids) seen->push_back("read " + id.kind + "/" + id.id + " of '" + id.backend + "'");
  }
  Health health(Call&) override { return {}; }
  std::vector<Verdict> diff(const Identity&, std::span<const Change> changes) override {
    return {{changes[0].index, DRIFTD_VERDICT_UNSETTLED, changes[0].path + " is still applied"}};
  }
};

std::unique_ptr<Instance> open_recorder(Call&, std::string_view, std::string_view) {
  return std::make_unique<Recorder>();
}
const Plugin& recorder() {
  static const Plugin kPlugin{R"({"id":"recorder"})", {}, false, &open_recorder, false, false, true};
  return kPlugin;
}

class OlderHost : public testing::Test {
 protected:
  OlderHost() { seen = &seen_; }
  ~OlderHost() override { host = nullptr; }
  const driftd_provider_table& table_from(const driftd_host_table* given) {
    const driftd_offer offer{sizeof offer, 0, 0, 0, {}};
    accept_.size = sizeof accept_;
    EXPECT_EQ(detail::Table<&recorder>::entry(given, &offer, &accept_), DRIFTD_OK);
    return *accept_.table;
  }
  driftd_instance open_on(const driftd_provider_table& table) {
    const driftd_open_args args{sizeof args, 0, str("b"), str("{}")};
    driftd_instance out = nullptr;
    EXPECT_EQ(table.open(1, &args, &out), DRIFTD_OK);
    return out;
  }
  std::vector<std::string> seen_;
  AtPageEnd memory_, more_memory_;
  driftd_accept accept_{};
};

TEST_F(OlderHost, ATableWithoutTheLastFunctionsIsFilledUpWithOnesThatSayNo) {
  const auto* shorter = memory_.cut(full_host(), offsetof(driftd_host_table, permit));
  const auto& table = table_from(shorter);
  EXPECT_EQ(host->size, sizeof(driftd_host_table));
  EXPECT_EQ(host->now(), 77);
  EXPECT_EQ(host->query(str("driftd.any"), 1), nullptr);
  EXPECT_EQ(host->secret(1, str("t"), nullptr, nullptr), DRIFTD_UNSUPPORTED);
  const driftd_host_table* before = host;
  table_from(shorter);
  EXPECT_EQ(host, before) << "asked twice, answered the same";
  table.close(open_on(table));
}

TEST_F(OlderHost, AWholeTableIsUsedAsItIs) {
  const driftd_host_table whole = full_host();
  table_from(&whole);
  EXPECT_EQ(host, &whole);
}

TEST_F(OlderHost, ShorterArgumentsReadAsZeroBehindTheirEnd) {
  const driftd_host_table whole = full_host();
  const auto& table = table_from(&whole);
  driftd_instance self = open_on(table);
  const driftd_identity id{sizeof id, 0, str("role"), str("app"), str("not there yet")};
  constexpr std::uint32_t kRc1 = offsetof(driftd_identity, backend);
  EXPECT_EQ(table.read(self, 1, memory_.cut(id, kRc1), 1, kRc1), DRIFTD_OK);
  driftd_refresh_args args{sizeof args, 0, str("c-1"), nullptr, 99, 0};
  driftd_refresh_result result{sizeof result, 0, 0};
  EXPECT_EQ(table.refresh(self, 1, more_memory_.cut(args, offsetof(driftd_refresh_args, kinds)), &result), DRIFTD_OK);
  EXPECT_EQ(result.next_ms, 5);
  EXPECT_THAT(seen_, ElementsAre("read role/app of ''", "refresh 'c-1' at 77"));
  table.close(self);
}

TEST_F(OlderHost, TheEntryFillsNoMoreThanAnOlderHostMadeRoomFor) {
  const driftd_host_table whole = full_host();
  const driftd_offer offer{sizeof offer, 0, 0, 0, {}};
  auto* accept = memory_.cut(driftd_accept{}, offsetof(driftd_accept, refusal));
  EXPECT_EQ(detail::Table<&recorder>::entry(&whole, &offer, accept), DRIFTD_OK);
  EXPECT_NE(accept->table, nullptr);
}

TEST_F(OlderHost, ItsChangesReachTheProvidersDiffByTheirStride) {
  const driftd_host_table whole = full_host();
  const auto& table = table_from(&whole);
  driftd_instance self = open_on(table);
  const driftd_change change{sizeof change, 7, str("a.b"), str("1"), str("2")};
  const driftd_diff_args args{sizeof args, sizeof change, str("role"), str("app"), &change, 1, 0};
  const auto take = [](void*, const driftd_verdict* v) {
    seen->push_back(std::to_string(v->index) + " " + std::to_string(v->verdict) + " " + std::string(view(v->reason)));
  };
  EXPECT_EQ(table.diff(self, &args, take, nullptr), DRIFTD_OK);
  EXPECT_THAT(seen_, ElementsAre("7 2 a.b is still applied"));
  table.close(self);
}

}  // namespace
}  // namespace driftd::sdk
