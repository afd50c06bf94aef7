// SPDX-License-Identifier: Apache-2.0
// What all kinds have in common: requests and what they lack, lists in pages, realms.
#include "keycloak/reader.hpp"

#include <algorithm>
#include <utility>

#include "http/http.hpp"
#include "keycloak/names.hpp"
#include "keycloak/rights.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;

constexpr int kMaxPasses = 3;

std::string realm_path(const std::string& realm) { return "/" + http::escape(realm); }

std::string page_of(const std::string& path, std::uint64_t first, std::uint64_t count) {
  return path + (path.find('?') == std::string::npos ? "?" : "&") + "first=" + std::to_string(first) +
         "&max=" + std::to_string(count);
}

/// The attributes of a realm are texts: `900` seconds.
std::chrono::milliseconds expiration_of(const json& realm) {
  const auto attributes = realm.find("attributes");
  const std::string text = attributes == realm.end() ? "" : text_of(*attributes, "adminEventsExpiration");
  const bool number = !text.empty() && text.size() < 12 && text.find_first_not_of("0123456789") == std::string::npos;
  return std::chrono::seconds(number ? std::stoll(text) : 0);
}

}  // namespace

void Reader::refuse(const Answer& answer, const std::string& kind, const std::string& realm,
                    const std::string& path) const {
  const std::string what = "GET " + settings_.url + "/admin/realms" + path.substr(0, path.find('?'));
  if (answer.status == 403) {
    const std::string role = role_for(kind);
    throw sdk::Failure(DRIFTD_DENIED,
                       what + ": HTTP status 403: the role " + role + " is missing in realm " + realm +
                           "; grant it by `" + grant_command(settings_.login, realm, role) + "`",
                       kind, role);
  }
  sdk::Failure failure(http::code_of(answer.status), what + ": HTTP status " + std::to_string(answer.status), kind);
  throw failure;
}

Answer Reader::need(const std::string& kind, const std::string& realm, const std::string& path) {
  const std::string whole = realm_path(realm) + path;
  Answer out = api_.get(call_, whole);
  if (!out.ok()) refuse(out, kind, realm, whole);
  return out;
}

std::optional<Answer> Reader::find(const std::string& kind, const std::string& realm, const std::string& path) {
  const std::string whole = realm_path(realm) + path;
  Answer out = api_.get(call_, whole);
  if (out.status == 404) return {};
  if (!out.ok()) refuse(out, kind, realm, whole);
  return out;
}

std::vector<std::string> Reader::realm_names() {
  if (!settings_.realms.empty()) return settings_.realms;
  const Answer answer = api_.get(call_, "?briefRepresentation=true");
  if (!answer.ok()) refuse(answer, "realm", settings_.login.realm, "");
  std::vector<std::string> out;
  for (const auto& each : answer.body) out.push_back(text_of(each, "realm"));
  std::sort(out.begin(), out.end());
  if (out.empty()) {
    throw sdk::Failure(DRIFTD_DENIED,
                       "Keycloak lists no realm for this account; grant it by `" +
                           grant_command(settings_.login, settings_.login.realm, "view-realm") + "`",
                       "realm", "view-realm");
  }
  return out;
}

std::optional<RealmView> Reader::realm(const std::string& name) {
  auto answer = find("realm", name, "");
  if (!answer) return {};
  RealmView out{name, text_of(answer->body, "id"), {}, answer->sent_ns};
  // With some other role Keycloak shows the name alone, which must not look like a realm without settings.
  if (out.uuid.empty()) refuse({403, {}, 0}, "realm", name, realm_path(name));
  out.events_enabled = answer->body.value("adminEventsEnabled", json()) == true;
  out.expiration = expiration_of(answer->body);
  out.representation = std::move(answer->body);
  return out;
}

std::optional<std::vector<std::string>> Reader::scope_names(const std::string& realm, const std::string& path) {
  const Answer answer = api_.get(call_, realm_path(realm) + path);
  if (answer.status == 403) return {};
  if (!answer.ok()) refuse(answer, "client_scope", realm, realm_path(realm) + path);
  std::vector<std::string> out;
  for (const auto& each : answer.body) out.push_back(text_of(each, "name"));
  std::sort(out.begin(), out.end());
  return out;
}

sdk::Record Reader::realm_record(const RealmView& view, RealmState state) {
  state.default_scopes = scope_names(view.name, "/default-default-client-scopes");
  state.optional_scopes = scope_names(view.name, "/default-optional-client-scopes");
  sdk::Record out = keycloak::realm_record(place(view.name), view.representation, state);
  out.observed_ns = view.sent_ns;
  return out;
}

bool Reader::list_pages(const std::string& kind, const std::string& realm, const std::string& path, const Make& make,
                        const Emit& emit) {
  std::set<std::string> emitted;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    bool moved = false;
    if (!list_pass(kind, realm, path, emit, make, emitted, moved)) return false;
    if (!moved) return true;
  }
  throw sdk::Failure(DRIFTD_UNAVAILABLE,
                     realm_path(realm) + path.substr(0, path.find('?')) + " changed each time while it was read, " +
                         std::to_string(kMaxPasses) + " times; it is read again in the next cycle",
                     kind);
}

bool Reader::list_pass(const std::string& kind, const std::string& realm, const std::string& path, const Emit& emit,
                       const Make& make, std::set<std::string>& emitted, bool& moved) {
  std::string last;
  for (std::uint64_t first = 0;;) {
    Answer answer = need(kind, realm, page_of(path, first, settings_.page));
    const std::size_t count = answer.body.size();
    if (first > 0 && (count == 0 || text_of(answer.body.front(), "id") != last)) {
      moved = true;
      return true;
    }
    if (count == 0) return true;
    last = text_of(answer.body.back(), "id");
    for (std::size_t i = first > 0 ? 1 : 0; i < count; ++i) {
      if (!emitted.insert(text_of(answer.body[i], "id")).second) continue;
      if (!emit(make(std::move(answer.body[i]), answer.sent_ns))) return false;
    }
    if (count < settings_.page) return true;
    first += count - 1;
  }
}

bool Reader::list_at_once(const std::string& kind, const std::string& realm, const std::string& path, const Make& make,
                          const Emit& emit) {
  Answer answer = need(kind, realm, path);
  for (auto& each : answer.body) {
    if (!emit(make(std::move(each), answer.sent_ns))) return false;
  }
  return true;
}

const ClientNames& Reader::client_names(const std::string& realm, bool listed) {
  if (const auto known = client_names_.find(realm); known != client_names_.end()) return known->second;
  ClientNames names;
  if (!listed) {
    for (const auto& [uuid, id] : index_.all("client", realm)) names[uuid] = parts_of(id).back();
  }
  if (names.empty()) {
    const Make brief = [](json client, std::int64_t) {
      Found out{text_of(client, "id"), {}};
      out.record.id = text_of(client, "clientId");
      return out;
    };
    list_pages("client", realm, "/clients", brief, [&names](const Found& found) {
      names[found.uuid] = found.record.id;
      return true;
    });
  }
  return client_names_[realm] = std::move(names);
}

}  // namespace driftd::keycloak
