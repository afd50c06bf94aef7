#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that the simulation finds what it is there to find: takes one rule of store and delivery away at a time and runs it.

    tests/simulation/mutants.py                  every mutant; fails if fewer than 19 of 20 are caught
    tests/simulation/mutants.py --only NAME …    some of them
    tests/simulation/mutants.py --list

A mutant is a replacement of a text in a source file (rarely two), which must be there exactly once: a mutant that no longer applies
is an error, not a mutant that survived. The sources are copied to build/mutants/source and built there, so that the checkout
stays as it is; only the target of the simulation is built.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutants"
COPY = BUILD / "source"
TREE = COPY / "build" / "release"  # as in a checkout, so that ccache knows its objects
TARGET = "simulation_delivery_test"
MUST_CATCH = 0.95
SEEDS = os.environ.get("DRIFTD_SIMULATION_SEEDS", "240")
RUN_SECONDS = 300

# name, then file, what is there, what takes its place; once or, in brackets, several times
MUTANTS = [
    ("commits_without_fsync", "agent/store/open.cpp", "PRAGMA synchronous = FULL", "PRAGMA synchronous = OFF"),
    ("mark_before_its_commit", "agent/store/group.cpp",
     """  DRIFTD_CHECK(checked(db, db.statement("COMMIT").run()));
  note_commit(state);""",
     """  note_commit(state);
  DRIFTD_CHECK(checked(db, db.statement("COMMIT").run()));"""),
    ("log_after_a_failed_fsync_is_trusted", "agent/store/open.cpp",
     """  DRIFTD_CHECK(write_log_again(settings.data_dir / "store.db-wal"));\n""", ""),
    ("goes_on_after_a_failed_fsync", "agent/store/group.cpp",
     "if (!status && db.io_failed()) stop_at_once(status.error());",
     "if (!status && db.io_failed() && db.handle() == nullptr) stop_at_once(status.error());"),
    ("name_of_the_mark_is_not_synced", "agent/store/incarnation.cpp", "return sync(file.parent_path());", "return {};"),
    ("acknowledged_exceptions_are_not_counted", "agent/store/sinks.cpp", "if (found && seq <= sink.low_water) ++change.acked;",
     "if (found && seq < 0) ++change.acked;"),
    ("cursor_passes_what_is_in_flight", "agent/delivery/window.hpp",
     "return plain_.empty() ? fetched_to_ : *plain_.begin() - 1;", "return fetched_to_;"),
    # Either change alone changes nothing that is ever sent (docs/testing.md, simulation): an event that is not settled is
    # kept by the cursor, and its acknowledgement lowers every promise that was too high.
    ("marks_promise_what_is_not_settled",
     ("agent/delivery/sink_endpoint.hpp", "sink_->note(cursor_.notes(), cursor_.window().settled_to());",
      "sink_->note(cursor_.notes(), cursor_.window().fetched_to());"),
     ("agent/sinks/common/marks.cpp", "if (event != 0) lower(event - 1, stream_seq);",
      "if (event < 0) lower(event - 1, stream_seq);")),
    ("nothing_is_flushed", "agent/delivery/sink_endpoint.cpp", "if (!std::exchange(unflushed_, false)) co_return true;",
     "if (!std::exchange(unflushed_, false) || !sink_->describe().empty()) co_return true;"),
    ("a_receiver_that_lost_events_is_not_rewound", "agent/delivery/sink_endpoint.cpp", "cursor_.rewind_to(**from);", ""),
    ("a_receiver_is_checked_only_when_it_connects", "agent/delivery/agenda.cpp",
     "if (can_be_checked(s.endpoint.state) && s.now >= s.endpoint.check_at) return Duty::check;", ""),
    ("no_wake_up_after_an_answer", "agent/delivery/sink_runner.cpp",
     """  co_await live_.deliver(std::move(event));
  wake();""", "  co_await live_.deliver(std::move(event));"),
    ("no_wake_up_after_a_commit", "agent/delivery/sink_runner.cpp",
     """  cursor_.look_for_new();
  wake();""", "  cursor_.look_for_new();"),
    ("no_timer_for_an_open_circuit", "agent/delivery/agenda.cpp",
     "if (s.endpoint.state == State::circuit_open) sooner(s.endpoint.open_until);", ""),
    ("several_of_a_resource_in_flight", "agent/delivery/window.cpp",
     "if (*queue.begin() != seq || held_.count(entry.key()) != 0) return;", "if (held_.count(entry.key()) != 0) return;"),
    ("no_retry_after_a_lost_connection", "agent/delivery/live_delivery.cpp",
     """      window.requeue(event.stamp.seq, run_.now(), brief(attempt.detail));
      endpoint_.down(attempt);""",
     """      window.settle(event.stamp.seq);
      endpoint_.down(attempt);"""),
    ("no_retry_of_a_failed_event", "agent/delivery/live_delivery.cpp",
     "cursor_.window().postpone(event.stamp.seq, run_.now() + *wait, run_.last_error, true);",
     "cursor_.window().settle(event.stamp.seq);"),
    ("unbounded_repetitions_after_a_kill", "agent/delivery/agenda.cpp",
     "if (!s.store.opened || s.store.rewinding || s.save.at_risk >= kMaxAtRisk) return false;",
     "if (!s.store.opened || s.store.rewinding) return false;"),
    ("dead_letters_are_not_reported", "agent/delivery/live_delivery.cpp", "if (event.agent_event) return;", "return;"),
    ("a_loss_of_deleted_events_is_not_told", "agent/store/sinks.cpp", "if (deleted.count != 0) DRIFTD", "if (deleted.count < 0) DRIFTD"),
    ("what_waits_goes_if_the_store_is_too_large", "agent/store/shrink.cpp", "if (waits) return {};",
     "if (waits && state_.db == nullptr) return {};"),
    ("exceptions_are_forgotten_at_a_restart", "agent/delivery/cursor.cpp", "live.emplace(state.seq, std::move(state));", ""),
]


