#include "zmq/zmq_library.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "zmq/cppzmq.h"

// Each is a member, looked up by its name, and called. NOLINTNEXTLINE: a list
// clang-format off
#define PIF_ZMQ_FUNCTIONS(X) \
  X(errno) X(strerror) X(ctx_new) X(ctx_term) X(ctx_set) X(socket) X(close) X(bind) X(connect) X(getsockopt) \
  X(setsockopt) X(msg_init) X(msg_init_size) X(msg_init_data) X(msg_close) X(msg_send) X(msg_recv) X(msg_move) \
  X(msg_copy) X(msg_data) X(msg_size) X(msg_more) X(msg_gets) X(z85_encode) X(z85_decode) X(curve_keypair)
// clang-format on

namespace pif::net {
namespace {

constexpr const char* kLibrary = "libzmq.so.5";  // what Debian's libzmq3-dev links to: the ABI of ZeroMQ 4
constexpr int kMajorMin = 4, kMinorMin = 3;

// The library's, of the types of ours.
struct Functions {
#define PIF_X(name) decltype(&pif_zmq_##name) name##_ = nullptr;
  PIF_ZMQ_FUNCTIONS(PIF_X)
#undef PIF_X
};

class Library {
 public:
  [[nodiscard]] Status load() {
    const std::lock_guard guard(mutex_);
    if (is_loaded_) return {};
    void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      return fail(Code::kUnsupported, fmt::format("ZeroMQ cannot be loaded: {}; install libzmq5", ::dlerror()));
    Status taken = take(handle);
    if (!taken) ::dlclose(handle);
    is_loaded_ = taken.has_value();
    return taken;
  }
  const Functions& functions() const {
    PIF_ASSERT(is_loaded_);
    return functions_;
  }

 private:
  Status take(void* handle) {
    int major = 0, minor = 0, patch = 0;
    if (auto* const version = reinterpret_cast<decltype(&zmq_version)>(::dlsym(handle, "zmq_version")))
      version(&major, &minor, &patch);
    bool has_all = true;
#define PIF_X(name)                                                                                   \
  functions_.name##_ = reinterpret_cast<decltype(functions_.name##_)>(::dlsym(handle, "zmq_" #name)); \
  has_all = has_all && functions_.name##_ != nullptr;
    PIF_ZMQ_FUNCTIONS(PIF_X)
#undef PIF_X
    if (has_all && (major > kMajorMin || (major == kMajorMin && minor >= kMinorMin))) return {};
    return fail(Code::kUnsupported, fmt::format("this machine's {} is ZeroMQ {}.{}.{}: install 4.3 or a newer one",
                                                kLibrary, major, minor, patch));
  }

  std::mutex mutex_;
  std::atomic<bool> is_loaded_{false};
  Functions functions_;  // when it is loaded
};

Library& library() {
  static Library only;
  return only;
}
const Functions& functions() { return library().functions(); }

}  // namespace

Status load_zmq() { return library().load(); }

}  // namespace pif::net

using pif::net::functions;

extern "C" {

int zmq_errno() { return functions().errno_(); }
const char* zmq_strerror(int number) { return functions().strerror_(number); }

void* zmq_ctx_new() { return functions().ctx_new_(); }
int zmq_ctx_term(void* context) { return functions().ctx_term_(context); }
int zmq_ctx_set(void* context, int option, int value) { return functions().ctx_set_(context, option, value); }

void* zmq_socket(void* context, int type) { return functions().socket_(context, type); }
int zmq_close(void* socket) { return functions().close_(socket); }
int zmq_bind(void* socket, const char* address) { return functions().bind_(socket, address); }
int zmq_connect(void* socket, const char* address) { return functions().connect_(socket, address); }
int zmq_getsockopt(void* socket, int option, void* value, size_t* bytes) {
  return functions().getsockopt_(socket, option, value, bytes);
}
int zmq_setsockopt(void* socket, int option, const void* value, size_t bytes) {
  return functions().setsockopt_(socket, option, value, bytes);
}

int zmq_msg_init(zmq_msg_t* message) { return functions().msg_init_(message); }
int zmq_msg_init_size(zmq_msg_t* message, size_t bytes) { return functions().msg_init_size_(message, bytes); }
int zmq_msg_init_data(zmq_msg_t* message, void* data, size_t bytes, zmq_free_fn* free, void* hint) {
  return functions().msg_init_data_(message, data, bytes, free, hint);
}
int zmq_msg_close(zmq_msg_t* message) { return functions().msg_close_(message); }
int zmq_msg_send(zmq_msg_t* message, void* socket, int flags) { return functions().msg_send_(message, socket, flags); }
int zmq_msg_recv(zmq_msg_t* message, void* socket, int flags) { return functions().msg_recv_(message, socket, flags); }
int zmq_msg_move(zmq_msg_t* to, zmq_msg_t* from) { return functions().msg_move_(to, from); }
int zmq_msg_copy(zmq_msg_t* to, zmq_msg_t* from) { return functions().msg_copy_(to, from); }
void* zmq_msg_data(zmq_msg_t* message) { return functions().msg_data_(message); }
size_t zmq_msg_size(const zmq_msg_t* message) { return functions().msg_size_(message); }
int zmq_msg_more(const zmq_msg_t* message) { return functions().msg_more_(message); }
const char* zmq_msg_gets(const zmq_msg_t* message, const char* property) {
  return functions().msg_gets_(message, property);
}

char* zmq_z85_encode(char* text, const uint8_t* data, size_t bytes) {
  return functions().z85_encode_(text, data, bytes);
}
uint8_t* zmq_z85_decode(uint8_t* data, const char* text) { return functions().z85_decode_(data, text); }
int zmq_curve_keypair(char* public_key, char* secret_key) { return functions().curve_keypair_(public_key, secret_key); }

}  // extern "C"
