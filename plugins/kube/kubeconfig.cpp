// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/yaml.h>

#include "common/secret_text.hpp"
#include "kube/base64.hpp"
#include "kube/connection.hpp"

namespace driftd::kube {
namespace {

/// What is wrong with a kubeconfig; apply_kubeconfig() says where it was.
struct Fault {
  std::string text;
};
[[noreturn]] void bad(const std::string& text) { throw Fault{text}; }

std::string text(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value && value.IsScalar() ? value.as<std::string>() : std::string();
}

/// Returns the element called `name` of a list of {name, <what>: {…}}.
YAML::Node named(const YAML::Node& root, const char* list, const char* what, const std::string& name) {
  const YAML::Node elements = root[list];
  if (elements && elements.IsSequence()) {
    for (const auto& element : elements) {
      if (element.IsMap() && text(element, "name") == name && element[what] && element[what].IsMap())
        return element[what];
    }
  }
  bad("no " + std::string(what) + " is called '" + name + "'");
}

/// Returns the path that `key` names, relative to the folder of the kubeconfig; empty if it names none.
std::string path_in(const YAML::Node& node, const char* key, const KubeconfigUse& use) {
  const std::string path = text(node, key);
  if (path.empty()) return path;
  if (!use.files) {
    bad(std::string(key) + " names a file, and this kubeconfig may not: put the content into it (" +
        (std::string_view(key) == "tokenFile" ? "token" : std::string(key) + "-data") + ")");
  }
  return path.front() == '/' ? path : use.folder + path;
}

std::string decoded(const YAML::Node& node, const char* key) {
  const std::string raw = text(node, key);
  const auto out = decode_base64(raw);
  if (!out) bad(std::string(key) + ": expected base64");
  return *out;
}

void take_cluster(const YAML::Node& cluster, const KubeconfigUse& use, Connection& out) {
  out.server = text(cluster, "server");
  out.tls.ca_pem = decoded(cluster, "certificate-authority-data");
  if (out.tls.ca_pem.empty()) out.tls.ca_file = path_in(cluster, "certificate-authority", use);
  out.tls.server_name = text(cluster, "tls-server-name");
  if (!text(cluster, "proxy-url").empty()) bad("the cluster has a proxy-url, which is not supported");
  if (text(cluster, "insecure-skip-tls-verify") != "true") return;
  if (!use.insecure) {
    bad("insecure-skip-tls-verify would believe whoever answers; name the CA there (certificate-authority), or set "
        "`insecure: true` in the settings if that is meant");
  }
  out.tls.verify = false;
}

/// Returns the command as it would be typed, without arguments that may be secret.
std::string command_of(const YAML::Node& exec) {
  std::string out = text(exec, "command");
  const YAML::Node args = exec["args"];
  if (!args || !args.IsSequence()) return out;
  bool hide = false;  // the option before this argument names a secret
  for (const auto& each : args) {
    const std::string word = each.IsScalar() ? each.as<std::string>() : std::string();
    const auto eq = word.find('=');
    const std::string name = word.substr(0, eq);
    const bool option = word.starts_with("-");
    const bool secret = common::looks_secret(option ? name : std::string(), word);
    if (!option && (hide || secret)) {
      out += " [REDACTED]";
    } else if (secret && eq != std::string::npos) {
      out += " " + name + "=[REDACTED]";
    } else {
      out += " " + word;
    }
    hide = option && secret && eq == std::string::npos;
  }
  return out;
}

[[noreturn]] void refuse_program(const YAML::Node& exec) {
  std::string names;
  if (const YAML::Node env = exec["env"]; env && env.IsSequence()) {
    for (const auto& each : env)
      names += (names.empty() ? "" : ", ") + (each.IsMap() ? text(each, "name") : std::string());
  }
  bad("the user's credential comes from a program, and providers run none; let the agent run it, beside this "
      "kubeconfig: "
      "token: \"${exec:" +
      command_of(exec) + "}\" (the program by its whole path, allowed in agent.programs" +
      (names.empty() ? std::string() : " with the environment " + names) +
      "), or use a service account's token: token_file: /path");
}

void take_user(const YAML::Node& user, const KubeconfigUse& use, Connection& out) {
  if (user["exec"]) refuse_program(user["exec"]);
  for (const char* key : {"auth-provider", "username", "as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user[key]) bad(std::string("the user has ") + key + ", which is not supported; use a token or a certificate");
  }
  out.tls.certificate_pem = decoded(user, "client-certificate-data");
  out.tls.key_pem = decoded(user, "client-key-data");
  if (out.tls.certificate_pem.empty()) out.tls.certificate_file = path_in(user, "client-certificate", use);
  if (out.tls.key_pem.empty()) out.tls.key_file = path_in(user, "client-key", use);
  out.identification.token_file = path_in(user, "tokenFile", use);
  if (out.identification.token_file.empty()) out.identification.token = text(user, "token");
}

void apply(Connection& connection, const std::string& yaml, const KubeconfigUse& use) {
  try {
    // The comment at the end is needed: without it yaml-cpp reads an unclosed quote as a text up to the end.
    const YAML::Node root = YAML::Load(yaml + "\n#");
    if (!root.IsMap()) bad("expected a YAML mapping with clusters, contexts and users");
    const std::string context = use.context.empty() ? text(root, "current-context") : use.context;
    if (context.empty()) bad("no current-context; name one in settings.context");
    const YAML::Node chosen = named(root, "contexts", "context", context);
    take_cluster(named(root, "clusters", "cluster", text(chosen, "cluster")), use, connection);
    if (use.user) take_user(named(root, "users", "user", text(chosen, "user")), use, connection);
  } catch (const YAML::Exception& e) {
    if (e.msg == YAML::ErrorMsg::EOF_IN_SCALAR) bad("a quote is not closed before the end of the file");
    bad("line " + std::to_string(e.mark.line + 1) + ": no valid YAML");  // the message could quote a token
  }
}

}  // namespace

void apply_kubeconfig(Connection& connection, const std::string& yaml, const KubeconfigUse& use) {
  try {
    apply(connection, yaml, use);
  } catch (const Fault& fault) {
    throw sdk::Failure(DRIFTD_INVALID, use.where + ": " + fault.text);
  }
}

}  // namespace driftd::kube
