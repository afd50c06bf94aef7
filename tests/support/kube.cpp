// SPDX-License-Identifier: Apache-2.0
#include "support/kube.hpp"

#include <curl/curl.h>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/patience.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

std::size_t append(char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

struct Easy {
  CURL* handle = curl_easy_init();
  ~Easy() { curl_easy_cleanup(handle); }
};

/// Returns the thread's own handle of libcurl, which keeps its connection open.
CURL* easy() {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)once;
  thread_local Easy mine;
  curl_easy_reset(mine.handle);
  return mine.handle;
}

/// Returns the first value of a key in YAML. It understands only the simple forms of the README's documents. Empty if
/// the key is missing.
std::string member(const std::string& yaml, const std::string& key) {
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(key + ": ");
    if (at != std::string::npos && line.find_first_not_of(" {,", 0) <= at) {
      const auto from = at + key.size() + 2;
      return line.substr(from, line.find_first_of(",} ", from) - from);
    }
  }
  return {};
}

/// Returns the path at which objects of this kind are created.
std::string collection(const std::string& kind, const std::string& space) {
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/", in = "namespaces/" + space + "/";
  if (kind == "Namespace") return "/api/v1/namespaces";
  if (kind == "ServiceAccount") return "/api/v1/" + in + "serviceaccounts";
  if (kind == "Role") return rbac + in + "roles";
  if (kind == "RoleBinding") return rbac + in + "rolebindings";
  if (kind == "ClusterRole") return rbac + "clusterroles";
  if (kind == "ClusterRoleBinding") return rbac + "clusterrolebindings";
  if (kind == "CustomResourceDefinition") return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  throw std::runtime_error("apply: the path for the kind '" + kind + "' is not known; add it to collection()");
}

}  // namespace

std::string KubeServer::tools() {
  static const std::string folder = [] {
    const Output built = run({DRIFTD_SOURCE_DIR "/tests/servers/kube/build.sh"}, {}, std::chrono::minutes(30));
    if (built.code != 0) throw std::runtime_error("tests/servers/kube/build.sh: " + built.err);
    return built.out.substr(0, built.out.find('\n'));
  }();
  return folder;
}

KubeServer::KubeServer(std::vector<std::string> flags)
    : flags_(std::move(flags)),
      port_(free_port()),
      etcd_port_(free_port()),
      peer_port_(free_port()) {
  make_certificates();
  dir_.write("tokens.csv", admin_token() + ",admin,admin-uid,\"system:masters\"\n");
  dir_.write("token", admin_token());
  dir_.write("kubeconfig",
             "apiVersion: v1\nkind: Config\ncurrent-context: admin\nclusters:\n- name: test\n  cluster: {server: \"" +
                 server() + "\", certificate-authority: ca.pem}\nusers:\n- name: admin\n  user: {token: " +
                 admin_token() + "}\ncontexts:\n- name: admin\n  context: {cluster: test, user: admin}\n");
  start_etcd();
  start();
}

KubeServer::~KubeServer() = default;

