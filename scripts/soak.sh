#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long form of the kill test, with its log appended to docs/soak.md. Loopback only; ends only what it started.
set -eu
cd "$(dirname "$0")/.."
export DRIFTD_AGENT_KILLS="${DRIFTD_AGENT_KILLS:-300}" DRIFTD_NATS_KILLS="${DRIFTD_NATS_KILLS:-50}"
export DRIFTD_WEBHOOK_DOWN="${DRIFTD_WEBHOOK_DOWN:-60}"
begin=$(date -u +%s)
result=passed
build/release/bin/e2e_line_test --gtest_filter='Kills.*' > build/soak.log 2>&1 || result=FAILED
tail -n 5 build/soak.log
# Through ctest, which starts the Kafka broker's build first. Every kind of receiver, and JetStream set back by minutes.
export DRIFTD_ROLLED_BACK_SECONDS="${DRIFTD_ROLLED_BACK_SECONDS:-180}"
ctest --test-dir build/release -R '^e2e\.(AllSinksKills|JetStreamLoss)\.' -V --no-tests=error > build/soak-kills.log 2>&1 \
  || result=FAILED
grep -E ' kills, |repeated after one kill|restart to ready|messages were lost|Failure' build/soak-kills.log || result=FAILED
# A NATS cluster whose leader is killed for ten minutes.
DRIFTD_LEADER_KILL_SECONDS="${DRIFTD_LEADER_KILL_SECONDS:-600}" build/release/bin/integration_nats_test \
  --gtest_filter='*NatsLeaderKills*' > build/soak-leaders.log 2>&1 || result=FAILED
grep -E "kills of the stream's leader|Failure" build/soak-leaders.log || result=FAILED
# Random lives of the controller runtime.
DRIFTD_CONTROLLER_SEEDS="${DRIFTD_CONTROLLER_SEEDS:-200000}" build/release/bin/unit_controller_test \
  --gtest_filter='*Properties.*' > build/soak-controller.log 2>&1 || result=FAILED
grep -E 'DRIFTD_CONTROLLER_SEED=|ms total\)$' build/soak-controller.log || result=FAILED
end=$(date -u +%s)
{
  [ -s docs/soak.md ] || printf '# Soak runs\n\nEach line is one `make soak`: kills of the agent, kills of nats-server, seconds without the webhook receiver. Since 2026-11-26 a second run of as many kills, with every kind of receiver under 200 events a second, and JetStream set back by three minutes are part of it.\n\n| date | commit | agent kills | NATS kills | webhook down | took | result |\n|---|---|---|---|---|---|---|\n'
  printf '| %s | %s | %s | %s | %s s | %s s | %s |\n' "$(date -u +%Y-%m-%d)" "$(git rev-parse --short HEAD)" \
    "$DRIFTD_AGENT_KILLS" "$DRIFTD_NATS_KILLS" "$DRIFTD_WEBHOOK_DOWN" "$((end - begin))" "$result"
} > build/soak.md
cat build/soak.md >> docs/soak.md
[ "$result" = passed ]
