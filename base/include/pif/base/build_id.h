/* How builds of a program are distinguished: by the build id that linkers write into an ELF file's notes. In C,
 * for pif-exec too. Pure: the caller reads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kPifBuildIdBytesMax = 64 };

/* Reads `bytes` bytes from byte `at` of the program into `into`; how many there were (fewer: it ends there), or below 0
 * for an error. */
typedef long (*pif_build_id_read)(void* program, uint64_t at, void* into, size_t bytes);

/* Writes the build id into `id` [kPifBuildIdBytesMax] and returns its length. 0: it has none, is no ELF program for 64
 * bits in this machine's byte order, or cannot be read. The bytes may be anybody's: nothing in them is believed. */
size_t pif_build_id(pif_build_id_read read, void* program, unsigned char* id);

#ifdef __cplusplus
}
#endif
