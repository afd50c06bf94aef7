// SPDX-License-Identifier: Apache-2.0
// Loads the provider, and runs calls on a pool of threads.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/guarded_call.hpp"
#include "check/progress.hpp"
#include "check/subject.hpp"
#include "ipc/provider_info.hpp"
#include "worker/ask_plugin.hpp"
#include "worker/library.hpp"

namespace driftd::check {

/// A thread that runs one job after another until the process ends.
class PooledThread {
 public:
  static void run(std::shared_ptr<Job> job) {
    PooledThread* thread = nullptr;
    {
      const std::lock_guard lock(pool());
      if (!idle().empty()) thread = idle().back(), idle().pop_back();
    }
    if (thread == nullptr) thread = new PooledThread;  // never deleted: its thread may never return
    const std::lock_guard lock(thread->mutex_);
    thread->job_ = std::move(job);
    thread->changed_.notify_one();
  }

 private:
  PooledThread() {
    std::thread([this] { work(); }).detach();
  }

  [[noreturn]] void work() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return job_ != nullptr; });
        job = std::exchange(job_, nullptr);
      }
      job->function_();
      job->function_ = nullptr;  // releases what it holds before the job counts as done
      {
        const std::lock_guard lock(pool());
        idle().push_back(this);
      }
      const std::lock_guard lock(job->mutex_);
      job->done_ = true;
      job->changed_.notify_all();
    }
  }

  static std::mutex& pool() {
    static auto* mutex = new std::mutex;
    return *mutex;
  }
  static std::vector<PooledThread*>& idle() {
    static auto* threads = new std::vector<PooledThread*>;
    return *threads;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Job> job_;
};

std::shared_ptr<Job> Job::start(std::function<void()> function) {
  auto job = std::make_shared<Job>();
  job->function_ = std::move(function);
  PooledThread::run(job);
  return job;
}

bool Job::wait(std::chrono::milliseconds time_limit) {
  constexpr std::chrono::milliseconds kSlice{10};
  std::unique_lock lock(mutex_);
  for (std::chrono::milliseconds waited{0}; waited < time_limit; waited += kSlice) {
    if (changed_.wait_for(lock, kSlice, [this] { return done_.load(); })) return true;
  }
  return done_;
}

