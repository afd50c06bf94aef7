// SPDX-License-Identifier: Apache-2.0
// Texts of nats.c, the server and JetStream, with what an operator can do.
#pragma once

#include <nats/nats.h>
#include <string>
#include <string_view>
#include <vector>

#include "core/ports/sink.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// Returns the library's text for a status, except for a lost connection: with buffering off (connect()), the library
/// reports that as a buffer that is too small.
std::string status_text(natsStatus status);

/// Returns ` (JetStream error 10065)` followed by a remedy. Empty for code 0.
std::string explain(int jetstream_code);

/// Returns what a negative answer means if nothing says that it is about the subject: too large for ever, an error of
/// JetStream that may be about this message or about all (the sink runner decides), or a failure of the connection.
core::Attempt::Outcome classify_failure(natsStatus status, int jetstream_code);

/// Returns the server URLs without user info: everything up to the last `@` is removed, because a password may contain
/// one.
std::string shown_urls(const std::vector<std::string>& servers);

/// Returns a server's text without our secrets: token, password, user info of the URLs. To be called before the text is
/// shortened.
std::string without_our_secrets(std::string text, const NatsSettings& settings);

/// Returns the quoted subject of `Permissions Violation for Publish to "driftd.agent.a.parked"`. Empty if the text is a
/// different one.
std::string denied_subject(std::string_view text);

/// Returns true if a stream with these subjects accepts messages on `subject`.
bool covers(const std::vector<std::string>& subjects, std::string_view subject);

std::string joined(const std::vector<std::string>& words);

}  // namespace driftd::sinks
