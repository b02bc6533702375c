// A program's file, as far as anybody looks into it: an ELF header, notes with a build id, and other bytes.
#pragma once

#include <elf.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace pif::sim {

// `bytes` bytes long, at least as long as headers and note take. build: empty for a program without one. Of `filling`
// are the bytes behind.
inline std::vector<std::byte> program_file(const std::string& build, std::size_t bytes = 4096, char filling = 'x') {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  head.e_phoff = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 2;
  Elf64_Nhdr other{4, 5, 7}, note{4, static_cast<Elf64_Word>(build.size()), NT_GNU_BUILD_ID};
  std::string notes(reinterpret_cast<const char*>(&other), sizeof other);
  notes += std::string("GNU\0abcde\0\0\0", 12);  // one that is no build id, padded
  if (!build.empty()) notes += std::string(reinterpret_cast<const char*>(&note), sizeof note) + std::string("GNU\0", 4);
  notes += build;
  Elf64_Phdr segments[2]{};
  segments[0].p_type = PT_LOAD;
  segments[1].p_type = PT_NOTE;
  segments[1].p_align = 4;
  segments[1].p_offset = sizeof head + sizeof segments;
  segments[1].p_filesz = notes.size();
  std::string text(reinterpret_cast<const char*>(&head), sizeof head);
  text += std::string(reinterpret_cast<const char*>(segments), sizeof segments) + notes;
  text.resize(std::max(bytes, text.size()), filling);
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

}  // namespace pif::sim