def run(command, **options):
    # a failing test may print bytes of a store
    return subprocess.run(command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def must(command, doing, **options):
    done = run(command, **options)
    if done.returncode != 0:
        sys.exit(f"mutants: cannot {doing}:\n{done.stdout[-4000:]}")


def copy_sources():
    """Copies what git knows or would take, without touching files that are the same: they are not compiled again."""
    names = run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT).stdout.split("\n")
    for name in filter(None, names):
        source, target = ROOT / name, COPY / name
        if not source.is_file():
            continue
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def build(environment):
    return run(["cmake", "--build", str(TREE), "--target", TARGET, "-j", os.environ.get("JOBS", "2")],
               env=environment)


def simulate():
    """Returns what the simulation found; empty if nothing."""
    binary = TREE / "bin" / TARGET
    environment = dict(os.environ, DRIFTD_SIMULATION_SEEDS=SEEDS)
    try:
        done = run([str(binary), "--gtest_fail_fast", "--gtest_filter=FailedSync.*:Lives/Shards.*"], timeout=RUN_SECONDS,
                   env=environment)
    except subprocess.TimeoutExpired:
        return f"it did not end within {RUN_SECONDS} s"
    if done.returncode == 0:
        return ""
    lines = done.stdout.split("\n")
    at = next((i for i, line in enumerate(lines) if "Replay it with" in line), None)
    if at is not None:
        return f"{lines[at].split(' of the simulation')[0]}: {lines[at + 2].strip()}"
    return next((line for line in lines if line.startswith("[  FAILED  ]")), f"exit status {done.returncode}")


def edits(mutant):
    return [mutant[1:]] if isinstance(mutant[1], str) else mutant[1:]


def apply(mutant):
    """Returns the former texts by file."""
    former = {}
    for file, old, new in edits(mutant):
        path = COPY / file
        text = path.read_text()
        if text.count(old) != 1:
            restore(former)
            sys.exit(f"mutants: {mutant[0]} does not apply any more: {file} has its text {text.count(old)} times, expected "
                     f"once. Change the mutant in {pathlib.Path(__file__).relative_to(ROOT)}:\n{old}")
        former.setdefault(path, text)
        path.write_text(text.replace(old, new))
    return former


def restore(former):
    for path, text in former.items():
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run these")
    arguments = parser.parse_args()
    names = [mutant[0] for mutant in MUTANTS]
    if arguments.list:
        return print("\n".join(names))
    unknown = set(arguments.only or []) - set(names)
    if unknown:
        sys.exit(f"mutants: unknown: {', '.join(sorted(unknown))}; --list prints the names")
    chosen = [mutant for mutant in MUTANTS if not arguments.only or mutant[0] in arguments.only]

    copy_sources()
    for mutant in MUTANTS:  # all of them, before the first build
        restore(apply(mutant))
    environment = dict(os.environ, CCACHE_BASEDIR=str(COPY), CCACHE_NOHASHDIR="1", CCACHE_SLOPPINESS="time_macros")
    must(["cmake", "--preset", "release", "-DDRIFTD_TESTS=ON"],
         "configure", cwd=COPY, env=environment)
    built = build(environment)
    if built.returncode != 0:
        sys.exit(f"mutants: the sources do not build:\n{built.stdout[-4000:]}")
    found = simulate()
    if found:
        sys.exit(f"mutants: the simulation fails without any mutant: {found}")
    caught = 0
    for mutant in chosen:
        began = time.monotonic()
        former = apply(mutant)
        try:
            built = build(environment)
            if built.returncode != 0:
                sys.exit(f"mutants: {mutant[0]} does not build:\n{built.stdout[-4000:]}")
            found = simulate()
        finally:
            restore(former)
        caught += bool(found)
        print(f"{'caught  ' if found else 'SURVIVED'} {mutant[0]} ({time.monotonic() - began:.0f} s){': ' + found if found else ''}",
              flush=True)
    print(f"{caught} of {len(chosen)} mutants are caught")
    if caught < MUST_CATCH * len(chosen):
        sys.exit(1)


if __name__ == "__main__":
    main()
