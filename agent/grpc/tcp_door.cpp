// SPDX-License-Identifier: Apache-2.0
#include "grpc/tcp_door.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::rpc {
namespace {

constexpr int kBacklog = 128;
constexpr std::chrono::milliseconds kPause{100};   // after an accept that failed, such as for want of descriptors
constexpr std::chrono::seconds kBetweenLines{10};  // a flood of connections must not be one of log lines

std::uint64_t inode_of(int socket) {
  struct stat info {};
  return ::fstat(socket, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

/// Returns whose connections count together: an IPv4 address, or the /64 of an IPv6 one, all of which one host can
/// have.
std::string host_of(const asio::ip::address& address) {
  if (address.is_v4()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  if (address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::make_address_v6(bytes).to_string() + "/64";
}

/// Returns true if this machine does not have such an address: `localhost` may be ::1 too where there is no IPv6.
bool is_absent(const boost::system::error_code& error) {
  return error == boost::system::errc::address_not_available || error == asio::error::address_family_not_supported;
}

struct HostAndPort {
  std::string host, port;
};
Result<HostAndPort> parse_listen(const std::string& text) {
  const auto colon = text.rfind(':');
  HostAndPort out;
  if (colon != std::string::npos) out = {text.substr(0, colon), text.substr(colon + 1)};
  const bool bracketed = out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']';
  if (bracketed) out.host = out.host.substr(1, out.host.size() - 2);
  const bool digits = !out.port.empty() && out.port.find_first_not_of("0123456789") == std::string::npos;
  if (!out.host.empty() && digits && (bracketed || out.host.find(':') == std::string::npos)) return out;
  return fail(Code::invalid, "grpc.listen is '" + text + "'; expected HOST:PORT or [IPV6]:PORT");
}

}  // namespace

Task<Result<int>> TcpDoor::bind(std::string host_and_port) {
  DRIFTD_CO_TRY(const HostAndPort at, parse_listen(host_and_port));
  Tcp::resolver resolver(core_);
  const auto flags = Tcp::resolver::passive | Tcp::resolver::numeric_service;
  auto [error, found] = co_await resolver.async_resolve(at.host, at.port, flags, asio::as_tuple(asio::use_awaitable));
  if (error) co_return fail(Code::unavailable, "grpc.listen: " + at.host + ": " + error.message());
  int port = 0;
  boost::system::error_code failed;
  for (const auto& entry : found) {
    Tcp::endpoint endpoint = entry.endpoint();
    if (endpoint.port() == 0) endpoint.port(static_cast<unsigned short>(port));  // all of them on the port of the first
    failed = listen(endpoint);
    if (!failed) port = acceptors_.back().local_endpoint().port();
    if (failed && !is_absent(failed)) break;
  }
  if (!acceptors_.empty() && (!failed || is_absent(failed))) co_return port;
  co_return fail(Code::unavailable, "grpc.listen: cannot listen on " + host_and_port + ": " + failed.message() +
                                        "; is the port taken, or is the address not of this machine?");
}

boost::system::error_code TcpDoor::listen(const Tcp::endpoint& endpoint) {
  boost::system::error_code error;
  Acceptor acceptor(core_);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  // `[::]` takes IPv4 too, as it does elsewhere; another IPv6 address has none
  if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (!error) acceptors_.push_back(std::move(acceptor));
  return error;
}

void TcpDoor::start() {
  accepting_ = acceptors_.size();
  for (auto& acceptor : acceptors_) asio::co_spawn(core_, accept(acceptor), fatal);
}

Task<void> TcpDoor::accept(Acceptor& acceptor) {
  asio::steady_timer pause(core_);
  while (!stopping_) {
    auto [error, socket] = co_await acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
    if (stopping_ || error == asio::error::operation_aborted) break;
    boost::system::error_code gone;  // a connection that ended already
    if (!error) {
      const auto peer = socket.remote_endpoint(gone);
      if (!gone) socket.set_option(Tcp::no_delay(true), gone);
      if (!gone) socket.native_non_blocking(true, gone);
      if (!gone) admit(socket.release(), host_of(peer.address()));
      continue;
    }
    log::room("sinks").warn("grpc: cannot accept a connection: {}", error.message());
    pause.expires_after(kPause);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  --accepting_;
}

void TcpDoor::admit(int socket, const std::string& address) {
  const std::string why = refusal(address);
  if (!why.empty()) {
    ::close(socket);
    return report(address, why);
  }
  open_[socket] = {inode_of(socket), address};
  take_(socket);
}

std::string TcpDoor::refusal(const std::string& address) {
  std::erase_if(open_, [](const auto& entry) { return inode_of(entry.first) != entry.second.inode; });
  if (open_.size() >= kMaxConnections) return std::to_string(kMaxConnections) + " are open, the maximum";
  const auto of_it = std::count_if(open_.begin(), open_.end(),
                                   [&address](const auto& entry) { return entry.second.address == address; });
  if (static_cast<std::size_t>(of_it) < kMaxOfAddress) return "";
  return std::to_string(kMaxOfAddress) + " of this address are open, its maximum";
}

void TcpDoor::report(const std::string& address, const std::string& why) {
  ++refused_;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_line_) return;
  next_line_ = now + kBetweenLines;
  log::room("sinks").warn("grpc: a TCP connection of {} is closed: {}; {} were closed since the last such line",
                          address, why, std::exchange(refused_, 0));
}

Task<void> TcpDoor::stop() {
  stopping_ = true;
  boost::system::error_code ignored;  // it may be closed already
  for (auto& acceptor : acceptors_) acceptor.close(ignored);
  asio::steady_timer poll(core_);
  while (accepting_ > 0) {
    poll.expires_after(std::chrono::milliseconds(2));
    co_await poll.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

}  // namespace driftd::rpc
