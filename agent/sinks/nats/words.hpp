// SPDX-License-Identifier: Apache-2.0
// What nats.c, the server and JetStream say, in words that tell an operator what to do.
#pragma once

#include <nats/nats.h>
#include <string>
#include <string_view>
#include <vector>

#include "core/ports/sink.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// The library's words, but for a lost connection: nothing is buffered behind one (connect()), which it calls a buffer
/// that is too small.
std::string status_text(natsStatus status);

/// ` (JetStream error 10065)` with what to do about it behind, or nothing for code 0.
std::string explain(int jetstream_code);

/// What an answer that is no acknowledgement means where nothing says that it is about the subject: too large for ever,
/// an error of JetStream that may be about this message or about all (the lane finds out which), or the connection's
/// failure.
core::Attempt::Outcome classify_failure(natsStatus status, int jetstream_code);

/// Server URLs without user info: everything up to the last `@` goes, since a password may hold one.
std::string shown_urls(const std::vector<std::string>& servers);

/// What a server says, without what it was told to know us by: token, password, user info of the URLs. Before any cut.
std::string without_our_secrets(std::string text, const NatsSettings& settings);

/// The subject in quotes of `Permissions Violation for Publish to "driftd.agent.a.parked"`; empty if it is no such
/// text.
std::string denied_subject(std::string_view text);

/// Returns true if a stream with these subjects takes messages on `subject`.
bool covers(const std::vector<std::string>& subjects, std::string_view subject);

std::string joined(const std::vector<std::string>& words);

}  // namespace driftd::sinks
