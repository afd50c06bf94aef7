// SPDX-License-Identifier: Apache-2.0
#include "support/kafka.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

const std::map<std::string, std::string> kMains{
    {"kafka-topics", "org.apache.kafka.tools.TopicCommand"},
    {"kafka-configs", "kafka.admin.ConfigCommand"},
    {"kafka-acls", "org.apache.kafka.tools.AclCommand"},
    {"kafka-consumer-groups", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"},
    {"kafka-storage", "kafka.tools.StorageTool"}};

std::string main_of(const std::string& tool, const std::string& version) {
  return tool == "kafka-acls" && version.starts_with("3.") ? "kafka.admin.AclCommand" : kMains.at(tool);
}

/// Returns the folder of Kafka's jars. The setup test has fetched it.
const std::string& home(const std::string& version) {
  static std::map<std::string, std::string> known;
  auto& found = known[version];
  if (!found.empty()) return found;
  const Output out =
      run({std::string(DRIFTD_SOURCE_DIR) + "/tests/servers/kafka/fetch.sh", version}, {}, std::chrono::minutes(10));
  if (out.code != 0) throw std::runtime_error("fetch.sh " + version + ":\n" + out.err);
  found = out.out.substr(0, out.out.find('\n'));
  return found;
}

std::vector<std::string> java(const std::string& version, const std::string& heap) {
  const std::string lib = home(version) + "/lib";
  return {"java",         "-Xmx" + heap, "-XX:+UseSerialGC",    "-XX:TieredStopAtLevel=1",
          "-Xshare:auto", "-cp",         lib + ":" + lib + "/*"};
}

/// The JVM that runs Kafka's tools. There is one for each version in this process.
class Tools {
 public:
  explicit Tools(const std::string& version) {
    auto command = java(version, "192m");
    command.insert(command.end(), {"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "Tools", dir_.file("port")});
    child_ = Child(command, {dir_.file("tools.log"), {}, {}});
    if (!eventually([&] { return fs::exists(dir_.file("port")) || !child_.running(); }, seconds(60)) ||
        !child_.running()) {
      throw std::runtime_error("the JVM of Kafka's tools did not start:\n" + read_file(dir_.file("tools.log")));
    }
    port_ = std::stoi(read_file(dir_.file("port")));
  }
  Output run(const std::string& main, const std::vector<std::string>& words) const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    std::string text = main;
    for (const auto& word : words) text += "\n" + word;
    std::string answer;
    const bool sent = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
                      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                      ::shutdown(fd, SHUT_WR) == 0;
    char buffer[65536];
    for (ssize_t got = 0; sent && (got = ::read(fd, buffer, sizeof buffer)) > 0;)
      answer.append(buffer, static_cast<std::size_t>(got));
    ::close(fd);
    const auto line = answer.find('\n');
    if (line == std::string::npos)
      throw std::runtime_error(main + ": no answer:\n" + read_file(dir_.file("tools.log")));
    return {std::stoi(answer.substr(0, line)), answer.substr(line + 1), {}};
  }

 private:
  TempDir dir_;
  Child child_;
  int port_ = 0;
};

void must(const Output& out, const std::string& what) {
  if (out.code != 0)
    throw std::runtime_error(what + " ended with " + std::to_string(out.code) + ":\n" + out.out + out.err);
}

const char* kJaas = "org.apache.kafka.common.security.";

}  // namespace

Output kafka_tool(const std::string& version, const std::string& main, const std::vector<std::string>& words) {
  static std::map<std::string, std::unique_ptr<Tools>> running;
  auto& tools = running[version];
  if (!tools) tools = std::make_unique<Tools>(version);
  return tools->run(main, words);
}

KafkaServer::KafkaServer(const Options& options) : options_(options) {
  cluster_ = options.join == nullptr ? kafka_tool(options.version, kMains.at("kafka-storage"), {"random-uuid"}).out
                                     : options.join->cluster_;
  cluster_.resize(22);  // cuts the end of the line
  if (options.secure) make_certificates();
  for (int attempt = 0;; ++attempt) {
    choose_ports();
    write_conf();
    if (attempt == 0) {
      must(kafka_tool(options.version, kMains.at("kafka-storage"),
                      {"format", "-t", cluster_, "-c", dir_.file("server.properties")}),
           "StorageTool");
    }
    try {
      start();
      return;
    } catch (const std::runtime_error&) {  // tries again if another process took a port meanwhile
      if (attempt == 2 || log().find("Address already in use") == std::string::npos) throw;
      fs::remove(dir_.file("server.log"));
    }
  }
}

KafkaServer::~KafkaServer() { child_.kill(); }

void KafkaServer::choose_ports() {
  std::vector<std::string> names{"PLAINTEXT"};
  if (options_.join == nullptr) names.push_back("CONTROLLER");
  if (options_.secure) names.insert(names.end(), {"SASL", "TLS", "OTHERNAME", "MTLS"});
  for (const auto& name : names) ports_[name] = free_port();
}

void KafkaServer::write_conf() const {
  std::ofstream out(dir_.file("server.properties"));
  const auto listener = [&](const std::string& name) {
    return name + "://127.0.0.1:" + std::to_string(ports_.at(name));
  };
  const KafkaServer& first = options_.join == nullptr ? *this : *options_.join;
  std::string listeners, advertised;
  for (const auto& [name, port] : ports_) {
    listeners += (listeners.empty() ? "" : ",") + listener(name);
    if (name != "CONTROLLER") advertised += (advertised.empty() ? "" : ",") + listener(name);
  }
  out << "process.roles=" << (options_.join == nullptr ? "broker,controller" : "broker")
      << "\nnode.id=" << options_.node << "\ncontroller.quorum.voters=" << first.options_.node
      << "@127.0.0.1:" << first.ports_.at("CONTROLLER") << "\nlisteners=" << listeners
      << "\nadvertised.listeners=" << advertised
      << "\ncontroller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\nlistener.security.protocol.map="
      << "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL,OTHERNAME:SASL_SSL,MTLS:SSL\nlog."
         "dirs="
      << dir_.file("data") << "\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=4\n"
      << "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\ntransaction.state.log.num."
         "partitions=4\n"
      << "group.initial.rebalance.delay.ms=0\nbroker.rack=r" << options_.node
      << "\nlog.flush.offset.checkpoint.interval.ms=600000\n";
  if (options_.secure) {
    out << "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS;"
           "User:admin\n";
    std::string plain = std::string(kJaas) + "plain.PlainLoginModule required";
    for (const auto& [name, password] : options_.plain_users) plain += " user_" + name + "=\"" + password + "\"";
    for (const char* name : {"sasl", "tls", "othername"}) {
      const std::string prefix = "listener.name." + std::string(name) + ".";
      out << prefix << "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN,OAUTHBEARER\n"
          << prefix << "scram-sha-256.sasl.jaas.config=" << kJaas << "scram.ScramLoginModule required;\n"
          << prefix << "scram-sha-512.sasl.jaas.config=" << kJaas << "scram.ScramLoginModule required;\n"
          << prefix << "plain.sasl.jaas.config=" << plain << ";\n"
          << prefix << "oauthbearer.sasl.jaas.config=" << kJaas
          << "oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"admin\";\n";
    }
    out << "listener.name.mtls.ssl.client.auth=required\n";
    for (const std::string name : {"tls", "othername", "mtls"}) {
      const std::string prefix = "listener.name." + name + ".ssl.";
      out << prefix << "keystore.type=PEM\n"
          << prefix << "keystore.location=" << dir_.file(name == "othername" ? "tls/othername.pem" : "tls/tls.pem")
          << "\n"
          << prefix << "truststore.type=PEM\n"
          << prefix << "truststore.location=" << ca() << "\n";
    }
  }
  for (const auto& line : options_.conf) out << line << "\n";
}

void KafkaServer::make_certificates() const {
  fs::create_directories(dir_.file("tls"));
  const std::string at = dir_.file("tls") + "/";
  must(run({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", at + "ca.key", "-out", at + "ca.pem",
            "-days", "2", "-subj", "/CN=test CA"}),
       "openssl");
  issue("tls", "tls", "IP:127.0.0.1");
  issue("othername", "othername", "DNS:broker.example");
}

void KafkaServer::issue(const std::string& name, const std::string& common_name, const std::string& names) const {
  const std::string at = dir_.file("tls") + "/";
  dir_.write("tls/" + name + ".ext", names.empty() ? "" : "subjectAltName=" + names + "\n");
  must(run({"openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", at + name + ".key", "-out",
            at + name + ".csr", "-subj", "/CN=" + common_name}),
       "openssl");
  must(run({"openssl", "x509", "-req", "-in", at + name + ".csr", "-CA", at + "ca.pem", "-CAkey", at + "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", at + name + ".ext", "-out", at + name + ".crt"}),
       "openssl");
  dir_.write("tls/" + name + ".pem", read_file(at + name + ".key") + read_file(at + name + ".crt"));
}

std::string KafkaServer::client_certificate(const std::string& common_name) const {
  issue("client-" + common_name, common_name, {});
  return dir_.file("tls/client-" + common_name + ".pem");
}

void KafkaServer::start() {
  std::error_code ignored;
  fs::rename(dir_.file("server.log"), dir_.file("server.log.before"), ignored);
  auto command = java(options_.version, "384m");
  command.insert(command.end() - 2, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
  command.insert(command.end() - 2, "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info");
  command.insert(command.end() - 2, "-Dorg.slf4j.simpleLogger.log.kafka.server.BrokerServer=info");
  // the Selector logs refused logins
  command.insert(command.end() - 2, "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.network.Selector=info");
  if (options_.log_requests)
    command.insert(command.end() - 2, "-Dorg.slf4j.simpleLogger.log.kafka.request.logger=debug");
  command.insert(command.end(), {"kafka.Kafka", dir_.file("server.properties")});
  child_ = Child(command, {dir_.file("server.log"), {}, {}});
  const bool up = eventually(
      [&] { return !child_.running() || log().find("Kafka Server started") != std::string::npos; }, seconds(90));
  if (!up || !child_.running()) throw std::runtime_error("Kafka did not start:\n" + log());
}

void KafkaServer::stop() {
  child_.signal(SIGTERM);
  if (child_.wait(seconds(30)) < 0) child_.kill();
}

void KafkaServer::kill() { child_.kill(); }

std::map<std::string, int> KafkaServer::requests(const std::string& client) const {
  std::map<std::string, int> out;
  const std::string text = log();
  const std::string whose = "\"clientId\":\"" + client + "\"", name = "\"requestApiKeyName\":\"";
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, to - from);
    from = to + 1;
    const auto at = line.find(name);
    if (line.find(whose) == std::string::npos || at == std::string::npos) continue;
    const auto begin = at + name.size();
    ++out[line.substr(begin, line.find('"', begin) - begin)];
  }
  return out;
}

