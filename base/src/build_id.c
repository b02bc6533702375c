#include "pif/base/build_id.h"

#include <elf.h>
#include <string.h>

enum { kHeadersMax = 256, kNotesBytesMax = 64 << 10 };

/* Whether all of it could be read. */
static int read_all(pif_build_id_read read, void* program, uint64_t at, void* into, size_t bytes) {
  return read(program, at, into, bytes) == (long)bytes;
}

static int is_ours(const Elf64_Ehdr* head) {
  const uint16_t one = 1;
  const unsigned char order = *(const unsigned char*)&one == 1 ? ELFDATA2LSB : ELFDATA2MSB;
  return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
         head->e_ident[EI_DATA] == order && head->e_phentsize == sizeof(Elf64_Phdr) && head->e_phnum <= kHeadersMax;
}

static uint64_t padded(uint64_t bytes, uint64_t align) { return (bytes + align - 1) / align * align; }

/* The build id among the notes of one segment. */
static size_t find_in(pif_build_id_read read, void* program, const Elf64_Phdr* notes, unsigned char* id) {
  const uint64_t align = notes->p_align == 8 ? 8 : 4;
  const uint64_t size = notes->p_filesz < kNotesBytesMax ? notes->p_filesz : kNotesBytesMax;
  Elf64_Nhdr note;
  for (uint64_t at = 0; at + sizeof note <= size;) {
    char name[sizeof ELF_NOTE_GNU];
    if (!read_all(read, program, notes->p_offset + at, &note, sizeof note)) return 0;
    const uint64_t begin = notes->p_offset + at + sizeof note;
    const uint64_t content = begin + padded(note.n_namesz, align);
    at += sizeof note + padded(note.n_namesz, align) + padded(note.n_descsz, align);
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof name || note.n_descsz == 0 ||
        note.n_descsz > kPifBuildIdBytesMax)
      continue;
    if (!read_all(read, program, begin, name, sizeof name) || memcmp(name, ELF_NOTE_GNU, sizeof name) != 0) continue;
    return read_all(read, program, content, id, note.n_descsz) ? note.n_descsz : 0;
  }
  return 0;
}

size_t pif_build_id(pif_build_id_read read, void* program, unsigned char* id) {
  Elf64_Ehdr head;
  if (!read_all(read, program, 0, &head, sizeof head) || !is_ours(&head)) return 0;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_all(read, program, head.e_phoff + i * sizeof segment, &segment, sizeof segment)) return 0;
    if (segment.p_type != PT_NOTE) continue;
    const size_t bytes = find_in(read, program, &segment, id);
    if (bytes > 0) return bytes;
  }
  return 0;
}
