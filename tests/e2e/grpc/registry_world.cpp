// SPDX-License-Identifier: Apache-2.0
#include "registry_world.hpp"

namespace driftd::test {
namespace {

std::unique_ptr<grpc::ClientContext> context(bool wait) {
  auto out = std::make_unique<grpc::ClientContext>();
  out->set_wait_for_ready(wait);
  out->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  return out;
}

}  // namespace

v1::BackendDefinition GrpcRegistry::redis(const std::string& name, const std::string& secret) const {
  v1::BackendDefinition out;
  out.set_name(name);
  out.set_provider("redis");
  out.set_settings_json(nlohmann::json{
      {"address", server_.address()},
      {"username", "driftd"},
      {"password", "${file:" + dir_.file("secrets/" + secret) +
                       "}"}}.dump());
  (*out.mutable_labels())["team"] = "orders";
  out.set_options_json(R"({"interval":"100ms"})");
  return out;
}

v1::BackendDefinition GrpcRegistry::terraform(const std::string& name, const std::string& path,
                                              const std::string& team) {
  v1::BackendDefinition out;
  out.set_name(name);
  out.set_provider("terraform");
  out.set_settings_json(nlohmann::json{{"path", path}}.dump());
  if (!team.empty()) (*out.mutable_labels())["team"] = team;
  return out;
}

Changed GrpcRegistry::add(const v1::BackendDefinition& definition, bool wait) const {
  Changed out;
  v1::RegisterBackendRequest request;
  *request.mutable_definition() = definition;
  out.status = v1::BackendRegistry::NewStub(channel())->RegisterBackend(context(wait).get(), request, &out.backend);
  return out;
}

Changed GrpcRegistry::update(const v1::BackendDefinition& definition, const std::string& etag, bool wait) const {
  Changed out;
  v1::UpdateBackendRequest request;
  *request.mutable_definition() = definition;
  request.set_etag(etag);
  out.status = v1::BackendRegistry::NewStub(channel())->UpdateBackend(context(wait).get(), request, &out.backend);
  return out;
}

Changed GrpcRegistry::remove(const std::string& name, const std::string& etag, bool wait) const {
  Changed out;
  v1::DeleteBackendRequest request;
  v1::DeleteBackendResponse answer;
  request.set_name(name);
  request.set_etag(etag);
  out.status = v1::BackendRegistry::NewStub(channel())->DeleteBackend(context(wait).get(), request, &answer);
  out.existed = answer.existed();
  return out;
}

std::optional<v1::Backend> GrpcRegistry::get(const std::string& name) const {
  v1::GetBackendRequest request;
  v1::Backend out;
  request.set_name(name);
  const auto status = v1::BackendRegistry::NewStub(channel())->GetBackend(context(true).get(), request, &out);
  return status.ok() ? std::optional(out) : std::nullopt;
}

std::vector<v1::Backend> GrpcRegistry::list() const {
  v1::ListBackendsResponse out;
  const auto status = v1::BackendRegistry::NewStub(channel())->ListBackends(context(true).get(), {}, &out);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return {out.backends().begin(), out.backends().end()};
}

std::vector<std::string> registrations(const std::vector<Event>& events, const std::string& backend) {
  std::vector<std::string> out;
  for (const auto& event : events) {
    if (event.backend_name() != backend || !event.resource_id().empty()) continue;
    const auto type = event.change_type();
    if (type == v1::BACKEND_CHANGE_TYPE_CREATED) out.push_back("created " + event.source());
    if (type == v1::BACKEND_CHANGE_TYPE_UPDATED) out.push_back("updated " + event.source());
    if (type == v1::BACKEND_CHANGE_TYPE_DELETED) out.push_back("deleted " + event.source());
  }
  return out;
}

}  // namespace driftd::test
