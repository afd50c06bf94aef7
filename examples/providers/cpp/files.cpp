// SPDX-License-Identifier: Apache-2.0
// A provider in C++. It shows a folder: each regular file in it is one resource of the kind `file`.
// The attribute `digest` shows that a content changed without showing the content. It is an HMAC-SHA256 under a secret
// setting, because the plain hash of a short text can be guessed.
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include "driftd/provider.hpp"

namespace {

namespace sdk = driftd::sdk;

// Bytes. A larger file gets no digest.
constexpr off_t kMaxSize = 16 << 20;

// The changes of the folder that make the agent refresh.
constexpr auto kEvents = IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE | IN_DELETE | IN_MOVE_SELF | IN_ONLYDIR;

// ---- What the provider offers.

constexpr const char* kDescribe = R"({"id": "files", "version": "0.1.0", "types": ["files"], "kinds": ["file"],
  "extensions": [{"id": "driftd.watch", "revision": 1}], "concurrency": 2, "metrics": []})";

constexpr const char* kSettings = R"({"type": "object", "required": ["path", "key"], "additionalProperties": false,
  "properties": {"path": {"type": "string", "format": "path", "description": "the folder"},
  "key": {"type": "string", "writeOnly": true, "description": "key of the digests, by reference"}}})";

constexpr const char* kFile = R"({"schema": "driftd-schema/1", "kind": "file", "revision": 1, "class": "config",
  "title": "a file", "attributes": {"executable": {"type": "bool"}, "size": {"type": "int"},
  "digest": {"type": "string"}}})";

// ---- Helpers.

// Closes a descriptor at the end of a scope.
struct Fd {
  int fd;
  ~Fd() { ::close(fd); }
};

// A secret lives no longer than the call that needs it.
struct Key {
  std::string bytes;
  ~Key() { ::explicit_bzero(bytes.data(), bytes.size()); }
};

