// SPDX-License-Identifier: Apache-2.0
// The example sink in C, in a real worker, with a program at the other end of its Unix socket.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "integration/syslog/syslog_sink.hpp"

namespace driftd::test {
namespace {

/// Listens on a Unix socket and answers each line with `ok`, or with `no` if it contains `refused`.
class LineProgram {
 public:
  LineProgram(const std::string& path, std::string refused) : refused_(std::move(refused)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool ready =
        ::bind(listening_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 && ::listen(listening_, 8) == 0;
    if (!ready) throw std::runtime_error("cannot listen at " + path);
    thread_ = std::thread([this] { serve(); });
  }
  ~LineProgram() {
    ::shutdown(listening_, SHUT_RDWR);
    thread_.join();
    ::close(listening_);
  }
  std::set<std::string> ids() const {
    const std::lock_guard lock(mutex_);
    return ids_;
  }

 private:
  void serve() {
    for (int fd = 0; (fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      FILE* lines = ::fdopen(fd, "r+");
      std::string line(1 << 20, '\0');
      while (std::fgets(line.data(), static_cast<int>(line.size()), lines) != nullptr) {
        const auto event = nlohmann::json::parse(line.c_str());
        const bool refuse = event.at("subject").get<std::string>().ends_with(refused_);
        {
          const std::lock_guard lock(mutex_);
          if (!refuse) ids_.insert(event.at("id"));
        }
        const std::string answer = refuse ? "no\n" : "ok\n";
        if (::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
      }
      std::fclose(lines);
    }
  }

  const std::string refused_;
  int listening_ = -1;
  mutable std::mutex mutex_;
  std::set<std::string> ids_;
  std::thread thread_;
};

TEST(LinesSink, WritesEachEventToTheSocketThatItsSettingsOpenInTheJail) {
  constexpr int kEvents = 200;
  const TempDir dir;
  const std::string path = dir.file("lines.sock");
  const LineProgram program(path, "/r7");
  AgentRun agent(dir, plugin_sink(DRIFTD_BINARY_DIR "/sinks-examples/driftd-sink-lines.so", {{"socket", path}}));
  agent.commit(kEvents);
  ASSERT_TRUE(eventually([&] { return agent.totals().acked + agent.totals().dead == kEvents; }))
      << agent.totals().acked << " acknowledged; " << agent.view().state << "; " << agent.view().last_error;
  EXPECT_EQ(agent.totals().dead, 1) << "the one event that the program refuses";
  EXPECT_EQ(program.ids().size(), static_cast<std::size_t>(kEvents - 1));
}

}  // namespace
}  // namespace driftd::test
