// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>

#include "agent_link.hpp"

namespace driftd::consumer {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxRemembered = 4'096;  // backends; a pattern uses up to 128
constexpr const char* kHidden = "[REDACTED]";

bool is_credential_name(const std::string& key) { return key == "username" || key == "password" || key == "token"; }

/// Returns the reference in `${…}`; empty if the text is not one.
std::string unwrapped(const std::string& text) {
  const bool whole = text.starts_with("${") && text.ends_with("}") && text.find(':') != text.npos;
  return whole ? text.substr(2, text.size() - 3) : std::string();
}

bool is_kube_reference(const std::string& text) {
  return text.starts_with("k8s:") && parse_reference(text).has_value();
}

/// Takes the credentials out of a config, the nearest to the top first.
class CredentialPicker {
 public:
  CredentialPicker(Backend& out, ResolvedBy resolved_by) : out_(out), resolved_by_(resolved_by) {}

  Status pick(json& config) {
    std::deque<Place> places = {{&config, ""}};
    while (!places.empty()) {
      const Place place = places.front();
      places.pop_front();
      std::vector<std::string> taken;
      for (auto& [key, value] : place.object->items()) {
        const std::string path = place.path.empty() ? key : place.path + "." + key;
        if (value.is_object()) places.push_back({&value, path});
        if (!value.is_string()) continue;
        auto found = take(key, path, value.get<std::string>());
        if (!found) return tl::unexpected<Error>(found.error());
        if (*found) taken.push_back(key);
      }
      for (const auto& key : taken) place.object->erase(key);
    }
    return {};
  }

 private:
  struct Place {
    json* object;
    std::string path;
  };

  /// Returns true if the text is a credential, which is then one of the backend's.
  Result<bool> take(const std::string& key, const std::string& path, const std::string& text) {
    const bool short_name = out_.credentials.count(key) == 0 && out_.clear.count(key) == 0;
    const std::string& member = short_name ? key : path;
    const std::string inner = unwrapped(text);
    if (!inner.empty()) {
      out_.credentials[member] = resolved_by_ == ResolvedBy::agent ? "agent:" + out_.name + "#" + inner : inner;
      return true;
    }
    if (is_kube_reference(text)) {
      out_.credentials[member] = text;
      return true;
    }
    if (text == kHidden && is_credential_name(key)) {
      return fail(Code::invalid, "backend " + out_.name + ": '" + path +
                                     "' is in clear text in the configuration of "
                                     "driftd's agent, which gives it to nobody; write it as a reference there");
    }
    if (!is_credential_name(key)) return false;
    out_.clear[member] = Secret(text);
    return true;
  }

  Backend& out_;
  const ResolvedBy resolved_by_;
};

Result<Backend> to_backend(const v1::Backend& from, ResolvedBy resolved_by) {
  Backend out;
  out.name = from.name();
  out.type = from.type();
  out.endpoint = from.endpoint();
  out.capabilities.assign(from.capabilities().begin(), from.capabilities().end());
  out.metadata.insert(from.metadata().begin(), from.metadata().end());
  const json whole = json::parse(from.config_json(), nullptr, false);
  if (!whole.is_object() || whole.size() > 1 || (whole.size() == 1 && !whole.begin()->is_object())) {
    return fail(Code::internal, "backend " + from.name() +
                                    ": driftd's agent gave a config that is not an object of one "
                                    "object");
  }
  json config = whole.empty() ? json::object() : *whole.begin();
  const Status picked = CredentialPicker(out, resolved_by).pick(config);
  if (!picked) return tl::unexpected<Error>(picked.error());
  out.config_json = config.dump();
  return out;
}

class AgentSource final : public BackendSource {
 public:
  AgentSource(std::shared_ptr<AgentLink> link, ResolvedBy resolved_by, std::unique_ptr<BackendSource> fallback)
      : link_(std::move(link)),
        resolved_by_(resolved_by),
        fallback_(std::move(fallback)) {}

  Result<Backend> get(const std::string& backend, const std::string& slot) override {
    auto answer = link_->backend(backend);
    if (answer) {
      auto out = to_backend(*answer, resolved_by_);
      if (out) remember(*out);
      return out;
    }
    const bool away = answer.error().code == Code::unavailable || answer.error().code == Code::deadline;
    if (!away) {
      if (answer.error().code == Code::not_found) forget(backend);
      return tl::unexpected<Error>(answer.error());
    }
    if (auto last = remembered(backend)) return *last;
    if (!fallback_) return tl::unexpected<Error>(answer.error());
    auto other = fallback_->get(backend, slot);
    if (!other) {
      return fail(answer.error().code, answer.error().message + "; and without it: " + other.error().message);
    }
    other->provisional = true;
    return other;
  }
  /// What the agent says does not. A fallback may, and is not kept by whoever asks.
  bool differs_by_slot() const override { return false; }
  /// The address in the agent's configuration does not change when the primary moves.
  bool follows_events() const override { return false; }

 private:
  void remember(Backend backend) {
    const std::lock_guard lock(mutex_);
    if (last_.size() >= kMaxRemembered && last_.count(backend.name) == 0) return;
    backend.provisional = true;
    const std::string name = backend.name;
    last_[name] = std::move(backend);
  }
  void forget(const std::string& backend) {
    const std::lock_guard lock(mutex_);
    last_.erase(backend);
  }
  std::optional<Backend> remembered(const std::string& backend) {
    const std::lock_guard lock(mutex_);
    const auto found = last_.find(backend);
    return found == last_.end() ? std::nullopt : std::optional(found->second);
  }

  const std::shared_ptr<AgentLink> link_;
  const ResolvedBy resolved_by_;
  const std::unique_ptr<BackendSource> fallback_;
  std::mutex mutex_;
  std::map<std::string, Backend> last_;  ///< what the agent said, by backend
};

}  // namespace

std::unique_ptr<BackendSource> agent_source(std::shared_ptr<AgentLink> link, ResolvedBy resolved_by,
                                            std::unique_ptr<BackendSource> fallback) {
  return std::make_unique<AgentSource>(std::move(link), resolved_by, std::move(fallback));
}

}  // namespace driftd::consumer