std::string KafkaServer::tool(const std::string& name, std::vector<std::string> words) const {
  words.insert(words.begin(), {"--bootstrap-server", address()});
  const Output out = kafka_tool(options_.version, main_of(name, options_.version), words);
  std::string shown = name;
  for (const auto& word : words) shown += " " + word;
  must(out, shown);
  return out.out;
}

std::string KafkaServer::topics(std::vector<std::string> words) const { return tool("kafka-topics", std::move(words)); }
std::string KafkaServer::configs(std::vector<std::string> words) const {
  return tool("kafka-configs", std::move(words));
}
std::string KafkaServer::acls(std::vector<std::string> words) const { return tool("kafka-acls", std::move(words)); }
std::string KafkaServer::groups(std::vector<std::string> words) const {
  return tool("kafka-consumer-groups", std::move(words));
}

void KafkaServer::scram_user(const std::string& name, const std::string& password, const std::string& mechanism) const {
  configs({"--alter", "--entity-type", "users", "--entity-name", name, "--add-config",
           mechanism + "=[password=" + password + "]"});
}

Output KafkaServer::shell(const std::string& lines) const {
  for (const auto& [name, ignored] : kMains) {
    const std::string main = main_of(name, options_.version);
    std::string script = "#!/bin/sh\nexec";
    for (const auto& word : java(options_.version, "192m")) script += " '" + word + "'";
    fs::permissions(dir_.write("bin/" + name + ".sh", script + " " + main + " \"$@\"\n"), fs::perms::owner_all);
  }
  const char* path = ::getenv("PATH");
  return run({"sh", "-euc", lines}, {{"PATH", dir_.file("bin") + ":" + (path == nullptr ? "" : path)}},
             std::chrono::minutes(2));
}

