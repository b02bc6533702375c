// ZeroMQ's functions, of a library that is loaded when the first of them is called. With what it needs itself libzmq
// is twelve libraries, a third of what a process of ours costs to start; and most, a tool's workers among them, talk
// through Unix sockets alone.
#include "pif/net/zmq_library.h"

#include <dlfcn.h>
#include <zmq.h>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace {

constexpr const char* kLibrary = "libzmq.so.5";  // what Debian's libzmq3-dev links to: the ABI of ZeroMQ 4

void* library() {
  static void* const loaded = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  return loaded;
}

void* find(const char* name) {
  PIF_ASSERT(library() != nullptr);  // load_zmq() said so
  void* const found = ::dlsym(library(), name);
  PIF_ASSERT(found != nullptr);  // ZeroMQ 4 has it
  return found;
}

// The library's function of that name, which is as ours of that name.
template <auto* kOurs>
auto* imported(const char* name) {
  static auto* const function = reinterpret_cast<decltype(kOurs)>(find(name));
  return function;
}

}  // namespace

namespace pif::net {

Status load_zmq() {
  if (library() != nullptr) return {};
  return fail(Code::kUnsupported, fmt::format("ZeroMQ's {} cannot be loaded: install libzmq5", kLibrary));
}

}  // namespace pif::net

extern "C" {

int zmq_errno() { return imported<zmq_errno>("zmq_errno")(); }
const char* zmq_strerror(int number) { return imported<zmq_strerror>("zmq_strerror")(number); }

void* zmq_ctx_new() { return imported<zmq_ctx_new>("zmq_ctx_new")(); }
int zmq_ctx_term(void* context) { return imported<zmq_ctx_term>("zmq_ctx_term")(context); }
int zmq_ctx_set(void* context, int option, int value) {
  return imported<zmq_ctx_set>("zmq_ctx_set")(context, option, value);
}

void* zmq_socket(void* context, int type) { return imported<zmq_socket>("zmq_socket")(context, type); }
int zmq_close(void* socket) { return imported<zmq_close>("zmq_close")(socket); }
int zmq_bind(void* socket, const char* address) { return imported<zmq_bind>("zmq_bind")(socket, address); }
int zmq_connect(void* socket, const char* address) { return imported<zmq_connect>("zmq_connect")(socket, address); }
int zmq_getsockopt(void* socket, int option, void* value, size_t* bytes) {
  return imported<zmq_getsockopt>("zmq_getsockopt")(socket, option, value, bytes);
}
int zmq_setsockopt(void* socket, int option, const void* value, size_t bytes) {
  return imported<zmq_setsockopt>("zmq_setsockopt")(socket, option, value, bytes);
}

int zmq_msg_init(zmq_msg_t* message) { return imported<zmq_msg_init>("zmq_msg_init")(message); }
int zmq_msg_init_size(zmq_msg_t* message, size_t bytes) {
  return imported<zmq_msg_init_size>("zmq_msg_init_size")(message, bytes);
}
int zmq_msg_init_data(zmq_msg_t* message, void* data, size_t bytes, zmq_free_fn* free, void* hint) {
  return imported<zmq_msg_init_data>("zmq_msg_init_data")(message, data, bytes, free, hint);
}
int zmq_msg_close(zmq_msg_t* message) { return imported<zmq_msg_close>("zmq_msg_close")(message); }
int zmq_msg_send(zmq_msg_t* message, void* socket, int flags) {
  return imported<zmq_msg_send>("zmq_msg_send")(message, socket, flags);
}
int zmq_msg_recv(zmq_msg_t* message, void* socket, int flags) {
  return imported<zmq_msg_recv>("zmq_msg_recv")(message, socket, flags);
}
int zmq_msg_move(zmq_msg_t* to, zmq_msg_t* from) { return imported<zmq_msg_move>("zmq_msg_move")(to, from); }
int zmq_msg_copy(zmq_msg_t* to, zmq_msg_t* from) { return imported<zmq_msg_copy>("zmq_msg_copy")(to, from); }
void* zmq_msg_data(zmq_msg_t* message) { return imported<zmq_msg_data>("zmq_msg_data")(message); }
size_t zmq_msg_size(const zmq_msg_t* message) { return imported<zmq_msg_size>("zmq_msg_size")(message); }
int zmq_msg_more(const zmq_msg_t* message) { return imported<zmq_msg_more>("zmq_msg_more")(message); }
const char* zmq_msg_gets(const zmq_msg_t* message, const char* property) {
  return imported<zmq_msg_gets>("zmq_msg_gets")(message, property);
}

char* zmq_z85_encode(char* text, const uint8_t* data, size_t bytes) {
  return imported<zmq_z85_encode>("zmq_z85_encode")(text, data, bytes);
}
uint8_t* zmq_z85_decode(uint8_t* data, const char* text) {
  return imported<zmq_z85_decode>("zmq_z85_decode")(data, text);
}
int zmq_curve_keypair(char* public_key, char* secret_key) {
  return imported<zmq_curve_keypair>("zmq_curve_keypair")(public_key, secret_key);
}

}  // extern "C"
