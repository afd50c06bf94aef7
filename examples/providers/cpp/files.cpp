// SPDX-License-Identifier: Apache-2.0
// A provider in C++. It reads a folder: each regular file in it is one resource of the kind `file`.
// The attribute `digest` tells that the content of a file changed, but not what the content is. It is an HMAC-SHA256
// with a secret key from the settings, because somebody could guess a short content from its plain hash.
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

// A larger file gets no digest.
constexpr off_t kMaxBytes = 16 << 20;

// The inotify events after which the agent must refresh. IN_ONLYDIR refuses a path that is not a folder.
constexpr auto kEvents = IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE | IN_DELETE | IN_MOVE_SELF | IN_ONLYDIR;

// ---- What the provider offers.

// Tells the host the provider's id, its kinds and the extensions of the ABI that it has.
constexpr const char* kDescribe = R"({"id": "files", "version": "0.1.0", "types": ["files"], "kinds": ["file"],
  "extensions": [{"id": "driftd.watch", "revision": 1}], "concurrency": 2, "metrics": []})";

constexpr const char* kSettingsSchema = R"({
  "type": "object", "required": ["path", "key"], "additionalProperties": false, "properties": {
    "path": {"type": "string", "format": "path", "description": "the folder"},
    "key": {"type": "string", "writeOnly": true, "description": "key of the digests, by reference"}}})";

constexpr const char* kFileSchema = R"({
  "schema": "driftd-schema/1", "kind": "file", "revision": 1, "class": "config", "title": "a file", "attributes": {
    "executable": {"type": "bool"}, "size": {"type": "int"}, "digest": {"type": "string"}}})";

// ---- Helpers.

// Closes a file descriptor at the end of its scope.
struct Fd {
  int fd;
  ~Fd() { ::close(fd); }
};

// The bytes of the secret key. They are overwritten at the end of the call that asked for them.
struct Key {
  std::string bytes;
  ~Key() { ::explicit_bzero(bytes.data(), bytes.size()); }
};

