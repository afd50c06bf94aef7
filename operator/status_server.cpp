// SPDX-License-Identifier: Apache-2.0
#include "operator/status_server.hpp"

#include <httplib.h>
#include <atomic>
#include <charconv>
#include <stdexcept>
#include <thread>

#include "base/log.hpp"

namespace driftd::op {

class StatusServer::Server {
 public:
  Server(const std::string& listen, Answers answers) : answers_(std::move(answers)) {
    http_.Get("/healthz",
              [](const httplib::Request&, httplib::Response& out) { out.set_content("ok\n", "text/plain"); });
    http_.Get("/readyz", [this](const httplib::Request&, httplib::Response& out) {
      const std::string why = answers_.unready();
      out.status = why.empty() ? 200 : 503;
      out.set_content(why.empty() ? "ok\n" : why + "\n", "text/plain");
    });
    http_.Get("/metrics", [this](const httplib::Request&, httplib::Response& out) {
      out.set_content(answers_.metrics(), "text/plain; version=0.0.4; charset=utf-8");
    });
    http_.set_payload_max_length(4'096);
    http_.set_keep_alive_max_count(100);
    http_.set_read_timeout(5);
    http_.new_task_queue = [] { return new httplib::ThreadPool(2); };
    const std::size_t colon = listen.rfind(':');
    std::string host = colon == listen.npos ? std::string() : listen.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    int port = -1;
    const char* end = listen.data() + listen.size();
    const char* begin = colon == listen.npos ? end : listen.data() + colon + 1;
    const auto [rest, error] = std::from_chars(begin, end, port);
    if (host.empty() || rest != end || error != std::errc() || port < 0 || port > 65'535) {
      throw std::runtime_error("--listen is '" + listen + "'; expected HOST:PORT");
    }
    if (port == 0) {
      port = http_.bind_to_any_port(host);
      if (port < 0) throw std::runtime_error("--listen " + listen + ": the address cannot be used");
    } else if (!http_.bind_to_port(host, port)) {
      throw std::runtime_error("--listen " + listen + ": the address cannot be used, or is in use");
    }
    log::room("operator").info("serves /metrics, /healthz and /readyz on {}:{}", host, port);
    thread_ = std::thread([this] {
      http_.listen_after_bind();
      ended_ = true;
    });
    while (!http_.is_running() && !ended_) std::this_thread::yield();  // stop() before that would be lost
  }
  ~Server() {
    http_.stop();
    thread_.join();
  }

 private:
  const Answers answers_;
  httplib::Server http_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

StatusServer::StatusServer(const std::string& listen, Answers answers)
    : server_(std::make_unique<Server>(listen, std::move(answers))) {}

StatusServer::~StatusServer() = default;

}  // namespace driftd::op