// Returns the HMAC-SHA256 of a text as hex digits.
std::string digest(const Key& key, const std::string& text) {
  unsigned char raw[32];
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  const auto* done = HMAC(EVP_sha256(), key.bytes.data(), int(key.bytes.size()), data, text.size(), raw, nullptr);
  if (done == nullptr) throw sdk::Failure(DRIFTD_INTERNAL, "libcrypto refused HMAC-SHA256");
  std::string out;
  for (const unsigned char c : raw) {
    out += "0123456789abcdef"[c >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

// ---- One opened backend. It does not change after open, so its calls may run at the same time.

class Folder final : public sdk::Instance {
 public:
  Folder(std::string folder, std::string token) : folder_(std::move(folder)), token_(std::move(token)) {}

  // Lists the folder.
  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override {
    if (!request.wants("file")) return {};
    const Key key{call.secret(token_)};
    std::uint64_t count = 0;
    for (const auto& name : list()) {
      const auto record = look(call, key, name);
      if (!record) continue;
      // False: the host wants no more records now. The kind is not complete then.
      if (!call.emit(*record)) return {};
      ++count;
    }
    // Everything was listed and nothing failed. The host takes what is missing for deleted.
    call.complete("file", count);
    return {};
  }

  // Reads some resources by their identity. Each must be answered.
  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override {
    const Key key{call.secret(token_)};
    // Throws if the folder is missing: that says nothing about its content.
    const auto names = list();
    for (const auto& id : ids) {
      std::optional<sdk::Record> record;
      if (id.kind == "file" && names.contains(id.id)) record = look(call, key, id.id);
      if (record) {
        call.emit(*record);
      } else {
        not_found(call, id);
      }
    }
  }

  // The system is up if the folder can be listed. A Failure says that it is down, and why.
  sdk::Health health(sdk::Call&) override {
    list();
    return {};
  }

  // Watches the folder until the host cancels the call. Each change sends a hint, and the agent refreshes at once.
  void watch(sdk::Call& call, const std::string&) override {
    const Fd events{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
    while (!call.cancelled()) {
      // The watch is set each time, because the path may lead to another folder by now.
      if (::inotify_add_watch(events.fd, folder_.c_str(), kEvents) < 0) fail(errno);
      // A bookmark is the hint. The first one is for changes before the watch was set.
      call.bookmark({});
      wait(call, events.fd);
      char drain[4096];
      while (::read(events.fd, drain, sizeof drain) > 0) continue;
    }
  }

 private:
  // Throws the failure of a call. The code tells the host what to do next; a missing right is named.
  [[noreturn]] void fail(int error) const {
    const auto text = folder_ + ": " + std::generic_category().message(error);
    if (error == EACCES) throw sdk::Failure(DRIFTD_DENIED, text, "file", "r-x on " + folder_);
    throw sdk::Failure(DRIFTD_UNAVAILABLE, text, "file");
  }

  // Waits until a descriptor is readable or the host wants the call to end.
  static void wait(sdk::Call& call, int fd) {
    pollfd on[] = {{fd, POLLIN, 0}, {call.cancel_fd(), POLLIN, 0}};
    while (!call.cancelled() && ::poll(on, 2, 1000) <= 0) continue;
  }

  // Returns the names in the folder. Throws if it cannot be listed: a missing folder is not an empty one.
  std::set<std::string> list() const {
    std::set<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator at(folder_, error);
    while (!error && at != std::filesystem::directory_iterator()) {
      names.insert(at->path().filename());
      at.increment(error);
    }
    if (error) fail(error.value());
    return names;
  }

  // Reads one file. Returns nothing if it is gone or not a regular file.
  std::optional<sdk::Record> look(sdk::Call& call, const Key& key, const std::string& name) const {
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "stopped before " + name, "file");
    // The time must be taken before the system is asked.
    sdk::Record record{.kind = "file", .id = name, .observed_ns = call.now_ns()};
    const std::string path = folder_ + '/' + name;
    struct stat at {};
    if (::lstat(path.c_str(), &at) != 0) {
      // list() throws if the whole folder is missing. If it still has the name, the right to enter is missing.
      if (list().contains(name)) fail(EACCES);
      return {};
    }
    if (!S_ISREG(at.st_mode)) return {};
    nlohmann::json body{{"executable", (at.st_mode & 0111) != 0}, {"size", at.st_size}};
    std::ifstream in(path, std::ios::binary);
    if (at.st_size > kMaxSize) {
      // The digest exists but is not known. It is emitted as unread, which is never a drift.
      record.unread = {{"digest", DRIFTD_UNSUPPORTED, "above 16 MiB"}};
    } else if (!in) {
      record.unread = {{"digest", DRIFTD_DENIED, "grant r on " + path}};
    } else {
      body["digest"] = digest(key, {std::istreambuf_iterator<char>(in), {}});
    }
    record.body = body.dump();
    return record;
  }

  const std::string folder_;
  const std::string token_;  // stands for the secret
};

// ---- The entry.

// Returns a text of the settings. Empty if it is missing.
std::string text_of(const nlohmann::json& settings, const char* name) {
  if (!settings.is_object() || !settings.contains(name) || !settings[name].is_string()) return {};
  return settings[name];
}

// Reads the settings. Without them it opens nothing. The secret is asked for in the calls that need it.
std::unique_ptr<sdk::Instance> open(sdk::Call&, std::string_view, std::string_view text) {
  const auto settings = nlohmann::json::parse(text, nullptr, false);
  const std::string path = text_of(settings, "path");
  const std::string token = text_of(settings, "key");
  if (path.empty() || token.empty()) {
    throw sdk::Failure(DRIFTD_INVALID, "settings: expected the texts `path` and `key`");
  }
  return std::make_unique<Folder>(path, token);
}

const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin{kDescribe, {{"settings", kSettings}, {"file", kFile}}, true, &open};
  return kPlugin;
}

}  // namespace

// Defines the only exported symbol.
DRIFTD_PROVIDER(plugin)
