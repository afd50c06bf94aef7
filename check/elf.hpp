// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace driftd::check {

/// Facts about a shared object, read from its file without loading it.
struct Elf {
  std::vector<std::string> exported;  ///< global symbols that others can bind to, without the linker's own
  std::vector<std::string> rpaths;    ///< RPATH and RUNPATH, split at `:`
  bool text_relocations = false;
  bool stack_header = false, executable_stack = false;
  bool relro = false, bind_now = false;
};

/// Reads a 64-bit shared object of this machine's byte order. Throws RuleBroken if the file is not one.
Elf read_elf(const std::string& file);

}  // namespace driftd::check
