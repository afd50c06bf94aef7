// SPDX-License-Identifier: Apache-2.0
#include "support/floor.hpp"

#include <fcntl.h>
#include <nats/nats.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace driftd::test {
namespace {

constexpr const char* kStream = "FLOOR";
constexpr const char* kSubject = "floor";

void must(natsStatus status, const char* doing) {
  if (status != NATS_OK) throw std::runtime_error(std::string(doing) + ": " + natsStatus_GetText(status));
}
void must(bool done, const char* doing) {
  if (!done) throw std::runtime_error(std::string(doing) + ": " + std::strerror(errno));
}

}  // namespace

struct Floor::State {
  int file = -1;
  natsConnection* connection = nullptr;
  jsCtx* stream = nullptr;
  int messages = 1;
  std::atomic<bool> refused{false};
  static void on_refused(jsCtx*, jsPubAckErr*, void* state) { static_cast<State*>(state)->refused = true; }
  ~State() {
    jsCtx_Destroy(stream);
    natsConnection_Destroy(connection);
    if (file >= 0) ::close(file);
  }
};

Floor::Floor(const std::string& folder, const std::string& nats_url, int messages) : state_(std::make_unique<State>()) {
  state_->messages = messages;
  state_->file = ::open((folder + "/floor").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  must(state_->file >= 0, "open");
  must(natsConnection_ConnectTo(&state_->connection, nats_url.c_str()), "connect");
  jsOptions options;
  must(jsOptions_Init(&options), "JetStream options");
  options.PublishAsync.ErrHandler = &State::on_refused;
  options.PublishAsync.ErrHandlerClosure = state_.get();
  must(natsConnection_JetStream(&state_->stream, state_->connection, &options), "JetStream");
  jsStreamConfig config;
  must(jsStreamConfig_Init(&config), "stream config");
  const char* subjects[] = {kSubject};
  config.Name = kStream;
  config.Subjects = subjects;
  config.SubjectsLen = 1;
  must(js_AddStream(nullptr, state_->stream, &config, nullptr, nullptr), "add stream");
}

Floor::~Floor() = default;

void Floor::deliver(const std::string& bytes) {
  must(::write(state_->file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "write");
  must(::fdatasync(state_->file) == 0, "fdatasync");
  for (int i = 0; i < state_->messages; ++i) {
    must(js_PublishAsync(state_->stream, kSubject, bytes.data(), static_cast<int>(bytes.size()), nullptr), "publish");
  }
  must(js_PublishAsyncComplete(state_->stream, nullptr), "acknowledgement");
  if (state_->refused) throw std::runtime_error("the stream refused a message");
}

}  // namespace driftd::test
