// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace driftd::check {

/// Where a receiver listens: what stands for `${tcp}`, `${udp}`, `${unix}` and `${unixgram}` in settings.
struct Addresses {
  int tcp = 0, udp = 0;  ///< ports on loopback
  /// Paths of Unix sockets; empty if there are none.
  std::string unix_stream, unix_datagram;
};
/// Returns the settings with the addresses in place of the placeholders. A value that is nothing but the placeholder of
/// a port becomes a number.
std::string with_addresses(const std::string& settings_json, const Addresses& addresses);
/// Returns true if the settings contain this placeholder; `name` is `tcp`, `udp`, `unix` or `unixgram`.
bool names_address(const std::string& settings_json, const char* name);
bool names_address(const std::string& settings_json);       ///< any of the four
bool names_unix_address(const std::string& settings_json);  ///< `unix` or `unixgram`

/// A receiver of events over TCP and UDP on loopback, and over Unix sockets. It keeps every byte that arrives. It is a
/// process of its own, so that its threads, memory and descriptors are not taken for the sink's; it dies with this
/// process. Construct it before the sink is loaded and before any thread is started. Only one thread at a time may use
/// it.
class Receiver {
 public:
  struct Behaviour {
    std::string answer;             ///< sent after each line of a connection; empty: nothing is ever answered
    std::uint64_t reset_after = 0;  ///< resets each connection after so many bytes; 0: never
    bool keeps = true;              ///< false: what arrives is read and forgotten
    std::string folder;             ///< where its Unix sockets are made; empty: it has none
  };
  explicit Receiver(const Behaviour& behaviour);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  const Addresses& addresses() const { return addresses_; }
  void set_reset_after(std::uint64_t bytes);  ///< for connections from now on and for those that exist

  /// One event id that arrived.
  struct Arrival {
    std::size_t event = 0;         ///< the number at the end of the id
    std::uint32_t connection = 0;  ///< from 1; each datagram counts as one
  };
  /// Looks for ids `prefix-dddddd` from now on. Call it once.
  void look_for(const std::string& prefix) { prefix_ = prefix; }
  /// Returns all ids that have arrived, in the order in which their last bytes were read. Throws CheckNotMade if more
  /// arrived than the receiver can keep.
  const std::vector<Arrival>& arrivals();
  /// Waits until each of these events' ids has arrived `times` times. Returns the first that has not, or -1 if there is
  /// none.
  long await(const std::vector<std::size_t>& events, std::chrono::milliseconds time_limit, std::size_t times = 1);
  std::size_t count(std::size_t event);  ///< how often this event's id has arrived
  /// Returns true if this text has arrived on one connection. Waits for it if it has not.
  bool await_text(const std::string& text, std::chrono::milliseconds time_limit);
  std::uint64_t bytes() const;  ///< how many bytes have arrived, kept or not

 private:
  struct Shared;
  /// Sockets of the receiver's process.
  struct Sockets {
    int tcp = -1, udp = -1, unix_stream = -1, unix_datagram = -1;  ///< -1: there is none
  };
  struct Stream {
    std::string text;
    std::size_t looked_at = 0;
  };
  [[noreturn]] static void serve(Shared& shared, const Sockets& sockets, int arrived, const Behaviour& behaviour);
  void update();
  void look(std::uint32_t connection, Stream& stream);
  template <class Holds>
  bool wait_until(const Holds& holds, std::chrono::milliseconds time_limit);

  Shared* shared_ = nullptr;
  Addresses addresses_;
  pid_t pid_ = -1;
  int arrived_ = -1;  ///< eventfd that the receiver writes after each chunk
  std::uint64_t read_ = 0;
  std::string prefix_;
  std::map<std::uint32_t, Stream> streams_;
  std::vector<Arrival> arrivals_;
};

}  // namespace driftd::check
