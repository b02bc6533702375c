/* The partitioned-file interface of PVFS (PVFS 2000, section 3.3): a process sees of a file the groups of `group_bytes`
 * bytes that begin `stride` bytes apart, the first at `offset`, as if they were all there is. A thin layer over
 * pif_read_pieces and pif_write_pieces (pif.h), whose words on files, errors and threads hold here. */
#ifndef PIF_CLIENT_PVFS_H
#define PIF_CLIENT_PVFS_H

#include <stdint.h>

#include "pif/client/pif.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Made by the program, which may change it at any time: it is no more than this. */
typedef struct pif_partition {
  pif_file* file;
  int64_t offset;
  uint64_t group_bytes;
  int64_t stride;
  uint64_t position; /* in the partition, in bytes: reads and writes go on there, and move it */
} pif_partition;

/* Bytes read: fewer only at the end of the file. Bytes written. */
int64_t pif_partition_read(pif_partition* partition, void* out, size_t bytes);
int64_t pif_partition_write(pif_partition* partition, const void* in, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
