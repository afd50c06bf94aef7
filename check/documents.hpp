// SPDX-License-Identifier: Apache-2.0
// The documents that describe and schema push.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/call_trace.hpp"

namespace driftd::check {

/// Asks for a document on a thread of the pool. Throws RuleBroken if `function` does not return within kGrace.
CallTrace ask_document(const std::string& name, std::function<driftd_status(driftd_push_fn, void*)> function);

// `describe` is the text of a JSON object. All of these throw RuleBroken, with `name` or the member in the text, if the
// document is not as it must be.

/// Returns the document that was asked for twice, on different threads. Exactly one must be pushed each time.
std::string expect_document(const std::string& name, const CallTrace& first, const CallTrace& second);
void expect_text_member(const std::string& describe, const char* member);
/// Returns a list of at least one name, each once.
std::vector<std::string> expect_names(const std::string& describe, const char* member);
/// Expects an optional list of objects with these members. All are texts except `revision`.
void expect_objects(const std::string& describe, const char* list, std::initializer_list<const char*> members);
void expect_concurrency(const std::string& describe);  ///< an optional number from 1 to 64
/// Expects a JSON Schema that uses only what the host follows, and that can judge `samples`.
void expect_settings_schema(const std::string& text, const std::vector<std::string>& samples);

}  // namespace driftd::check
