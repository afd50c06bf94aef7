// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/failure_text.hpp"

#include <algorithm>

#include "base/secret_text.hpp"

namespace driftd::sinks {
namespace {

struct Advice {
  int code;
  const char* text;
};

constexpr Advice kAdvice[] = {
    {JSClusterNoPeersErr, "the cluster has too few servers with room for this many replicas: lower jetstream.replicas"},
    {JSClusterNotAvailErr, "the cluster has no leader at the moment"},
    {JSClusterNotLeaderErr, "the cluster has no leader at the moment"},
    {JSAccountResourcesExceededErr, "raise the JetStream limits of the account"},
    {JSInsufficientResourcesErr, "raise max_file_store of the server or the JetStream limits of the account"},
    {JSMaximumStreamsLimitErr,
     "raise the number of streams of the account, or name an existing one in jetstream.stream"},
    {JSMemoryResourcesExceededErr, "raise max_memory_store of the server or the JetStream limits of the account"},
    {JSNoAccountErr, "the account is not known to JetStream: check user and jetstream.domain"},
    {JSNotEnabledForAccountErr, "enable JetStream for the account of this user: `jetstream: enabled` in its block"},
    {JSStorageResourcesExceededErr, "raise max_file_store of the server or the JetStream limits of the account"},
    {JSStreamMessageExceedsMaximumErr, "raise max_msg_size of the stream, then `driftd deadletter replay`"},
    {JSStreamNotFoundErr, "create the stream, or leave it to the agent with jetstream.create: true"},
    {JSStreamNotMatchErr,
     "another stream takes this subject: take it out of that one, or name that stream in jetstream.stream"},
    {JSStreamSubjectOverlapErr,
     "another stream has backend.> or driftd.agent.> already: name it in jetstream.stream, or take these subjects out "
     "of it"},
    {JSStreamReplicasNotSupportedErr, "this server is not in a cluster: set jetstream.replicas: 1"},
    {JSNotEnabledErr, "start nats-server with JetStream (`jetstream {}` or -js), or set jetstream: false"},
    {JSStreamStoreFailedErr, "a limit of the stream is reached: raise it, or delete messages that nobody needs"},
    {JSStreamSealedErr, "the stream is sealed and takes no message any more: name another one in jetstream.stream"},
    {JSStreamMaxBytesRequiredErr, "this account wants streams with max_bytes: create the stream by hand"},
    {JSStreamOfflineErr, "the servers that hold the stream are down"},
    {JSNoLimitsErr, "the account has no JetStream limits for this number of replicas"},
    {JSStreamMaxStreamBytesExceededErr, "the account limits the size of a stream: create it by hand within that limit"},
};

std::vector<std::string_view> tokens(std::string_view subject) {
  std::vector<std::string_view> out;
  while (true) {
    const auto dot = subject.find('.');
    out.push_back(subject.substr(0, dot));
    if (dot == std::string_view::npos) return out;
    subject.remove_prefix(dot + 1);
  }
}

bool matches(std::string_view pattern, std::string_view subject) {
  const auto wanted = tokens(pattern);
  const auto given = tokens(subject);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == ">") return i < given.size();
    if (i >= given.size() || (wanted[i] != "*" && wanted[i] != given[i])) return false;
  }
  return wanted.size() == given.size();
}

}  // namespace

std::string status_text(natsStatus status) {
  const bool lost = status == NATS_INSUFFICIENT_BUFFER || status == NATS_CONNECTION_DISCONNECTED;
  return lost ? "not connected" : natsStatus_GetText(status);
}

std::string explain(int jetstream_code) {
  if (jetstream_code == 0) return "";
  const std::string out = " (JetStream error " + std::to_string(jetstream_code) + ")";
  const auto* found = std::find_if(std::begin(kAdvice), std::end(kAdvice),
                                   [jetstream_code](const Advice& advice) { return advice.code == jetstream_code; });
  return found == std::end(kAdvice) ? out : out + ": " + found->text;
}

core::Attempt::Outcome classify_failure(natsStatus status, int jetstream_code) {
  using Outcome = core::Attempt::Outcome;
  if (status == NATS_MAX_PAYLOAD || jetstream_code == JSStreamMessageExceedsMaximumErr) return Outcome::permanent;
  return jetstream_code != 0 ? Outcome::refused : Outcome::retry_sink;
}

std::string shown_urls(const std::vector<std::string>& servers) {
  std::vector<std::string> out;
  for (const auto& server : servers) {  // the client accepts servers without a scheme
    const bool url = server.find("://") != std::string::npos;
    out.push_back(url ? without_credentials(server) : without_credentials("nats://" + server).substr(7));
  }
  return joined(out);
}

std::string without_our_secrets(std::string text, const NatsSettings& settings) {
  std::vector<std::string> secrets = {settings.password, settings.token};
  for (const auto& server : settings.servers) {
    const auto scheme = server.find("://"), end = server.rfind('@');
    const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
    if (end == std::string::npos || end < begin) continue;
    const std::string user_info = server.substr(begin, end - begin);
    const auto colon = user_info.find(':');
    secrets.push_back(colon == std::string::npos ? user_info : user_info.substr(colon + 1));
  }
  std::sort(secrets.begin(), secrets.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const auto& secret : secrets) {
    if (secret.size() < 3) continue;  // as the scrubber of plugins' texts does
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), "[REDACTED]");
      at += std::string_view("[REDACTED]").size();
    }
  }
  return text;
}

std::string denied_subject(std::string_view text) {
  if (text.find("ermissions ") == std::string_view::npos) return "";
  const auto to = text.find(" to ");
  if (to == std::string_view::npos) return "";
  text.remove_prefix(to + 4);
  while (!text.empty() && text.front() == '"') text.remove_prefix(1);
  return std::string(text.substr(0, text.find('"')));
}

bool covers(const std::vector<std::string>& subjects, std::string_view subject) {
  return std::any_of(subjects.begin(), subjects.end(), [subject](const auto& one) { return matches(one, subject); });
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace driftd::sinks
