/* The interface of Galley (Nieuwejaar and Kotz, "The Galley parallel file system", Parallel Computing 1997, section 5):
 * one request for many records, each with a place in the file and one in memory. It is a thin layer over
 * pif_read_pieces and pif_write_pieces (pif.h), whose words on files, errors and threads hold here. Where it departs
 * from the paper: a file is a pif_file, numbers have 64 bits.
 *
 * All offsets and strides are in bytes. Those of memory count from `buf`, and may be negative; the program answers for
 * the memory that they reach. Results: bytes transferred (of a read fewer only where a record goes past the end of the
 * file), or a negative code. */
#ifndef PIF_CLIENT_GALLEY_H
#define PIF_CLIENT_GALLEY_H

#include <stdint.h>

#include "pif/client/pif.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One level of nesting. */
struct gfs_stride {
  int64_t f_stride;
  int64_t m_stride;
  int64_t quantity;
};

/* `quant` times a piece of `sub.size` bytes, or the vector `sub.subvec`. An offset that is not absolute counts from the
 * batch before it in its vector; that of the first, from the vector's parent. */
struct gfs_batch {
  int64_t f_off;
  int64_t m_off;
  char f_absolute;
  char m_absolute;
  char sub_vector; /* not 0: it is a vector */
  int64_t quant;
  int64_t f_stride;
  int64_t m_stride;
  int64_t subvec_len;
  union {
    int64_t size;
    const struct gfs_batch* subvec;
  } sub;
};

struct gfs_list_entry {
  int64_t f_off;
  int64_t m_off;
  int64_t size;
};

/* Simple-strided: `quant` records of `rec_size` bytes; the first at `offset` and `buf`. */
int64_t gfs_read_strided(pif_file* fid, void* buf, int64_t offset, int64_t rec_size, int64_t f_stride, int64_t m_stride,
                         int64_t quant);
int64_t gfs_write_strided(pif_file* fid, const void* buf, int64_t offset, int64_t rec_size, int64_t f_stride,
                          int64_t m_stride, int64_t quant);
/* Nested-strided: the innermost level first. */
int64_t gfs_read_nested(pif_file* fid, void* buf, int64_t offset, int64_t rec_size, const struct gfs_stride* vec,
                        int levels);
int64_t gfs_write_nested(pif_file* fid, const void* buf, int64_t offset, int64_t rec_size, const struct gfs_stride* vec,
                         int levels);
/* Nested-batched: a vector of trees. */
int64_t gfs_read_batched(pif_file* fid, void* buf, const struct gfs_batch* vec, int quant);
int64_t gfs_write_batched(pif_file* fid, const void* buf, const struct gfs_batch* vec, int quant);
/* List. */
int64_t gfs_read_list(pif_file* fid, void* buf, const struct gfs_list_entry* list, int quant);
int64_t gfs_write_list(pif_file* fid, const void* buf, const struct gfs_list_entry* list, int quant);

/* The same, asynchronous: an operation, for gfs_wait (bytes transferred) and gfs_test (1: it would return at once).
 * The memory belongs to the operation until gfs_wait has returned. */
int64_t gfs_start_read_strided(pif_file* fid, void* buf, int64_t offset, int64_t rec_size, int64_t f_stride,
                               int64_t m_stride, int64_t quant);
int64_t gfs_start_write_strided(pif_file* fid, const void* buf, int64_t offset, int64_t rec_size, int64_t f_stride,
                                int64_t m_stride, int64_t quant);
int64_t gfs_start_read_nested(pif_file* fid, void* buf, int64_t offset, int64_t rec_size, const struct gfs_stride* vec,
                              int levels);
int64_t gfs_start_write_nested(pif_file* fid, const void* buf, int64_t offset, int64_t rec_size,
                               const struct gfs_stride* vec, int levels);
int64_t gfs_start_read_batched(pif_file* fid, void* buf, const struct gfs_batch* vec, int quant);
int64_t gfs_start_write_batched(pif_file* fid, const void* buf, const struct gfs_batch* vec, int quant);
int64_t gfs_start_read_list(pif_file* fid, void* buf, const struct gfs_list_entry* list, int quant);
int64_t gfs_start_write_list(pif_file* fid, const void* buf, const struct gfs_list_entry* list, int quant);
int64_t gfs_wait(pif_file* fid, int64_t operation);
int gfs_test(pif_file* fid, int64_t operation);

#ifdef __cplusplus
}
#endif

#endif
