// SPDX-License-Identifier: Apache-2.0
// The functions of libcurl that this agent calls, under their own names, so that callers read like any user of libcurl.
// A new one is added here; the linker names it if it is missing.
#include "curl/library.hpp"

#include <curl/curl.h>
#include <dlfcn.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

// The macros of curl.h that check types
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace driftd {
namespace {

constexpr const char* kName = "libcurl.so.4";

struct Library {
  void* handle = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  std::string why = handle != nullptr ? "" : ::dlerror();
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

/// Returns the function of libcurl with this name. The caller's own declaration in curl.h gives its type.
template <class Function>
Function* find(const char* name) {
  void* const found = library().handle == nullptr ? nullptr : ::dlsym(library().handle, name);
  if (found == nullptr) {
    std::fprintf(stderr, "driftd: %s has no %s: %s\n", kName, name, library().why.c_str());
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

/// The type of a function's first argument: newer versions of curl.h have `const CURLU*` where older ones have
/// `CURLU*`.
template <class Function>
struct First;
template <class Result, class Argument, class... More>
struct First<Result(Argument, More...)> {
  using Type = Argument;
};

}  // namespace

Status load_curl() {
  if (library().handle == nullptr) {
    return fail(Code::unavailable, library().why + "; HTTP needs libcurl: install the package libcurl4");
  }
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) return fail(Code::unavailable, "libcurl cannot be initialised");
  return {};
}

}  // namespace driftd

#define DRIFTD_CALL(name, ...)                                           \
  do {                                                                   \
    static auto* const function = driftd::find<decltype(::name)>(#name); \
    return function(__VA_ARGS__);                                        \
  } while (false)

// libcurl reads one argument, as wide as a pointer or narrower, by its option: passing it on as a pointer keeps all its
// bits where integers and pointers are passed in the same way (x86-64, AArch64).
static_assert(sizeof(long) == sizeof(void*) && sizeof(curl_off_t) == sizeof(void*));
#define DRIFTD_CALL_WITH_ONE(name, object, option) \
  do {                                             \
    va_list arguments;                             \
    va_start(arguments, option);                   \
    void* const value = va_arg(arguments, void*);  \
    va_end(arguments);                             \
    DRIFTD_CALL(name, object, option, value);      \
  } while (false)

extern "C" {

CURLcode curl_global_init(long flags) { DRIFTD_CALL(curl_global_init, flags); }

CURL* curl_easy_init() { DRIFTD_CALL(curl_easy_init); }
CURLcode curl_easy_setopt(CURL* easy, CURLoption option, ...) { DRIFTD_CALL_WITH_ONE(curl_easy_setopt, easy, option); }
CURLcode curl_easy_getinfo(CURL* easy, CURLINFO info, ...) { DRIFTD_CALL_WITH_ONE(curl_easy_getinfo, easy, info); }
CURLcode curl_easy_perform(CURL* easy) { DRIFTD_CALL(curl_easy_perform, easy); }
const char* curl_easy_strerror(CURLcode code) { DRIFTD_CALL(curl_easy_strerror, code); }
void curl_easy_cleanup(CURL* easy) { DRIFTD_CALL(curl_easy_cleanup, easy); }

CURLM* curl_multi_init() { DRIFTD_CALL(curl_multi_init); }
CURLMcode curl_multi_add_handle(CURLM* multi, CURL* easy) { DRIFTD_CALL(curl_multi_add_handle, multi, easy); }
CURLMcode curl_multi_remove_handle(CURLM* multi, CURL* easy) { DRIFTD_CALL(curl_multi_remove_handle, multi, easy); }
CURLMcode curl_multi_perform(CURLM* multi, int* running) { DRIFTD_CALL(curl_multi_perform, multi, running); }
CURLMcode curl_multi_poll(CURLM* multi, curl_waitfd* more, unsigned count, int wait_ms, int* ready) {
  DRIFTD_CALL(curl_multi_poll, multi, more, count, wait_ms, ready);
}
CURLMcode curl_multi_wakeup(CURLM* multi) { DRIFTD_CALL(curl_multi_wakeup, multi); }
CURLMsg* curl_multi_info_read(CURLM* multi, int* left) { DRIFTD_CALL(curl_multi_info_read, multi, left); }
CURLMcode curl_multi_cleanup(CURLM* multi) { DRIFTD_CALL(curl_multi_cleanup, multi); }

curl_slist* curl_slist_append(curl_slist* list, const char* text) { DRIFTD_CALL(curl_slist_append, list, text); }
void curl_slist_free_all(curl_slist* list) { DRIFTD_CALL(curl_slist_free_all, list); }

CURLU* curl_url() { DRIFTD_CALL(curl_url); }
CURLUcode curl_url_set(CURLU* url, CURLUPart part, const char* text, unsigned flags) {
  DRIFTD_CALL(curl_url_set, url, part, text, flags);
}
CURLUcode curl_url_get(driftd::First<decltype(::curl_url_get)>::Type url, CURLUPart part, char** text, unsigned flags) {
  DRIFTD_CALL(curl_url_get, url, part, text, flags);
}
void curl_url_cleanup(CURLU* url) { DRIFTD_CALL(curl_url_cleanup, url); }
void curl_free(void* text) { DRIFTD_CALL(curl_free, text); }

}  // extern "C"
