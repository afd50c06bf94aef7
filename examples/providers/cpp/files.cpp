// SPDX-License-Identifier: Apache-2.0
// An example provider: a folder of files, one kind `file`. Its attribute `digest` tells that a content changed without
// showing it: HMAC-SHA256 under a secret setting, since the plain hash of a short file can be guessed.
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
constexpr off_t kMost = 16 << 20;  // bytes; a larger file gets no digest
constexpr auto kEvents = IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE | IN_DELETE | IN_MOVE_SELF | IN_ONLYDIR;
constexpr const char* kDescribe = R"({"id": "files", "version": "0.1.0", "types": ["files"], "kinds": ["file"],
  "extensions": [{"id": "driftd.watch", "revision": 1}], "concurrency": 2, "metrics": []})";
constexpr const char* kSettings = R"({"type": "object", "required": ["path", "key"], "additionalProperties": false,
  "properties": {"path": {"type": "string", "format": "path", "description": "the folder"},
  "key": {"type": "string", "writeOnly": true, "description": "key of the digests, by reference"}}})";
constexpr const char* kFile = R"({"schema": "driftd-schema/1", "kind": "file", "revision": 1, "class": "config",
  "title": "a file", "attributes": {"executable": {"type": "bool"}, "size": {"type": "int"},
  "digest": {"type": "string"}}})";
struct Fd {
  int fd;
  ~Fd() { ::close(fd); }
};
struct Key {  // a secret lives no longer than the call that needs it
  std::string bytes;
  ~Key() { ::explicit_bzero(bytes.data(), bytes.size()); }
};
std::string digest(const Key& key, const std::string& text) {
  unsigned char raw[32];
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  const auto* done = HMAC(EVP_sha256(), key.bytes.data(), int(key.bytes.size()), data, text.size(), raw, nullptr);
  if (done == nullptr) throw sdk::Failure(DRIFTD_INTERNAL, "libcrypto refused HMAC-SHA256");
  std::string out;
  for (const unsigned char c : raw) out += {"0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
  return out;
}
class Folder final : public sdk::Instance {  // const after open: its calls may run at once
 public:
  explicit Folder(const nlohmann::json& settings) : folder_(settings.at("path")), token_(settings.at("key")) {}
  sdk::RefreshResult refresh(sdk::Call& call, const sdk::Refresh& request) override {
    if (!request.wants("file")) return {};
    const Key key{call.secret(token_)};
    std::uint64_t count = 0;
    for (const auto& name : list()) {
      const auto record = look(call, key, name);
      if (record && !call.emit(*record)) return {};  // the host wants no more now: not complete
      count += record.has_value();
    }
    call.complete("file", count);  // reached only when nothing failed: what was not seen is gone
    return {};
  }
  void read(sdk::Call& call, std::span<const sdk::Identity> ids) override {
    const Key key{call.secret(token_)};
    const auto names = list();  // throws when the folder is away: that says nothing about its content
    for (const auto& id : ids) {
      const auto record = id.kind == "file" && names.contains(id.id) ? look(call, key, id.id) : std::nullopt;
      record ? void(call.emit(*record)) : not_found(call, id);
    }
  }
  sdk::Health health(sdk::Call&) override { return list(), sdk::Health{}; }  // a Failure says that it is down, and why
  void watch(sdk::Call& call, const std::string&) override {
    const Fd events{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
    while (!call.cancelled()) {
      if (::inotify_add_watch(events.fd, folder_.c_str(), kEvents) < 0) fail(errno);  // again: it may be another folder
      call.bookmark({});  // a hint, "refresh now"; at first for what changed before the watch was set
      pollfd on[] = {{events.fd, POLLIN, 0}, {call.cancel_fd(), POLLIN, 0}};
      while (!call.cancelled() && ::poll(on, 2, 1000) <= 0) continue;
      for (char drain[4096]; ::read(events.fd, drain, sizeof drain) > 0;) continue;
    }
  }

 private:
  [[noreturn]] void fail(int error) const {  // the code tells the host what to do next; a missing right is named
    const auto text = folder_ + ": " + std::generic_category().message(error);
    if (error == EACCES) throw sdk::Failure(DRIFTD_DENIED, text, "file", "r-x on " + folder_);
    throw sdk::Failure(DRIFTD_UNAVAILABLE, text, "file");
  }
  std::set<std::string> list() const {
    std::set<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator at(folder_, error);
    for (; !error && at != end(at); at.increment(error)) names.insert(at->path().filename());
    if (error) fail(error.value());
    return names;
  }
  std::optional<sdk::Record> look(sdk::Call& call, const Key& key, const std::string& name) const {  // none: gone
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "stopped before " + name, "file");
    const std::string path = folder_ + '/' + name;
    struct stat at {};
    if (::lstat(path.c_str(), &at) != 0 && list().contains(name)) fail(EACCES);  // list(): not if the folder is away
    if (!S_ISREG(at.st_mode)) return {};
    sdk::Record record{.kind = "file", .id = name, .observed_ns = call.now_ns()};
    nlohmann::json body{{"executable", (at.st_mode & 0111) != 0}, {"size", at.st_size}};
    std::ifstream in(path, std::ios::binary);
    if (in && at.st_size <= kMost) {
      body["digest"] = digest(key, {std::istreambuf_iterator<char>(in), {}});
    } else {  // it is there but not known: never a drift
      record.unread = {{"digest", in ? DRIFTD_UNSUPPORTED : DRIFTD_DENIED, in ? "above 16 MiB" : "grant r on " + path}};
    }
    record.body = body.dump();
    return record;
  }
  const std::string folder_, token_;
};
std::unique_ptr<sdk::Instance> open(sdk::Call&, std::string_view, std::string_view settings) {
  return std::make_unique<Folder>(nlohmann::json::parse(settings));
}
const sdk::Plugin& plugin() {
  static const sdk::Plugin kPlugin{kDescribe, {{"settings", kSettings}, {"file", kFile}}, true, &open};
  return kPlugin;
}
}  // namespace
DRIFTD_PROVIDER(plugin)
