// Forks, in C.
#include "c_api/c_run.h"
#include "c_api/c_values.h"

using namespace pif::c_api;
using pif::Client;
using pif::File;
using pif::Result;

extern "C" {

pif_file* pif_create_fork(pif_connection* connection, const pif_file* of, uint32_t subfile, const char* name,
                          const pif_create_options* options) {
  return make_file(connection, {{"of", of}, {"name", name}}, [&](Client& client) -> Result<File> {
    PIF_TRY_VALUE(const auto chosen, options_of(options));
    return client.create_fork(of->file, subfile, name, chosen);
  });
}
pif_file* pif_open_fork(pif_connection* connection, const pif_file* of, uint32_t subfile, const char* name,
                        enum pif_mode mode) {
  return make_file(connection, {{"of", of}, {"name", name}},
                   [&](Client& client) { return client.open_fork(of->file, subfile, name, mode_of(mode)); });
}
int pif_list_forks(pif_connection* connection, const pif_file* of, pif_list_function each, void* user) {
  return with_client(connection, {{"of", of}, {"each", each}}, [&](Client& client) {
    return list_all([&](const std::string& after) { return client.list_forks(of->file, after); }, each, user);
  });
}
int pif_remove_fork(pif_connection* connection, const pif_file* of, uint32_t subfile, const char* name) {
  return with_client(connection, {{"of", of}, {"name", name}},
                     [&](Client& client) { return client.remove_fork(of->file, subfile, name); });
}

}  // extern "C"