// Returns the HMAC-SHA256 of a content as hex digits.
std::string digest(const Key& key, const std::string& content) {
  unsigned char raw[32];
  const auto* data = reinterpret_cast<const unsigned char*>(content.data());
  const auto* result = HMAC(EVP_sha256(), key.bytes.data(), int(key.bytes.size()), data, content.size(), raw, nullptr);
  if (result == nullptr) throw sdk::Failure(DRIFTD_INTERNAL, "libcrypto refused HMAC-SHA256");
  std::string hex;
  for (const unsigned char byte : raw) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

// ---- One opened backend. It does not change after open, so its calls may run at the same time.

class Folder final : public sdk::Instance {
 public:
  Folder(std::string folder, std::string token) : folder_(std::move(folder)), token_(std::move(token)) {}

  // Lists the folder and emits each file in it.
  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override {
    if (!request.wants("file")) return {};
    const Key key{call.secret(token_)};
    std::uint64_t count = 0;
    for (const auto& name : list()) {
      const auto record = read_file(call, key, name);
      if (!record) continue;
      // False: the host wants no more records now. Then the kind is not complete.
      if (!call.emit(*record)) return {};
      ++count;
    }
    // Everything was listed and nothing failed, so the host may take what is missing for deleted.
    call.complete("file", count);
    return {};
  }

  // Reads some resources by their identity. Each of them must be answered, also if emit() returns false.
  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override {
    const Key key{call.secret(token_)};
    // Throws if the folder is missing, because then nothing is known about the resources.
    const auto names = list();
    for (const auto& id : ids) {
      std::optional<sdk::Record> record;
      if (id.kind == "file" && names.contains(id.id)) record = read_file(call, key, id.id);
      if (record) {
        call.emit(*record);
      } else {
        not_found(call, id);
      }
    }
  }

  // Checks the health: the system is up if the folder can be listed. A Failure says that it is down, and why.
  sdk::Health health(sdk::Call&) override {
    list();
    return {};
  }

  // Watches the folder until the host cancels the call. Each change sends a hint, and the agent refreshes at once.
  void watch(sdk::Call& call, const std::string&) override {
    const Fd events{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
    if (events.fd < 0) fail(errno);
    while (!call.cancelled()) {
      // The watch is set each time, because the path may lead to another folder by now.
      if (::inotify_add_watch(events.fd, folder_.c_str(), kEvents) < 0) fail(errno);
      // A bookmark without a cursor is a hint. The first one is for changes before the watch was set.
      call.bookmark({});
      wait(call, events.fd);
      // The events are only taken out of the queue: the refresh lists the folder anyway.
      char dropped[4096];
      while (::read(events.fd, dropped, sizeof dropped) > 0) continue;
    }
  }

 private:
  // Throws the failure of a call. Its code tells the host what to do next. DENIED also names the right that is missing.
  [[noreturn]] void fail(int error) const {
    const auto text = folder_ + ": " + std::generic_category().message(error);
    if (error == EACCES) throw sdk::Failure(DRIFTD_DENIED, text, "file", "r-x on " + folder_);
    throw sdk::Failure(DRIFTD_UNAVAILABLE, text, "file");
  }

  // Waits until the descriptor is readable or the host wants the call to end.
  static void wait(sdk::Call& call, int fd) {
    pollfd descriptors[] = {{fd, POLLIN, 0}, {call.cancel_fd(), POLLIN, 0}};
    while (!call.cancelled() && ::poll(descriptors, 2, 1000) <= 0) continue;
  }

  // Returns the names in the folder. Throws if it cannot be listed: a missing folder is not an empty one.
  std::set<std::string> list() const {
    std::set<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator entry(folder_, error);
    while (!error && entry != std::filesystem::directory_iterator()) {
      names.insert(entry->path().filename());
      entry.increment(error);
    }
    if (error) fail(error.value());
    return names;
  }

  // Reads one file. Returns nothing if it is gone or not a regular file.
  std::optional<sdk::Record> read_file(sdk::Call& call, const Key& key, const std::string& name) const {
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "stopped before " + name, "file");
    // The time must be taken before the system is asked.
    sdk::Record record{.kind = "file", .id = name, .observed_ns = call.now_ns()};
    const std::string path = folder_ + '/' + name;
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
      // list() throws if the folder itself is gone. If it still has the name, only the right to enter it is missing.
      if (list().contains(name)) fail(EACCES);
      return {};
    }
    if (!S_ISREG(info.st_mode)) return {};
    nlohmann::json body{{"executable", (info.st_mode & 0111) != 0}, {"size", info.st_size}};
    std::ifstream in(path, std::ios::binary);
    if (info.st_size > kMaxBytes) {
      // An attribute that is emitted as unread counts as unknown, never as a drift.
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
  const std::string token_;  // stands for the secret key
};

// ---- The entry.

// Returns a setting that must be a text. Empty if it is missing or not a text.
std::string text_setting(const nlohmann::json& settings, const char* name) {
  if (!settings.is_object() || !settings.contains(name) || !settings[name].is_string()) return {};
  return settings[name];
}

// Reads the settings and fails if one is missing. The secret itself is asked for in each call that needs it.
std::unique_ptr<sdk::Instance> open(sdk::Call&, std::string_view, std::string_view text) {
  const auto settings = nlohmann::json::parse(text, nullptr, false);
  const std::string path = text_setting(settings, "path");
  const std::string token = text_setting(settings, "key");
  if (path.empty() || token.empty()) {
    throw sdk::Failure(DRIFTD_INVALID, "settings: expected the texts `path` and `key`");
  }
  return std::make_unique<Folder>(path, token);
}

// Returns what the macro below hands to the host.
const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin{
      .describe = kDescribe,
      .schemas = {{"settings", kSettingsSchema}, {"file", kFileSchema}},
      .has_watch = true,
      .open = &open,
  };
  return kPlugin;
}

}  // namespace

// Defines the only exported symbol.
DRIFTD_PROVIDER(plugin)
