// SPDX-License-Identifier: Apache-2.0
#include "engine/kinds_in_part.hpp"

namespace driftd::engine {
namespace {

const std::string kOverBudget = "over_budget:", kWithheld = "withheld:";
const std::string kFirstList = "first list";

}  // namespace

InPart in_part(const core::BackendRow& row, const std::string& kind) {
  if (row.notes.contains(kOverBudget + kind)) return InPart::over_budget;
  return row.notes.contains(kWithheld + kind) ? InPart::withheld : InPart::no;
}

void note_in_part(core::BackendRow& row, const std::string& kind, InPart why) {
  row.notes.erase(kOverBudget + kind);
  row.notes.erase(kWithheld + kind);
  if (why == InPart::over_budget) row.notes[kOverBudget + kind] = kFirstList;
  if (why == InPart::withheld) row.notes[kWithheld + kind] = kFirstList;
}

}  // namespace driftd::engine
