// SPDX-License-Identifier: Apache-2.0
#include "runner_settings.hpp"

#include <openssl/evp.h>
#include <algorithm>
#include <set>

namespace driftd::consumer {
namespace {

constexpr std::size_t kMaxName = 128, kMaxSlots = 1'024, kMaxBackends = 128;
constexpr std::size_t kShownName = 24;  ///< of each part of a durable name

tl::unexpected<Error> wrong(const std::string& setting, const std::string& why) {
  return fail(Code::invalid, "settings: " + setting + ": " + why);
}

/// Empty if the name of a backend or slot is good.
std::string reason(const std::string& name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxName) return "is longer than 128 bytes";
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f && c != '/' && c != '*' && c != '>';
  });
  return plain ? "" : "has a space, a control character, `/`, `*` or `>`";
}

Status check_slots(const RunnerSettings& settings) {
  if (settings.slots.empty() || settings.slots.size() > kMaxSlots) {
    return wrong("slots", "1 to 1,024 are possible, found " + std::to_string(settings.slots.size()));
  }
  std::set<std::string> slots, backends;
  for (std::size_t i = 0; i < settings.slots.size(); ++i) {
    const SlotBinding& binding = settings.slots[i];
    const std::string at = "slots[" + std::to_string(i) + "]";
    if (const auto why = reason(binding.slot); !why.empty()) return wrong(at + ".slot", why);
    if (!slots.insert(binding.slot).second) return wrong(at + ".slot", "`" + binding.slot + "` is there twice");
    if (const auto why = reason(binding.backend); !why.empty()) return wrong(at + ".backend", why);
    std::set<std::string> own = {binding.backend};
    for (const auto& alternate : binding.alternates) {
      if (const auto why = reason(alternate); !why.empty()) return wrong(at + ".alternates", why);
      if (!own.insert(alternate).second) return wrong(at + ".alternates", "`" + alternate + "` is there twice");
    }
    backends.insert(own.begin(), own.end());
  }
  if (backends.size() > kMaxBackends) {
    return wrong("slots", "up to 128 backends are possible, found " + std::to_string(backends.size()));
  }
  return {};
}

}  // namespace

Status check_settings(const RunnerSettings& settings) {
  if (const auto why = reason(settings.pattern); !why.empty()) return wrong("pattern", why);
  if (!settings.instance.empty()) {
    if (const auto why = reason(settings.instance); !why.empty()) return wrong("instance", why);
  }
  if (settings.max_parallel_connects < 1 || settings.max_parallel_connects > 64) {
    return wrong("max_parallel_connects", "expected 1 to 64, found " + std::to_string(settings.max_parallel_connects));
  }
  if (settings.breaker_failures < 1) return wrong("breaker_failures", "expected 1 or more");
  for (const auto& [name, value] : {std::pair{"start_timeout", settings.start_timeout},
                                    std::pair{"credential_patience", settings.credential_patience},
                                    std::pair{"reconnect_spread", settings.reconnect_spread},
                                    std::pair{"reconnect_spread_per_slot", settings.reconnect_spread_per_slot}}) {
    if (value.count() < 0) return wrong(name, "is negative");
  }
  for (const auto& [name, value] :
       {std::pair{"resolve_timeout", settings.resolve_timeout}, std::pair{"retry_first", settings.retry_first},
        std::pair{"breaker_first", settings.breaker_first}}) {
    if (value.count() <= 0) return wrong(name, "must be above 0");
  }
  if (settings.retry_max < settings.retry_first) return wrong("retry_max", "is below retry_first");
  if (settings.breaker_max < settings.breaker_first) return wrong("breaker_max", "is below breaker_first");
  if (settings.absence.count() <= 0) return wrong("absence", "must be above 0");
  if (settings.nats.stream.empty()) return wrong("nats.stream", "is empty");
  if (settings.nats.stream.find_first_of(". *>/\\\t\r\n") != std::string::npos) {
    return wrong("nats.stream", "is not the name of a stream");
  }
  return check_slots(settings);
}

std::string durable_name(const std::string& pattern, const std::string& instance, const std::string& backend) {
  const std::string exact = pattern + "\n" + instance + "\n" + backend;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(exact.data(), exact.size(), digest, &size, EVP_sha256(), nullptr);
  std::string out;
  for (const auto* part : {&pattern, &instance, &backend}) {
    if (part->empty()) continue;
    for (const char c : part->substr(0, kShownName)) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
      out += plain ? c : '_';
    }
    out += '_';
  }
  constexpr char kHex[] = "0123456789abcdef";
  for (unsigned i = 0; i < 8; ++i) {
    out += kHex[digest[i] >> 4];
    out += kHex[digest[i] & 15];
  }
  return out;
}

}  // namespace driftd::consumer
