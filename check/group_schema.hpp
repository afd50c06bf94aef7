// SPDX-License-Identifier: Apache-2.0
// The second room of group schema, group_schema_said.cpp: what a provider says in its calls.
#pragma once

#include "check/check.hpp"

namespace driftd::check {

void bodies(const Subject& subject);
void text(const Subject& subject);
void declared_attributes(const Subject& subject);
void unread(const Subject& subject);
void settings_fuzz(const Subject& subject);
void statuses(const Subject& subject);
void metrics(const Subject& subject);
void upgrade(const Subject& subject);

}  // namespace driftd::check
