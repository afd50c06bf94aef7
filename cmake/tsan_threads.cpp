// SPDX-License-Identifier: Apache-2.0
// librdkafka makes its threads by thrd_create, which g++ 12's ThreadSanitizer does not see: a thread that it does not
// know crashes in the first instrumented function that it calls. Through pthread_create it knows them. Every executable
// has these under ThreadSanitizer, and exports them to the libraries.
#include <pthread.h>
#include <threads.h>

#include <cstdint>

namespace {
struct Start {
  thrd_start_t function;
  void* argument;
};
}  // namespace

extern "C" int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  auto* start = new Start{function, argument};
  const auto run = [](void* given) -> void* {
    const Start mine = *static_cast<Start*>(given);
    delete static_cast<Start*>(given);
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(mine.function(mine.argument)));
  };
  if (pthread_create(thread, nullptr, run, start) == 0) return thrd_success;
  delete start;
  return thrd_error;
}

extern "C" int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  if (pthread_join(thread, &value) != 0) return thrd_error;
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return thrd_success;
}
