// SPDX-License-Identifier: Apache-2.0
// Objects that tenants of a cluster write, parsed as the k8s provider does in its worker.
#include <zlib.h>
#include <nlohmann/json.hpp>

#include "core/value/parse_limits.hpp"
#include "fuzz/foreign/foreign.hpp"
#include "k8s/helm.hpp"
#include "k8s/kinds.hpp"
#include "k8s/mapping.hpp"
#include "k8s/registration.hpp"
#include "k8s/settings.hpp"
#include "kube/list_splitter.hpp"
#include "kube/outline.hpp"

namespace driftd::fuzz {
namespace {

using Json = nlohmann::json;

std::string base64(std::string_view bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t n = 0; n < 3; ++n)
      word = word << 8 | (i + n < bytes.size() ? static_cast<unsigned char>(bytes[i + n]) : 0u);
    for (std::size_t n = 0; n < 4; ++n) out += i + n > bytes.size() ? '=' : kLetters[word >> (18 - 6 * n) & 63];
  }
  return out;
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

const k8s::Settings& settings() {
  static const k8s::Settings known = [] {
    k8s::Settings out;
    out.labels = {"app*"};
    out.annotations = {"*"};
    out.objects.push_back(k8s::Custom{"example.org", "v1", "Thing", {{"first", "spec.ports[0].port"}}});
    return out;
  }();
  return known;
}

/// Whatever a tenant wrote, the body is JSON that the host reads, or is refused in words.
void judged(const sdk::Record& record) { (void)core::parse(record.body, core::kBodyLimits); }

/// `cut`: why the object is not whole, as the lister says it.
void map(const Json& object, const std::string& cut) {
  for (const auto& resource : k8s::known_resources(settings())) {
    if (resource.kind != k8s::kHelmRelease) judged(k8s::map_or_unreadable(resource, object, cut, settings()));
  }
  (void)k8s::last_writer(object);
}

}  // namespace

/// The first byte says how much of Helm's own wrapping is put around the rest.
void helm(std::string_view text) {
  if (text.empty()) return;
  const auto rest = text.substr(1);
  std::string release(rest);
  if (text[0] % 3 == 0) release = base64(base64(gzip(rest)));
  if (text[0] % 3 == 1) release = base64(base64(rest));
  k8s::HelmReleases releases;
  const Json secret = {{"metadata",
                        {{"name", "sh.helm.release.v1.shop.v1"},
                         {"namespace", "prod"},
                         {"labels", {{"owner", "helm"}, {"name", "shop"}, {"version", "1"}, {"status", "deployed"}}}}},
                       {"data", {{"release", release}}}};
  std::vector<sdk::Diagnostic> diagnostics;
  try {
    releases.add(secret);
    for (const auto& record : releases.records(diagnostics, 1'700'000'000'000'000'000)) judged(record);
  } catch (const std::exception&) {
  }
}

void listing(std::string_view text) {
  const auto take = [](const std::string& one) {
    const common::BoundedJson object = kube::parse_object(one);
    if (object.value.is_object()) map(object.value, object.cut ? object.why : std::string());
  };
  try {
    kube::ItemSplitter splitter(take, 1u << 20);
    for (auto rest = text; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(rest.size(), 61)))
      splitter.feed(rest.substr(0, 61));
    (void)splitter.rest();
  } catch (const std::exception&) {
  }
}

void prism(std::string_view text) {
  const Json given = Json::parse(text, nullptr, false);
  if (!given.is_object()) return;
  k8s::Objects objects;
  for (const auto& [name, type] :
       {std::pair("prism", "PrismBackend"), {"service", "Service"}, {"secret", "Secret"}, {"map", "ConfigMap"}}) {
    const auto found = given.find(name);
    if (found != given.end() && found->is_object()) objects[{type, "prod", "shop"}] = *found;
  }
  std::vector<sdk::Diagnostic> diagnostics;
  try {
    for (const auto& [name, definition] : k8s::definitions(objects, settings(), diagnostics)) {
      (void)k8s::missing(definition, objects);
      (void)k8s::backend_of(definition, objects, settings());
      judged(k8s::registration_of(definition, objects, settings(), std::nullopt));
    }
  } catch (const std::exception&) {
  }
}

}  // namespace driftd::fuzz
