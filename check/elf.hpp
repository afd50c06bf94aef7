// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace driftd::check {

/// What the linker wrote into a shared object, read without loading it.
struct Elf {
  std::vector<std::string> exported;  ///< global names that others can bind to, without those of the linker itself
  std::vector<std::string> rpaths;    ///< RPATH and RUNPATH, split at `:`
  bool text_relocations = false;
  bool stack_header = false, executable_stack = false;
  bool relro = false, bind_now = false;
};

/// Reads a 64-bit shared object of this machine's byte order; RuleBroken when the file is none.
Elf read_elf(const std::string& file);

}  // namespace driftd::check
