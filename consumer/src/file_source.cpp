// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "driftd/consumer/backend.hpp"
#include "driftd/consumer/credentials.hpp"

namespace driftd::consumer {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxFile = 4 << 20;
constexpr const char* kDefaultPath = "/config/backends.json";
/// Members of `config` whose values are secrets.
constexpr const char* kClear[] = {"username", "password", "token"};

/// Reads an entry and says which member is wrong. Unknown members are refused: one that is misspelled would be missed
/// by silence. What is in `config` is the application's.
class EntryReader {
 public:
  EntryReader(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}

  Result<Backend> read(const json& entry, const std::string& backend) {
    if (!entry.is_object()) return wrong("", "an object", entry);
    static const std::set<std::string> kKnown = {"backend",      "type",     "endpoint",   "config",
                                                 "capabilities", "metadata", "credentials"};
    for (const auto& [member, value] : entry.items()) {
      if (kKnown.count(member) == 0) return fail(Code::invalid, where(member) + ": unknown member");
    }
    Backend out;
    out.name = backend;
    out.type = text(entry, "type");
    out.endpoint = text(entry, "endpoint");
    read_config(entry, out);
    read_texts(entry, "metadata", out.metadata);
    read_texts(entry, "credentials", out.credentials);
    read_capabilities(entry, out);
    for (const auto& [member, reference] : out.credentials) {
      const auto parsed = parse_reference(reference);
      if (!parsed) note(fail(Code::invalid, where("credentials." + member) + ": " + parsed.error().message));
      if (out.clear.count(member) != 0) {
        note(
            fail(Code::invalid, where("credentials." + member) + ": config." + member + " has a value, too; keep one"));
      }
    }
    if (failed_) return tl::unexpected<Error>(error_);
    return out;
  }

 private:
  std::string where(const std::string& member) const {
    return "failed to parse backend config: " + path_ + ": " + name_ + (member.empty() ? "" : "." + member);
  }
  tl::unexpected<Error> wrong(const std::string& member, const char* expected, const json& found) const {
    return fail(Code::invalid, where(member) + ": expected " + expected + ", found " + found.type_name());
  }
  void note(const tl::unexpected<Error>& error) {
    if (!failed_) error_ = error.value();
    failed_ = true;
  }

  std::string text(const json& object, const char* member) {
    const auto found = object.find(member);
    if (found == object.end()) return {};
    if (found->is_string()) return *found;
    note(wrong(member, "a string", *found));
    return {};
  }

  void read_texts(const json& entry, const char* member, std::map<std::string, std::string>& to) {
    const auto found = entry.find(member);
    if (found == entry.end()) return;
    if (!found->is_object()) return note(wrong(member, "an object of strings", *found));
    for (const auto& [name, value] : found->items()) {
      if (!value.is_string()) return note(wrong(std::string(member) + "." + name, "a string", value));
      to[name] = value;
    }
  }

  void read_capabilities(const json& entry, Backend& out) {
    const auto found = entry.find("capabilities");
    if (found == entry.end()) return;
    if (!found->is_array()) return note(wrong("capabilities", "an array of strings", *found));
    for (const auto& value : *found) {
      if (!value.is_string()) return note(wrong("capabilities", "an array of strings", *found));
      out.capabilities.push_back(value);
    }
  }

  void read_config(const json& entry, Backend& out) {
    const auto found = entry.find("config");
    if (found == entry.end()) return;
    if (!found->is_object()) return note(wrong("config", "an object", *found));
    json config = *found;
    for (const char* member : kClear) {
      const auto value = config.find(member);
      if (value == config.end()) continue;
      if (!value->is_string()) return note(wrong(std::string("config.") + member, "a string", *value));
      out.clear[member] = Secret(value->get<std::string>());
      config.erase(value);
    }
    if (out.endpoint.empty()) out.endpoint = endpoint_in(config);
    out.config_json = config.dump();
  }

  /// `host` and `port`, or `brokers`, as the RFC's files have them.
  std::string endpoint_in(const json& config) {
    const auto brokers = config.find("brokers");
    if (brokers != config.end() && brokers->is_array()) {
      std::string out;
      for (const auto& broker : *brokers) {
        if (broker.is_string()) out += (out.empty() ? "" : ",") + broker.get<std::string>();
      }
      return out;
    }
    const std::string host = text(config, "host");
    const auto port = config.find("port");
    if (host.empty() || port == config.end()) return host;
    const bool number = port->is_number_unsigned() && *port > 0U && *port <= 65'535U;
    if (!number) {
      note(fail(Code::invalid, where("config.port") + ": expected a number from 1 to 65535"));
      return host;
    }
    return (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + std::to_string(port->get<unsigned>());
  }

  std::string path_, name_;
  bool failed_ = false;
  Error error_;
};

class FileSource final : public BackendSource {
 public:
  explicit FileSource(std::string path) : path_(std::move(path)) {}

  Result<Backend> get(const std::string& backend, const std::string& slot) override {
    auto whole = read();
    if (!whole) return tl::unexpected<Error>(whole.error());
    const std::string& name = whole->contains(slot) ? slot : backend;
    const auto entry = whole->find(name);
    if (entry == whole->end()) {
      return fail(Code::not_found,
                  path_ + " has neither an entry for the slot " + slot + " nor one for the backend " + backend);
    }
    if (entry->is_object() && entry->contains("backend") && (*entry)["backend"] != backend) {
      return fail(Code::invalid, path_ + ": " + name + ".backend names another backend than " + backend +
                                     ", which the slot " + slot + " is bound to");
    }
    return EntryReader(path_, name).read(*entry, backend);
  }
  bool differs_by_slot() const override { return true; }
  bool follows_events() const override { return false; }

 private:
  Result<json> read() const {
    std::ifstream file(path_, std::ios::binary);
    if (!file) {
      const Code code = errno == ENOENT ? Code::not_found : errno == EACCES ? Code::denied : Code::unavailable;
      return fail(code, "failed to read backend config: " + path_ + ": " + std::strerror(errno));
    }
    std::string text(kMaxFile + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMaxFile)
      return fail(Code::invalid, "failed to read backend config: " + path_ + " is larger than 4 MiB");
    try {
      auto out = json::parse(text);
      if (out.is_object()) return out;
      return fail(Code::invalid,
                  "failed to parse backend config: " + path_ + ": expected an object, found " + out.type_name());
    } catch (const json::parse_error& error) {  // its text quotes the file, which may hold passwords
      return fail(Code::invalid, "failed to parse backend config: " + path_ + ": not valid JSON at byte " +
                                     std::to_string(error.byte));
    }
  }

  std::string path_;
};

}  // namespace

std::unique_ptr<BackendSource> file_source(std::string path) {
  const char* named = std::getenv("BACKEND_CONFIG_PATH");
  if (path.empty() && named != nullptr) path = named;
  return std::make_unique<FileSource>(path.empty() ? kDefaultPath : std::move(path));
}

}  // namespace driftd::consumer
