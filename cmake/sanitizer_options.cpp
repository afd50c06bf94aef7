// SPDX-License-Identifier: Apache-2.0
// What a sanitizer does when the environment says nothing, as in a worker, which has none. A finding is the end of the
// process, by a signal as anywhere: a test sees a worker that was killed, not a line in a log.
extern "C" {
// without detect_stack_use_after_return: g++ 12 misaligns alignas(64) locals then (seen: XXH3_state_t)
// quarantine_size_mb: the default keeps 256 MiB of freed memory, which is half of a worker's memory budget (512 MiB)
const char* __asan_default_options() { return "strict_string_checks=1:abort_on_error=1:quarantine_size_mb=64"; }
const char* __ubsan_default_options() { return "print_stacktrace=1:abort_on_error=1"; }
const char* __tsan_default_options() { return "halt_on_error=1:abort_on_error=1:second_deadlock_stack=1"; }
}
