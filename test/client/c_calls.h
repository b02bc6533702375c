/* A program in C that uses every function of pif/client/pif.h; compiled as C11. */
#ifndef PIF_TEST_C_CALLS_H
#define PIF_TEST_C_CALLS_H

#include "pif/client/pif.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL if all went well, else what did not hold. */
const char* c_calls(pif_connection* connection);
/* The same with NULL wherever a pointer is taken. */
const char* c_calls_with_null(pif_connection* connection);
/* Whole files, and what is told of a file and of its LFSs, of which there are 3. */
const char* c_whole(pif_connection* connection);
/* Many names and small files at once, lines by their numbers, lengths and attributes that change. There are 3 LFSs. */
const char* c_many(pif_connection* connection);
/* Many pieces at once, and a file that two connections create. In this order: c_shares(), c_joins() on the other one,
 * c_pieces(). */
struct c_shared {
  pif_file* file;
  char token[PIF_TOKEN_BYTES_MAX];
  int64_t token_bytes;
};
const char* c_shares(pif_connection* connection, struct c_shared* shared);
const char* c_joins(pif_connection* connection, const struct c_shared* shared);
const char* c_pieces(pif_connection* connection, struct c_shared* shared);

#ifdef __cplusplus
}
#endif

#endif
