// SPDX-License-Identifier: Apache-2.0
#include "receivers.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace driftd::test {
namespace {

using Steady = std::chrono::steady_clock;

std::size_t hash_of(const std::string& text) { return std::hash<std::string>()(text); }

/// Returns the same text for the same event, whatever the order of its maps on the wire.
std::string canonical(const v1::BackendChangeEvent& event) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    event.SerializeToCodedStream(&coded);
  }
  return out;
}

int value_of(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos ? std::stoi(text) : 0;
}

Delivery of_event(const v1::BackendChangeEvent& event) {
  Delivery out;
  out.id = event.event_id();
  out.subject = event.backend_name() + "/" + event.resource_kind() + "/" + event.resource_id();
  out.incarnation = event.incarnation();
  out.sequence = event.sequence();
  if (event.operation() == "changed" && event.changes_size() == 1) out.value = value_of(event.changes(0).new_value());
  out.content = hash_of(canonical(event));
  out.bytes = out.content;
  return out;
}

Delivery of_json(const std::string& text) {
  const auto event = nlohmann::json::parse(text);
  const auto& data = event.at("data");
  Delivery out;
  out.id = event.at("id");
  out.subject = event.value("subject", "");
  if (!event.at("type").get<std::string>().starts_with("io.driftd.agent.")) {
    out.incarnation = std::stoull(event.value("driftincarnation", "0"));
    out.sequence = std::stoull(event.value("driftseq", "0"));
  }
  const auto changes = data.value("changes", nlohmann::json::array());
  if (data.value("operation", "") == "changed" && changes.size() == 1)
    out.value = value_of(changes[0].value("new_value", ""));
  out.content = out.bytes = hash_of(text);
  return out;
}

/// Returns an event whose body is protobuf. `attributes` are its CloudEvents headers: they are part of its content.
Delivery of_protobuf(const std::string& body, const std::string& type, const std::string& id,
                     const std::string& attributes) {
  Delivery out;
  v1::BackendChangeEvent event;
  if (!type.starts_with("io.driftd.agent.")) {
    if (!event.ParseFromString(body)) throw std::runtime_error("an event whose body is not protobuf: " + id);
    out = of_event(event);
    if (out.id != id) throw std::runtime_error("ce-id " + id + " of event " + out.id);
  }
  out.id = id;
  out.bytes = hash_of(attributes + body);
  return out;
}

/// The wall clock's milliseconds as a time of the steady clock.
Runs::Time steady_of(std::int64_t wall_ms) {
  static const auto offset = Steady::now().time_since_epoch() - std::chrono::system_clock::now().time_since_epoch();
  return Runs::Time(std::chrono::milliseconds(wall_ms) + offset);
}

}  // namespace

Deliveries from_nats(const std::vector<NatsReceived>& messages, const Runs& runs) {
  Deliveries out;
  for (const auto& message : messages) {
    std::string type, attributes;
    for (const auto& [name, value] : message.headers) {
      if (name == "ce-type") type = value;
      if (name.starts_with("ce-")) attributes += name + "=" + value + "\n";
    }
    out.push_back(of_protobuf(message.body, type, message.ce_id, attributes));
    out.back().run = runs.at(message.at);
  }
  return out;
}

Deliveries from_webhook(const std::vector<HttpReceived>& requests, const Runs& runs) {
  Deliveries out;
  for (const auto& request : requests) {
    if (request.status != 200) continue;
    out.push_back(of_json(request.body));
    out.back().run = runs.at(request.at);
  }
  return out;
}

Deliveries from_kafka(const std::vector<KafkaReceived>& records, const Runs& runs) {
  Deliveries out;
  for (const auto& record : records) {
    std::string attributes = record.key + "\n";
    for (const auto& [name, value] : record.headers) attributes += name + "=" + value + "\n";
    out.push_back(of_protobuf(record.value, record.header("ce_type"), record.header("ce_id"), attributes));
    out.back().run = runs.at(steady_of(record.timestamp_ms));
  }
  return out;
}

Deliveries from_file(const std::string& path, const std::vector<std::size_t>& sizes) {
  Deliveries out;
  std::ifstream in(path, std::ios::binary);
  std::size_t offset = 0, run = 0;
  for (std::string line; std::getline(in, line);) {
    while (run < sizes.size() && offset >= sizes[run]) ++run;
    offset += line.size() + 1;
    if (in.eof()) throw std::runtime_error("the last line is not whole");
    out.push_back(of_json(line));
    out.back().run = run;
  }
  return out;
}

Deliveries from_grpc(const std::vector<Arrival>& arrivals, const Runs& runs) {
  Deliveries out;
  for (const auto& arrival : arrivals) {
    out.push_back(of_event(arrival.event));
    out.back().run = runs.at(arrival.at);
  }
  return out;
}

std::shared_ptr<grpc::Channel> channel_to(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

CallbackReceiver::CallbackReceiver(int port) : endpoint_("127.0.0.1:" + std::to_string(port)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(endpoint_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("nothing can listen on " + endpoint_);
}

grpc::Status CallbackReceiver::Notify(grpc::ServerContext*, const v1::BackendEventNotification* request,
                                      v1::BackendEventAck*) {
  if (!request->has_event()) return grpc::Status::OK;  // about the agent
  const std::lock_guard lock(mutex_);
  arrivals_.push_back({request->event(), Steady::now()});
  return grpc::Status::OK;
}

std::vector<Arrival> CallbackReceiver::arrivals() const {
  const std::lock_guard lock(mutex_);
  return arrivals_;
}

ResumingStream::ResumingStream(std::string socket) : socket_(std::move(socket)), thread_([this] { work(); }) {}

ResumingStream::~ResumingStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  thread_.join();
}

void ResumingStream::work() {
  const auto stub = v1::BackendEvents::NewStub(channel_to(socket_));
  while (true) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::SubscribeRequest request;
    request.set_subscriber_id("kills");
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || !faults_.empty()) return;
      call_ = &context;
      if (token_.empty())
        request.set_start(v1::SubscribeRequest::START_OLDEST);
      else
        request.set_resume_token(token_);
    }
    const auto stream = stub->Subscribe(&context, request);
    v1::SubscribeResponse message;
    while (stream->Read(&message)) deal_with(message);
    const grpc::Status ended = stream->Finish();
    const std::lock_guard lock(mutex_);
    call_ = nullptr;
    if (!stopping_ && ended.error_code() != grpc::StatusCode::UNAVAILABLE)
      faults_ += "a call ended with " + std::to_string(ended.error_code()) + ": " + ended.error_message();
  }
}

void ResumingStream::deal_with(const v1::SubscribeResponse& message) {
  const std::lock_guard lock(mutex_);
  if (message.has_gap()) faults_ += "a gap: " + message.gap().detail();
  if (message.has_event()) arrivals_.push_back({message.event(), Steady::now()});
  token_ = message.resume_token();
}

std::vector<Arrival> ResumingStream::arrivals() const {
  const std::lock_guard lock(mutex_);
  return arrivals_;
}

std::string ResumingStream::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

}  // namespace driftd::test