void KubeServer::make_certificates() const {
  const auto openssl = [](std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    const Output done = run(words);
    if (done.code != 0) throw std::runtime_error("openssl: " + done.err);
  };
  const std::vector<std::string> key = {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"};
  const auto with = [&](std::vector<std::string> words, std::vector<std::string> more) {
    words.insert(words.end(), key.begin(), key.end());
    words.insert(words.end(), more.begin(), more.end());
    openssl(words);
  };
  with({"req", "-x509"},
       {"-days", "2", "-subj", "/CN=ca-of-the-test", "-keyout", file("ca.key"), "-out", file("ca.pem")});
  with({"req", "-x509"},
       {"-days", "2", "-subj", "/CN=another-ca", "-keyout", file("other.key"), "-out", file("other.pem")});
  dir_.write("server.ext", "subjectAltName=IP:127.0.0.1,DNS:kube.test\n");
  dir_.write("client.ext", "extendedKeyUsage=clientAuth\n");
  for (const auto& [who, subject] :
       {std::pair<std::string, std::string>{"server", "/CN=kube-apiserver"}, {"client", "/O=people/CN=certified"}}) {
    with({"req"}, {"-subj", subject, "-keyout", file(who + ".key"), "-out", file(who + ".csr")});
    openssl({"x509", "-req", "-in", file(who + ".csr"), "-CA", file("ca.pem"), "-CAkey", file("ca.key"),
             "-CAcreateserial", "-days", "2", "-extfile", file(who + ".ext"), "-out", file(who + ".pem")});
  }
  dir_.write("client-both.pem", read_file(file("client.pem")) + read_file(file("client.key")));
  openssl({"genrsa", "-out", file("sa.key"), "2048"});
}

void KubeServer::start_etcd() {
  const std::string url = "http://127.0.0.1:" + std::to_string(etcd_port_),
                    peer = "http://127.0.0.1:" + std::to_string(peer_port_);
  etcd_ = Child({tools() + "/etcd", "--name", "one", "--data-dir", file("etcd"), "--listen-client-urls", url,
                 "--advertise-client-urls", url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", "one=" + peer, "--unsafe-no-fsync", "--log-level", "error"},
                {file("etcd.log"), {}, {}});
}

void KubeServer::start() {
  std::vector<std::string> command{tools() + "/kube-apiserver",
                                   "--etcd-servers",
                                   "http://127.0.0.1:" + std::to_string(etcd_port_),
                                   "--secure-port",
                                   std::to_string(port_),
                                   "--bind-address",
                                   "127.0.0.1",
                                   "--advertise-address",
                                   "127.0.0.1",
                                   "--cert-dir",
                                   file("certs"),
                                   "--tls-cert-file",
                                   file("server.pem"),
                                   "--tls-private-key-file",
                                   file("server.key"),
                                   "--client-ca-file",
                                   file("ca.pem"),
                                   "--service-account-key-file",
                                   file("sa.key"),
                                   "--service-account-signing-key-file",
                                   file("sa.key"),
                                   "--service-account-issuer",
                                   "https://kubernetes.default.svc",
                                   "--token-auth-file",
                                   file("tokens.csv"),
                                   "--authorization-mode",
                                   "RBAC",
                                   "--service-cluster-ip-range",
                                   "10.96.0.0/16",
                                   "--disable-admission-plugins",
                                   "ServiceAccount",
                                   "--shutdown-delay-duration",
                                   "0s",
                                   "--profiling=false"};
  command.insert(command.end(), flags_.begin(), flags_.end());
  apiserver_ = Child(command, {file("apiserver.log"), {}, {}});
  const bool up = eventually([this] { return !apiserver_.running() || ready(); }, std::chrono::seconds(120));
  if (!up || !apiserver_.running()) throw std::runtime_error("kube-apiserver: " + log() + read_file(file("etcd.log")));
}

bool KubeServer::ready() const {
  return request("GET", "/readyz").status == 200 && request("GET", "/api/v1/namespaces/default").status == 200;
}

void KubeServer::stop() {
  apiserver_.signal(SIGTERM);
  apiserver_.wait(std::chrono::seconds(30));
  apiserver_.kill();
}

void KubeServer::kill() { apiserver_.kill(); }

void KubeServer::restart_with(std::vector<std::string> flags) {
  stop();
  flags_ = std::move(flags);
  start();
}

KubeServer::Answer KubeServer::request(const std::string& method, const std::string& path, const std::string& body,
                                       std::string type) const {
  return request_as(admin_token(), method, path, body, std::move(type));
}

KubeServer::Answer KubeServer::request_as(const std::string& token, const std::string& method, const std::string& path,
                                          const std::string& body, std::string type) const {
  if (type.empty()) type = method == "PATCH" ? "application/merge-patch+json" : "application/json";
  CURL* curl = easy();
  std::string out;
  curl_slist* headers = curl_slist_append(nullptr, ("Authorization: Bearer " + token).c_str());
  headers = curl_slist_append(headers, ("Content-Type: " + type).c_str());
  curl_easy_setopt(curl, CURLOPT_URL, (server() + path).c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file().c_str());
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 30'000L * kPatience);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &out);
  if (!body.empty()) curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body.c_str());
  Answer answer;
  if (curl_easy_perform(curl) == CURLE_OK) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    answer.body = json::parse(out, nullptr, false);
    answer.text = std::move(out);
  }
  curl_slist_free_all(headers);
  return answer;
}

