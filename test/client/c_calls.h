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

#ifdef __cplusplus
}
#endif

#endif
