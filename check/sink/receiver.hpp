// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace driftd::check {

/// The ports that stand for `${tcp}` and `${udp}` in settings.
struct Ports {
  int tcp = 0, udp = 0;
};
/// Returns the settings with the ports in place of `${tcp}` and `${udp}`. A value that is nothing but the placeholder
/// becomes a number.
std::string with_ports(const std::string& settings_json, const Ports& ports);
bool names_port(const std::string& settings_json, const char* protocol);  ///< `tcp`, `udp`

/// A receiver of events on loopback, TCP and UDP. It keeps every byte that arrives. It is a process of its own, so that
/// its threads, memory and descriptors are not taken for the sink's; it dies with this process. Construct it before
/// the sink is loaded and before any thread is started. Only one thread at a time may use it.
class Receiver {
 public:
  struct Behaviour {
    std::string answer;             ///< sent after each line that arrives over TCP; empty: nothing is ever answered
    std::uint64_t reset_after = 0;  ///< resets each TCP connection after so many bytes; 0: never
    bool keeps = true;              ///< false: what arrives is read and forgotten
  };
  explicit Receiver(const Behaviour& behaviour);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  const Ports& ports() const { return ports_; }
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
  struct Stream {
    std::string text;
    std::size_t looked_at = 0;
  };
  [[noreturn]] static void serve(Shared& shared, int listener, int udp, int arrived, const Behaviour& behaviour);
  void update();
  void look(std::uint32_t connection, Stream& stream);
  template <class Holds>
  bool wait_until(const Holds& holds, std::chrono::milliseconds time_limit);

  Shared* shared_ = nullptr;
  Ports ports_;
  pid_t pid_ = -1;
  int arrived_ = -1;  ///< eventfd that the receiver writes after each chunk
  std::uint64_t read_ = 0;
  std::string prefix_;
  std::map<std::uint32_t, Stream> streams_;
  std::vector<Arrival> arrivals_;
};

}  // namespace driftd::check
