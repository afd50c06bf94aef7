// SPDX-License-Identifier: Apache-2.0
// From an event to a syslog message (RFC 5424). Pure: no I/O, no clock.
#pragma once

#include <cstddef>
#include <string>

#include "driftd/sink.hpp"

namespace syslog_sink {

// What the settings say about the form of a message.
struct Form {
  int facility = 16;                   // local0
  std::string hostname = "-";          // RFC 5424: "-" if it is not known
  std::string app_name = "driftd";     // 1 to 48 printable ASCII characters
  std::string sd_id = "driftd@32473";  // NAME@ENTERPRISE; 32473 is IANA's number for examples
  bool whole_event = false;            // MSG is the CloudEvents JSON instead of one readable line
  std::size_t max_bytes = 8192;        // of one message; what is longer is cut in MSG
};

// Returns a whole message without a frame. If the body is not a JSON object, the message holds the attributes only.
std::string message(const driftd::sdk::sink::Event& event, const Form& form);

}  // namespace syslog_sink