namespace {

constexpr char kEntry[] = "driftd_provider_v1";

// These stand in for slots that the provider does not have.
driftd_status no_describe(driftd_push_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_schema(driftd_str, driftd_push_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_open(driftd_call, const driftd_open_args*, driftd_instance*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_read(driftd_instance, driftd_call, const driftd_identity*, std::uint32_t, std::uint32_t) {
  return DRIFTD_UNSUPPORTED;
}
driftd_status no_refresh(driftd_instance, driftd_call, const driftd_refresh_args*, driftd_refresh_result*) {
  return DRIFTD_UNSUPPORTED;
}
driftd_status no_diff(driftd_instance, const driftd_diff_args*, driftd_verdict_fn, void*) { return DRIFTD_UNSUPPORTED; }
driftd_status no_health(driftd_instance, driftd_call, driftd_health_fn, void*) { return DRIFTD_UNSUPPORTED; }
void no_wake(driftd_instance) {}
void no_close(driftd_instance) {}
const void* no_query(driftd_str, std::uint32_t) { return nullptr; }

driftd_provider_table full_size(const driftd_provider_table* given) {
  driftd_provider_table out{sizeof out,  0,        &no_describe, &no_schema, &no_open,  &no_read,
                            &no_refresh, &no_diff, &no_health,   &no_wake,   &no_close, &no_query};
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  std::memcpy(&out, given, std::min<std::size_t>(size, sizeof out));
  out.size = sizeof out;
  const void* slots[10];
  std::memcpy(slots, &out.describe, sizeof slots);
  for (const void* slot : slots) {
    if (slot == nullptr) throw CheckNotMade("the provider's table has a NULL slot; see negotiation.slots");
  }
  return out;
}

decltype(&driftd_provider_v1) find_entry(const std::string& file) {
  set_progress("dlopen");
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw CheckNotMade(fmt::format("it cannot be loaded ({}); see binary.loads", ::dlerror()));
  void* entry = ::dlsym(library, kEntry);
  if (entry == nullptr) throw CheckNotMade(fmt::format("{} is not exported; see binary.entry", kEntry));
  return reinterpret_cast<decltype(&driftd_provider_v1)>(entry);
}

driftd_provider_table negotiate(const std::string& file) {
  const auto entry = find_entry(file);
  static const std::string version = "driftd-check";
  const driftd_offer offer{sizeof offer, 0, DRIFTD_ABI_MINOR, 0, {version.data(), version.size()}};
  driftd_accept accept{};
  accept.size = sizeof accept;
  set_progress(kEntry);
  const driftd_status status = entry(Host::get().table(), &offer, &accept);
  if (status != DRIFTD_OK || accept.table == nullptr) {
    throw CheckNotMade(fmt::format("{} answered {}; see negotiation.minor", kEntry, status));
  }
  return full_size(accept.table);
}

/// Keeps a document of any size, because the checks that ask for it know its maximum and report a longer one.
void push_document(void* user, driftd_str text) {
  static_cast<CallTrace*>(user)->pushed.push_back(parse_text(text, "pushed text", 16u << 20));
}

template <class F>
CallTrace ask(const std::string& name, F function) {
  const auto trace = std::make_shared<CallTrace>();
  const auto job = Job::start([trace, name, function] {
    set_progress(name);
    try {
      trace->status = function(&push_document, trace.get());
    } catch (...) {
      add_exception(*trace, name);
    }
  });
  if (!job->wait(kGrace)) {
    throw RuleBroken(fmt::format("{}, which does no I/O, did not return within {} ms", name, kGrace.count()));
  }
  return *trace;
}

}  // namespace

const Provider& Provider::load(const Subject& subject) {
  static const Provider* loaded = [&] {
    auto* provider = new Provider;
    provider->table = negotiate(subject.file);
    return provider;
  }();
  return *loaded;
}

CallTrace Provider::describe() const {
  return ask("describe", [this](driftd_push_fn push, void* user) { return table.describe(push, user); });
}

CallTrace Provider::schema(const std::string& what) const {
  return ask("schema(\"" + what + "\")", [this, what](driftd_push_fn push, void* user) {
    return table.schema({what.data(), what.size()}, push, user);
  });
}

const ipc::LoadAnswer& Provider::loaded() const {
  static const ipc::LoadAnswer kLoaded = [this] {
    worker::Library library;
    library.table = table;
    library.file = "the provider";
    auto out = worker::ask_plugin(library);
    if (!out)
      throw CheckNotMade(fmt::format("{}; see schema.describe, schema.settings and schema.kinds", out.error().message));
    const auto declared = ipc::declared_extensions(out->describe);  // negotiation.whole_extensions checks that query
                                                                    // agrees
    out->extensions.assign(declared.begin(), declared.end());
    return *out;
  }();
  return kLoaded;
}

const core::ProviderInfo& Provider::info() const {
  static const auto kInfo = [this] {
    auto out = ipc::parse_info(loaded());
    if (!out) throw CheckNotMade(fmt::format("{}; see schema.describe and schema.kinds", out.error().message));
    return *out;
  }();
  return *kInfo;
}

const void* Provider::query(const char* id, std::uint32_t revision) const {
  return table.query({id, std::strlen(id)}, revision);
}

std::shared_ptr<const Declarations> Provider::declared(const std::map<std::string, std::string>& secrets) const {
  auto out = std::make_shared<Declarations>();
  out->kinds.insert(info().kinds.begin(), info().kinds.end());
  out->metrics = ipc::declared_metrics(loaded().describe);
  out->secrets = secrets;
  return out;
}

}  // namespace driftd::check