json KubeServer::create(const std::string& path, const json& object) const {
  const Answer answer = request("POST", path, object.dump());
  if (answer.status != 201)
    throw std::runtime_error("POST " + path + ": " + std::to_string(answer.status) + answer.body.dump());
  return answer.body;
}

json KubeServer::patch(const std::string& path, const json& change) const {
  const Answer answer = request("PATCH", path, change.dump());
  if (answer.status != 200)
    throw std::runtime_error("PATCH " + path + ": " + std::to_string(answer.status) + answer.body.dump());
  return answer.body;
}

json KubeServer::get(const std::string& path) const {
  const Answer answer = request("GET", path);
  if (answer.status != 200)
    throw std::runtime_error("GET " + path + ": " + std::to_string(answer.status) + answer.body.dump());
  return answer.body;
}

void KubeServer::remove(const std::string& path) const {
  const Answer answer = request("DELETE", path);
  if (answer.status != 200)
    throw std::runtime_error("DELETE " + path + ": " + std::to_string(answer.status) + answer.body.dump());
}

/// The finalizers are taken away before and after the DELETE: of a CustomResourceDefinition the server itself sets one
/// then, and its controller may forget to remove it until its resync minutes later. (An attempt fails with "storage is
/// (re)initializing"; the next one finds a cache that is behind, and stops at the conflict; the event that follows is
/// ignored, because only the condition of the deletion changed.)
bool KubeServer::remove_wholly(const std::string& path) const {
  return eventually([&] {
    request("PATCH", path, R"({"metadata":{"finalizers":null}})");
    return request("DELETE", path + "?propagationPolicy=Background").status == 404;
  });
}

void KubeServer::apply(const std::string& yaml) const {
  for (std::size_t from = 0; from < yaml.size();) {
    const auto end = std::min(yaml.find("\n---\n", from), yaml.size());
    const std::string document = yaml.substr(from, end - from);
    from = end + 5;
    const std::string kind = member(document, "kind"), path = collection(kind, member(document, "namespace"));
    const Answer answer = request("POST", path, document, "application/yaml");
    if (answer.status != 201 && answer.status != 409) {
      throw std::runtime_error("POST " + path + ": " + std::to_string(answer.status) + answer.body.dump() + "\n" +
                               document);
    }
    if (kind.ends_with("RoleBinding")) await_binding(get(path + "/" + member(document, "name")));
  }
}

void KubeServer::await_binding(const json& binding) const {
  const json &role = binding.at("roleRef"), &who = binding.at("subjects").at(0);
  const std::string space = binding.at("metadata").value("namespace", "");
  const json rules = get(collection(role.at("kind"), space) + "/" + role.at("name").get<std::string>()).at("rules");
  await_right(token_of(who.at("namespace"), who.at("name")), space, rules);
}

void KubeServer::await_right(const std::string& token, const std::string& space, const json& rules) const {
  if (rules.empty()) return;
  const json& rule = rules.at(0);
  json what = {{"namespace", space},
               {"group", rule.at("apiGroups").at(0)},
               {"resource", rule.at("resources").at(0)},
               {"verb", rule.at("verbs").at(0)}};
  if (rule.contains("resourceNames")) what["name"] = rule.at("resourceNames").at(0);
  const json review = {{"spec", {{"resourceAttributes", what}}}};
  const auto allowed = [&] {
    const Answer answer =
        request_as(token, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review.dump());
    return answer.status == 201 && answer.body.at("status").at("allowed") == true;
  };
  if (!eventually(allowed)) throw std::runtime_error("the API server does not grant what was bound: " + what.dump());
}

void KubeServer::create_namespace(const std::string& name) const {
  create("/api/v1/namespaces", {{"metadata", {{"name", name}}}});
}

json KubeServer::create_secret(const std::string& space, const std::string& name, const json& values,
                               const json& labels) const {
  return create("/api/v1/namespaces/" + space + "/secrets",
                {{"metadata", {{"name", name}, {"labels", labels}}}, {"stringData", values}});
}

