// SPDX-License-Identifier: Apache-2.0
#include "check/elf.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "check/check.hpp"

namespace driftd::check {
namespace {

/// The file's bytes. Reading outside of them throws, because the file is damaged then.
class File {
 public:
  explicit File(const std::string& name) : name_(name) {
    std::ifstream in(name, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  template <class T>
  T at(std::uint64_t offset) const {
    T out{};
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof out) refuse("it ends too early");
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }
  template <class T>
  std::vector<T> array(std::uint64_t offset, std::uint64_t count) const {
    if (count > bytes_.size() / sizeof(T)) refuse("a table is longer than the file");
    std::vector<T> out;
    for (std::uint64_t i = 0; i < count; ++i) out.push_back(at<T>(offset + i * sizeof(T)));
    return out;
  }
  std::string text(std::uint64_t offset) const {
    const std::string_view all(bytes_);
    if (offset >= all.size()) refuse("a name lies behind its end");
    return std::string(all.substr(offset, all.find('\0', offset) - offset));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw RuleBroken(
        fmt::format("{}: expected a 64-bit ELF shared object of this machine, found none: {}; build it with -shared "
                    "for the machine that it is to run on",
                    name_, why));
  }

 private:
  std::string name_, bytes_;
};

Elf64_Ehdr read_header(const File& file) {
  const auto header = file.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) file.refuse("no ELF header");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    file.refuse("another class or byte order");
  if (header.e_type != ET_DYN) file.refuse("not of type DYN");
  return header;
}

void read_program_header(const Elf64_Phdr& header, Elf& out) {
  if (header.p_type == PT_GNU_RELRO) out.relro = true;
  if (header.p_type != PT_GNU_STACK) return;
  out.stack_header = true;
  out.executable_stack = (header.p_flags & PF_X) != 0;
}

void split_path(const std::string& text, Elf& out) {
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(':', at);
    out.rpaths.push_back(text.substr(at, end - at));
    if (end == std::string::npos) return;
    at = end + 1;
  }
}

void read_dynamic(const File& file, const Elf64_Shdr& section, std::uint64_t strings, Elf& out) {
  for (const auto& entry : file.array<Elf64_Dyn>(section.sh_offset, section.sh_size / sizeof(Elf64_Dyn))) {
    const std::uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
      case DT_NULL:
        return;
      case DT_TEXTREL:
        out.text_relocations = true;
        break;
      case DT_BIND_NOW:
        out.bind_now = true;
        break;
      case DT_FLAGS:
        out.text_relocations |= (value & DF_TEXTREL) != 0;
        out.bind_now |= (value & DF_BIND_NOW) != 0;
        break;
      case DT_FLAGS_1:
        out.bind_now |= (value & DF_1_NOW) != 0;
        break;
      case DT_RPATH:
      case DT_RUNPATH:
        split_path(file.text(strings + value), out);
        break;
      default:
        break;
    }
  }
}

bool exports(const Elf64_Sym& symbol) {
  const auto binding = ELF64_ST_BIND(symbol.st_info), visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  const bool global = binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE;
  return global && symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS && symbol.st_name != 0 &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

void read_symbols(const File& file, const Elf64_Shdr& section, std::uint64_t strings, Elf& out) {
  static constexpr std::array kLinkers{"_init", "_fini", "_edata", "_end", "__bss_start"};
  for (const auto& symbol : file.array<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
    if (!exports(symbol)) continue;
    const std::string name = file.text(strings + symbol.st_name);
    if (std::find(kLinkers.begin(), kLinkers.end(), name) == kLinkers.end()) out.exported.push_back(name);
  }
}

}  // namespace

Elf read_elf(const std::string& name) {
  const File file(name);
  const auto header = read_header(file);
  Elf out;
  for (const auto& program : file.array<Elf64_Phdr>(header.e_phoff, header.e_phnum)) read_program_header(program, out);
  const auto sections = file.array<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  bool dynamic = false;
  for (const auto& section : sections) {
    if (section.sh_type != SHT_DYNAMIC && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link >= sections.size()) file.refuse("a section without its names");
    const std::uint64_t strings = sections[section.sh_link].sh_offset;
    if (section.sh_type == SHT_DYNAMIC) {
      dynamic = true;
      read_dynamic(file, section, strings, out);
    } else {
      read_symbols(file, section, strings, out);
    }
  }
  if (!dynamic) file.refuse("no dynamic section (section headers stripped?)");
  std::sort(out.exported.begin(), out.exported.end());
  return out;
}

}  // namespace driftd::check
