// SPDX-License-Identifier: Apache-2.0
// Loads a plugin and calls its entry function on the current thread, with inputs placed where a mistake shows.
#pragma once

#include <driftd/provider.h>

#include "check/check.hpp"
#include "check/pages.hpp"

namespace driftd::check {

/// Loads the library and finds the entry function of the subject's kind of plugin, and calls nothing. Throws
/// CheckNotMade with the id of the check that explains the failure.
void* find_entry(const Subject& subject);

/// The answer of the entry function. `table` is the plugin's own; its `size` member says how large it is.
struct Answer {
  driftd_status status = DRIFTD_INTERNAL;
  std::uint32_t minor_built = 0, minor_needed = 0;
  const void* table = nullptr;     ///< driftd_provider_table or driftd_sink_table
  std::size_t written_behind = 0;  ///< number of bytes behind the accept struct that the plugin overwrote
};
inline constexpr std::uint32_t kNewestMinor = ~std::uint32_t{0};
struct Offer {
  std::uint32_t minor_max = kNewestMinor;  ///< the newest minor of this host
  std::uint32_t in_process = 0;
  std::uint32_t accept_size = sizeof(driftd_accept);
  const void* host = nullptr;  ///< null: the adversarial host's table
};
Answer negotiate(const Subject& subject, const Offer& offer = {}, InputLayout layout = {});
/// Returns the answer to a plain offer. Throws CheckNotMade, with negotiation.minor in its text, if it is a refusal.
Answer accepted(const Subject& subject);

std::uint32_t host_minor(PluginKind kind);  ///< newest minor that this host speaks with such plugins
std::uint32_t size_of(const void* table);   ///< the first member of every struct of the ABI
/// Returns the number of a table's first NULL slot, or -1 if there is none.
int null_slot(const void* table);
/// Throws RuleBroken, with `when` in its text, unless both answers are equal.
void expect_same_answer(const Answer& first, const Answer& again, const std::string& when);

// The checks of negotiation that hold for every kind of plugin. [group_negotiation_common.cpp]
void minor(const Subject& subject);
void honest_need(const Subject& subject);
void repeat(const Subject& subject);
void slots(const Subject& subject);
/// Throws RuleBroken if the entry writes behind the `size` of its accept struct, also one of the first, shorter form.
void expect_no_write_behind_accept(const Subject& subject);
/// Throws RuleBroken if `query` finds a table under one of these ids and revisions.
using ExtensionName = std::pair<std::string, std::uint32_t>;
void expect_no_extension(const void* (*query)(driftd_str, std::uint32_t), const std::vector<ExtensionName>& asked);

/// Bytes of the accept struct before `refusal` was added.
inline constexpr std::uint32_t kFirstAccept = 32;
/// Bytes by which the structs of a pretended newer header are longer.
inline constexpr std::uint32_t kLonger = 40;

}  // namespace driftd::check