std::string KubeServer::token_of(const std::string& space, const std::string& name, const std::string& secret) const {
  json spec = {{"spec", {{"expirationSeconds", 3600}}}};
  if (!secret.empty()) spec["spec"]["boundObjectRef"] = {{"apiVersion", "v1"}, {"kind", "Secret"}, {"name", secret}};
  return create("/api/v1/namespaces/" + space + "/serviceaccounts/" + name + "/token", spec).at("status").at("token");
}

std::string KubeServer::account(const std::string& space, const std::string& name, const json& rules) const {
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + space + "/";
  create("/api/v1/namespaces/" + space + "/serviceaccounts", {{"metadata", {{"name", name}}}});
  create(rbac + "roles", {{"metadata", {{"name", name}}}, {"rules", rules}});
  create(rbac + "rolebindings",
         {{"metadata", {{"name", name}}},
          {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", name}}},
          {"subjects", json::array({{{"kind", "ServiceAccount"}, {"name", name}, {"namespace", space}}})}});
  const std::string token = token_of(space, name);
  await_right(token, space, rules);
  return token;
}

json KubeServer::settings(const std::vector<std::string>& namespaces) const {
  return {{"server", server()},
          {"tls", {{"ca_file", ca_file()}}},
          {"token_file", file("token")},
          {"namespaces", namespaces}};
}

int KubeServer::counted(const std::string& metric, const std::vector<std::string>& labels) const {
  std::istringstream lines(request("GET", "/metrics").text);
  int out = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto has = [&](const std::string& label) { return line.find(label) != std::string::npos; };
    const bool counts = line.starts_with(metric + "{") && std::all_of(labels.begin(), labels.end(), has);
    if (counts) out += std::stoi(line.substr(line.rfind(' ') + 1));
  }
  return out;
}

void KubeServer::install_prism(const std::string& scope) const {
  const std::string definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                    here = definitions + "/prismbackends.prism.io";
  const Answer before = request("GET", here);
  if (before.status == 200 && before.body.at("spec").at("scope") != scope && !remove_wholly(here))
    throw std::runtime_error("the CRD of PrismBackend cannot be replaced");
  const json any = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const json version = {
      {"name", "v1alpha1"}, {"served", true}, {"storage", true}, {"schema", {{"openAPIV3Schema", any}}}};
  const json definition = {
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", {{"name", "prismbackends.prism.io"}}},
      {"spec",
       {{"group", "prism.io"},
        {"scope", scope},
        {"names", {{"kind", "PrismBackend"}, {"plural", "prismbackends"}, {"singular", "prismbackend"}}},
        {"versions", json::array({version})}}}};
  const int made = request("POST", definitions, definition.dump()).status;
  // Objects and the list of types are served by different threads of the API server, so both are looked at.
  const auto served = [this] {
    const std::string group = "/apis/prism.io", version = group + "/v1alpha1";
    return request("GET", version).text.find("\"prismbackends\"") != std::string::npos &&
           request("GET", group).status == 200 && request("GET", version + "/prismbackends").status == 200;
  };
  if ((made != 201 && made != 409) || !eventually(served))
    throw std::runtime_error("the CRD of PrismBackend is not served");
}

Output KubeServer::helm(std::vector<std::string> words) const {
  words.insert(words.begin(), tools() + "/helm");
  return run(words, {{"KUBECONFIG", kubeconfig()}, {"HOME", dir_.path().string()}, {"HELM_NO_PLUGINS", "1"}},
             std::chrono::minutes(2));
}

void KubeServer::compact() const {
  CURL* curl = easy();
  const std::string url = "http://127.0.0.1:" + std::to_string(etcd_port_) + "/v3/kv/";
  const auto post = [&](const std::string& what, const json& body) {
    std::string out;
    const std::string text = body.dump();
    curl_easy_setopt(curl, CURLOPT_URL, (url + what).c_str());
    curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, text.c_str());
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &out);
    if (curl_easy_perform(curl) != CURLE_OK) throw std::runtime_error("etcd " + what);
    return json::parse(out);
  };
  const json now = post("range", {{"key", "AA=="}});
  const json done = post("compaction", {{"revision", now.at("header").at("revision")}, {"physical", true}});
  if (!done.contains("header")) throw std::runtime_error("etcd compaction: " + done.dump());
}

}  // namespace driftd::test
