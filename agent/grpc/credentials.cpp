// SPDX-License-Identifier: Apache-2.0
// ResolveCredentials. The answer is made by hand, so that every copy of a value that is ours is wiped.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "base/fatal.hpp"
#include "grpc/access.hpp"

namespace driftd::rpc {
namespace {

using ::grpc::ByteBuffer;
using ::grpc::ServerUnaryReactor;
using Coded = google::protobuf::io::CodedOutputStream;
using Wire = google::protobuf::internal::WireFormatLite;

constexpr int kBytesOfHeader = 11;  // a tag and a length

void release(void* text) { delete static_cast<Secret*>(text); }

void append(std::string& out, int field, std::string_view bytes) {
  std::uint8_t header[kBytesOfHeader];
  std::uint8_t* end = Coded::WriteTagToArray(Wire::MakeTag(field, Wire::WIRETYPE_LENGTH_DELIMITED), header);
  end = Coded::WriteVarint32ToArray(static_cast<std::uint32_t>(bytes.size()), end);
  out.append(header, end);
  out.append(bytes);
}

std::size_t size_of(std::string_view bytes) { return bytes.size() + kBytesOfHeader; }

/// Returns a ResolveCredentialsResponse on the wire. gRPC wipes it when it has been sent.
ByteBuffer encode(const std::vector<std::string>& references, const std::vector<Secret>& values) {
  using Answer = v1::ResolveCredentialsResponse;
  using One = v1::ResolvedCredential;
  std::size_t all = 0, longest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t size = size_of(references[i]) + size_of(values[i].reveal());
    longest = std::max(longest, size);
    all += size + kBytesOfHeader;
  }
  std::string bytes, one;
  bytes.reserve(all);  // a text that grows leaves its bytes behind
  one.reserve(longest);
  for (std::size_t i = 0; i < values.size(); ++i) {
    append(one, One::kReferenceFieldNumber, references[i]);
    append(one, One::kValueFieldNumber, values[i].reveal());
    append(bytes, Answer::kCredentialsFieldNumber, one);
    wipe(one);
  }
  auto* kept = new Secret(std::move(bytes));
  const ::grpc::Slice slice(const_cast<char*>(kept->reveal().data()), kept->reveal().size(), release, kept);
  return ByteBuffer(&slice, 1);
}

core::CredentialCaller caller_of(const Caller& caller) {
  core::CredentialCaller out;
  out.name = caller.name;
  out.process = caller.process;
  out.gids = caller.gids;
  out.certificates = caller.certificates;
  out.token = caller.token;
  out.confidential = caller.confidential;
  return out;
}

struct ResolveCall {
  Shared& shared;
  ::grpc::CallbackServerContext* context;
  ByteBuffer* answer;
  ServerUnaryReactor* reactor;
  std::shared_ptr<v1::ResolveCredentialsRequest> request;  ///< null: it cannot be read
};

Task<Status> resolve(ResolveCall call) {
  if (!call.request) co_return fail(Code::invalid, "the request is not a ResolveCredentialsRequest");
  std::string method = "ResolveCredentials " + call.request->backend();
  DRIFTD_CO_TRY(const Caller caller, co_await authorise(call.shared, *call.context, Rights::read, std::move(method)));
  core::CredentialRequest asked;
  asked.caller = caller_of(caller);
  asked.backend = call.request->backend();
  asked.references.assign(call.request->references().begin(), call.request->references().end());
  const std::vector<std::string> references = asked.references;
  DRIFTD_CO_TRY(const auto values, co_await call.shared.deps.credentials.resolve(std::move(asked)));
  *call.answer = encode(references, values);
  co_return Status{};
}

Task<void> serve(ResolveCall call) {
  const Status status = co_await resolve(call);
  ::grpc::Status answer = to_grpc(status);
  // Not UNAVAILABLE, which a client takes for an agent that is away.
  const bool here = !call.shared.stopping && answer.error_code() == ::grpc::StatusCode::UNAVAILABLE;
  if (here) answer = {::grpc::StatusCode::FAILED_PRECONDITION, answer.error_message()};
  call.reactor->Finish(std::move(answer));
}

}  // namespace

ServerUnaryReactor* CredentialsService::ResolveCredentials(::grpc::CallbackServerContext* context,
                                                           const ByteBuffer* request, ByteBuffer* answer) {
  auto parsed = std::make_shared<v1::ResolveCredentialsRequest>();
  ByteBuffer bytes = *request;
  if (!::grpc::SerializationTraits<v1::ResolveCredentialsRequest>::Deserialize(&bytes, parsed.get()).ok()) {
    parsed.reset();
  }
  auto* reactor = context->DefaultReactor();
  asio::co_spawn(shared_.deps.core, serve({shared_, context, answer, reactor, std::move(parsed)}), fatal);
  return reactor;
}

}  // namespace driftd::rpc
