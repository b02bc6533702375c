/* Uses the installed C interface, found by pkg-config: a connection that must fail well. */
#include <stdio.h>

#include <pif/client/pif.h>

int main(void) {
  pif_connection* connection = pif_connect("/nonexistent", NULL);
  if (connection == NULL || pif_error(connection) != PIF_E_NOT_FOUND) return 1;
  printf("no file system: %s\n", pif_error_text(connection));
  pif_disconnect(connection);
  return 0;
}