void KafkaServer::consume(const std::string& topic, const std::string& group,
                          const std::function<void()>& meanwhile) const {
  auto command = java(options_.version, "192m");
  command.insert(command.end(), {"org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", address(),
                                 "--topic", topic, "--group", group});
  Child consumer(command, {dir_.file("consumer.log"), {}, {}});
  const auto joined = [&] {
    return groups({"--describe", "--group", group, "--state"}).find("Stable") != std::string::npos;
  };
  const bool is_member = eventually([&] { return !consumer.running() || joined(); }, seconds(60)) && consumer.running();
  if (!is_member) throw std::runtime_error("the consumer did not join:\n" + read_file(dir_.file("consumer.log")));
  if (meanwhile) meanwhile();
  consumer.signal(SIGTERM);  // so that it leaves the group
  if (consumer.wait(seconds(30)) < 0) throw std::runtime_error("the consumer did not end");
}

void KafkaServer::await_topic(const std::string& name, bool listed) const {
  const auto is_listed = [&] { return ("\n" + topics({"--list"})).find("\n" + name + "\n") != std::string::npos; };
  if (!eventually([&] { return is_listed() == listed; }))
    throw std::runtime_error("topic " + name + (listed ? " is still not listed" : " is still listed"));
}

}  // namespace driftd::test
