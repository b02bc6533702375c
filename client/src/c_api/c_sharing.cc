// Files that several create, in C.
#include <cstring>

#include "c_api/c_run.h"
#include "pif/client/counter.h"

using namespace pif::c_api;
using pif::Client;
using pif::File;
using pif::Result;

extern "C" {

int64_t pif_share(pif_file* file, void* token, size_t token_bytes) {
  return with_file(file, {{"token", token, token_bytes}}, [&](File& f) -> Result<uint64_t> {
    PIF_TRY_VALUE(const std::string made, f.share());
    if (made.size() > token_bytes)
      return pif::fail(pif::Code::kTooLarge, "the token needs " + std::to_string(made.size()) + " bytes");
    std::memcpy(token, made.data(), made.size());
    return made.size();
  });
}
pif_file* pif_join(pif_connection* connection, const void* token, size_t token_bytes) {
  return make_file(connection, {{"token", token}}, [&](Client& client) {
    return client.join({static_cast<const char*>(token), token_bytes});
  });
}
int pif_done(pif_file* file) {
  return code_with_file(file, {}, [](File& f) { return f.done(); });
}
int64_t pif_members(pif_file* file, pif_member* members, size_t count) {
  return with_file(file, {{"members", members, count}}, [&](File& f) -> Result<uint64_t> {
    PIF_TRY_VALUE(const auto all, f.members());
    for (size_t i = 0; i < all.size() && i < count; ++i)
      members[i] = {all[i].number, static_cast<pif_member_state>(all[i].state)};
    return all.size();
  });
}
int pif_drop(pif_file* file, uint32_t member) {
  return code_with_file(file, {}, [&](File& f) { return f.drop(member); });
}
int pif_sync(pif_file* file) {
  return code_with_file(file, {}, [](File& f) { return f.sync(); });
}

int pif_counter_open(pif_file* file, uint64_t* counter) {
  return code_with_file(file, {{"counter", counter}}, [&](File& f) -> pif::Status {
    PIF_TRY_VALUE(*counter, pif::client::open_counter(f));
    return {};
  });
}
int pif_counter_add(pif_connection* connection, uint64_t counter, int64_t add, int64_t* before) {
  return with_client(connection, {{"before", before}}, [&](Client& client) -> pif::Status {
    PIF_TRY_VALUE(*before, pif::client::add_to_counter(client, counter, add));
    return {};
  });
}
int pif_counter_close(pif_connection* connection, uint64_t counter) {
  return with_client(connection, {}, [&](Client& client) { return pif::client::close_counter(client, counter); });
}

}  // extern "C"
