// SPDX-License-Identifier: Apache-2.0
#include "unit/store/rotate_fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "store/backup.hpp"

namespace driftd::test {

void RotateTest::fill() {
  const auto key = bench->key();
  std::vector<core::ResourceWrite> writes;
  for (int n = 0; n < rows_; ++n) {
    writes.push_back(resource_write("r" + std::to_string(n), sealed(key, n)));
    writes.back().next.observed = sealed(key, n + 1'000);
    writes.back().next.digest = {7, 8};
    writes.back().next.rules_generation = 9;
    writes.back().next.open = {drift_of(key, "d-open" + std::to_string(n), n)};
    writes.back().ended = {drift_of(key, "d-done" + std::to_string(n), n + 2'000)};
    writes.back().ended[0].status = core::DriftStatus::approved;
  }
  auto page = page_of(std::move(writes), {event_draft("a")});
  core::DeclarationWrite declared;
  declared.target = "orders";
  declared.declaration.source_uid = backend_row().uid;
  declared.declaration.id = {"config", "r0"};
  declared.declaration.digest = {5, 6};
  declared.declaration.body = sealed(key, 3'000);
  page.declarations = {declared};
  bench.get(bench->commit(std::move(page)));
}

void RotateTest::expect_under(const store::InstallationKey& key) {
  for (int n = 0; n < rows_; ++n) {
    const auto rows = bench.get(bench->load(backend_row().uid, {{"config", "r" + std::to_string(n)}}));
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].baseline, sealed(key, n));
    EXPECT_EQ(rows[0].observed, sealed(key, n + 1'000));
    ASSERT_EQ(rows[0].open.size(), 1U);
    const auto wanted = drift_of(key, "", n);
    EXPECT_EQ(rows[0].open[0].changes[0].old_value, wanted.changes[0].old_value);
    EXPECT_EQ(rows[0].open[0].changes[0].new_value, wanted.changes[0].new_value);
    EXPECT_EQ(rows[0].open[0].digest, core::digest_of(rows[0].open[0].changes, rows[0].open[0].against));
  }
  core::DriftFilter every;
  every.all = true;
  every.limit = 1'000;
  for (const auto& row : bench.get(bench->drifts(every))) {
    const int n = std::stoi(row.drift.id.substr(6)) + (row.drift.id.starts_with("d-done") ? 2'000 : 0);
    EXPECT_EQ(row.drift.changes[0].new_value, sealed_value(key, n + 1'000)) << row.drift.id;
  }
  const auto declared = bench.get(bench->declarations("orders", {{"config", "r0"}}));
  ASSERT_EQ(declared.size(), 1U);
  EXPECT_EQ(declared[0].body, sealed(key, 3'000));
}

bool RotateTest::killed_at(const std::string& step, core::LayerKind kind) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)rotate(
        [&](std::string_view at) {
          if (at == step) ::_exit(9);
        },
        kind);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 9;
}

void RotateTest::kill_at_each_step(core::LayerKind kind) {
  fill();
  const auto before = bench->key();
  bench.close();
  std::filesystem::copy(data(), dir.file("untouched"), std::filesystem::copy_options::recursive);
  for (const char* step : {"made", "resources", "drifts", "declarations", "named", "written", "rewrapped", "swept"}) {
    std::filesystem::remove_all(data());
    std::filesystem::copy(dir.file("untouched"), data(), std::filesystem::copy_options::recursive);
    ASSERT_TRUE(killed_at(step, kind)) << step;
    const auto opened = bench.open();
    ASSERT_TRUE(opened) << step << ": " << opened.error().message;
    const bool written = std::string_view(step) == "written" || std::string_view(step) == "rewrapped" ||
                         std::string_view(step) == "swept";
    EXPECT_EQ(bench->key().store.layers.size(), written ? 1U : 0U) << step;
    EXPECT_EQ(bench->key().store.slow(), written && kind == kSlow) << step;
    expect_under(bench->key());
    EXPECT_EQ(rotation_events().size(), written ? 1U : 0U) << step;
    auto audit = bench.get(bench->audit(10));
    std::erase_if(audit, [](const auto& line) { return line.verb == "store copied"; });  // the folder is a copy
    EXPECT_EQ(audit.size(), written ? 1U : 0U) << step;
    EXPECT_TRUE(bench.get(bench->verify_audit({})).whole);
    bench.close();
    EXPECT_TRUE(store::verify(file())) << step;
    const std::string hex = core::as_digest(*core::parse(sealed(before, 0)).value().find("p"))->hex;
    EXPECT_EQ(all_bytes().find(hex) == std::string::npos, written) << step;
  }
}

}  // namespace driftd::test
