// MPI_File_* and PMPI_File_*, in front of the MPI's. A file whose name begins with "pif:" is ours: its handle is one of
// the MPI's own, of /dev/null, and a table leads from there to it. All other calls go on to the MPI untouched.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include "file.h"
#include "functions.h"
#include "pif/base/assert.h"
#include "session.h"

namespace pif::mpi {
namespace {

constexpr std::string_view kPrefix = "pif:";

class Files {
 public:
  std::shared_ptr<File> find(MPI_File handle) {
    if (count_.load(std::memory_order_acquire) == 0) return nullptr;
    const std::shared_lock guard(lock_);
    const auto found = files_.find(handle);
    return found == files_.end() ? nullptr : found->second;
  }
  void add(std::shared_ptr<File> file) {
    const std::unique_lock guard(lock_);
    const MPI_File handle = file->handle();
    PIF_ASSERT(handle != MPI_FILE_NULL && !files_.contains(handle), files_.size());
    files_.insert_or_assign(handle, std::move(file));
    count_.store(files_.size(), std::memory_order_release);
  }
  void remove(MPI_File handle) {
    const std::unique_lock guard(lock_);
    files_.erase(handle);
    count_.store(files_.size(), std::memory_order_release);
  }

 private:
  std::shared_mutex lock_;
  std::unordered_map<MPI_File, std::shared_ptr<File>> files_;
  std::atomic<std::size_t> count_ = 0;
};

// Never destroyed: a program may have files open until it ends.
Files& files() {
  static Files* const all = new Files;
  return *all;
}

// The MPI's own function of this name: in the next library behind this one.
template <typename Function>
Function* real(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  PIF_ASSERT(found != nullptr);  // the table is the MPI's own
  return reinterpret_cast<Function*>(found);
}

// The MPI's own handle for a file of ours; its error handler is that of MPI_FILE_NULL. Returns the MPI's code.
int open_handle(MPI_Comm comm, MPI_File* handle) {
  using Open = int(MPI_Comm, const char*, int, MPI_Info, MPI_File*);
  *handle = MPI_FILE_NULL;
  return real<Open>("PMPI_File_open")(comm, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, handle);
}

int close_handle(MPI_File* handle) { return real<int(MPI_File*)>("PMPI_File_close")(handle); }

// Calls the file's error handler first. Returns the code for the caller.
int raise(MPI_File handle, const Outcome& outcome) {
  if (outcome.ok()) return MPI_SUCCESS;
  const int code = code_of(outcome);
  if (reports()) std::fprintf(stderr, "pif: %s\n", outcome.text.c_str());
  PMPI_File_call_errhandler(handle, code);
  return code;
}

bool is_ours(const char* name) { return name != nullptr && std::string_view(name).starts_with(kPrefix); }

Outcome path_of(const char* name, std::string* path) {
  *path = std::string(std::string_view(name).substr(kPrefix.size()));
  if (path->starts_with('/')) return {};
  return {MPI_ERR_BAD_FILE, std::string(name) + ": behind pif: stands a path from / on"};
}

// ---- without a file ----

int open_ours(MPI_Comm comm, const char* name, int amode, MPI_Info info, MPI_File* out) {
  MPI_File handle = MPI_FILE_NULL;
  *out = MPI_FILE_NULL;
  if (const int code = open_handle(comm, &handle); code != MPI_SUCCESS) return code;
  std::string path;
  Outcome outcome = path_of(name, &path);
  auto file = std::make_shared<File>(handle, path, amode);
  if (outcome.ok()) outcome = file->open(comm, info);
  if (outcome.ok()) {
    files().add(std::move(file));
    *out = handle;
    return MPI_SUCCESS;
  }
  const int failed = raise(handle, outcome);
  close_handle(&handle);
  return failed;
}

int close_ours(File& file, MPI_File* handle) {
  Outcome outcome;
  {
    const auto guard = file.lock();
    outcome = file.close();
  }
  files().remove(*handle);
  const int code = raise(*handle, outcome);
  const int closed = close_handle(handle);
  return code != MPI_SUCCESS ? code : closed;
}

int delete_ours(const char* name) {
  std::string path;
  Outcome outcome = path_of(name, &path);
  if (outcome.ok()) outcome = ask([&](pif_connection* c) { return pif_remove(c, path.c_str(), 0); });
  if (outcome.ok()) return MPI_SUCCESS;
  MPI_File handle = MPI_FILE_NULL;
  if (open_handle(MPI_COMM_SELF, &handle) != MPI_SUCCESS) return outcome.error_class;
  const int code = raise(handle, outcome);
  close_handle(&handle);
  return code;
}

// ---- with one ----

Outcome set_size(File& file, MPI_Offset bytes) { return file.set_size(bytes); }
Outcome preallocate(File& file, MPI_Offset bytes) { return file.preallocate(bytes); }
Outcome get_size(File& file, MPI_Offset* bytes) {
  std::uint64_t length = 0;
  PIF_MPI_TRY(file.length(&length));
  *bytes = static_cast<MPI_Offset>(length);
  return {};
}
Outcome get_amode(File& file, int* amode) {
  *amode = file.amode();
  return {};
}
// Hints are for the creation of a file; what comes later changes nothing.
Outcome set_info(File&, MPI_Info) { return {}; }
Outcome get_info(File& file, MPI_Info* info) { return file.info(info); }

Outcome set_view(File& file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
                 MPI_Info) {
  const std::string representation = datarep == nullptr ? "" : datarep;
  if (representation != "native" && representation != "internal")
    return {MPI_ERR_UNSUPPORTED_DATAREP, "data representations are native and internal, which is the same here"};
  if (displacement == MPI_DISPLACEMENT_CURRENT)
    PIF_MPI_TRY(file.current_displacement(&displacement));
  else if (displacement < 0)
    return {MPI_ERR_ARG, "a displacement is below 0"};
  PIF_MPI_TRY(file.set_view(displacement, etype, filetype, representation));
  using SetView = int(MPI_File, MPI_Offset, MPI_Datatype, MPI_Datatype, const char*, MPI_Info);
  const int code =
      real<SetView>("PMPI_File_set_view")(file.handle(), displacement, etype, filetype, "native", MPI_INFO_NULL);
  if (code == MPI_SUCCESS) return {};
  int error_class = MPI_ERR_OTHER;
  PMPI_Error_class(code, &error_class);
  return {error_class, "the MPI does not take this view"};
}

Outcome get_view(File& file, MPI_Offset* displacement, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep) {
  using GetView = int(MPI_File, MPI_Offset*, MPI_Datatype*, MPI_Datatype*, char*);
  if (real<GetView>("PMPI_File_get_view")(file.handle(), displacement, etype, filetype, datarep) != MPI_SUCCESS)
    return {MPI_ERR_OTHER, "the MPI does not tell the view"};
  std::snprintf(datarep, MPI_MAX_DATAREP_STRING, "%s", file.datarep().c_str());
  return {};
}

Outcome seek(File& file, MPI_Offset offset, int whence) { return file.seek(offset, whence); }
Outcome get_position(File& file, MPI_Offset* offset) { return file.position(offset); }
Outcome seek_shared(File& file, MPI_Offset offset, int whence) { return file.seek_shared(offset, whence); }
Outcome get_position_shared(File& file, MPI_Offset* offset) { return file.position_shared(offset); }
Outcome set_atomicity(File&, int flag) {
  if (flag == 0) return {};
  return {MPI_ERR_UNSUPPORTED_OPERATION, "there is no atomic mode"};
}
Outcome get_atomicity(File&, int* flag) {
  *flag = 0;
  return {};
}
Outcome sync(File& file) { return file.sync(); }

// ---- accesses ----

void tell(MPI_Status* status, std::uint64_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(bytes));
  PMPI_Status_set_cancelled(status, 0);
}

// A generalized request that is done already.
Outcome make_request(std::uint64_t bytes, MPI_Request* request) {
  const auto query = [](void* extra, MPI_Status* status) {
    tell(status, *static_cast<std::uint64_t*>(extra));
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
  };
  const auto free = [](void* extra) {
    delete static_cast<std::uint64_t*>(extra);
    return MPI_SUCCESS;
  };
  const auto cancel = [](void*, int) { return MPI_SUCCESS; };
  auto moved = std::make_unique<std::uint64_t>(bytes);
  if (PMPI_Grequest_start(query, free, cancel, moved.get(), request) != MPI_SUCCESS)
    return {MPI_ERR_OTHER, "the MPI has no request"};
  moved.release();
  PMPI_Grequest_complete(*request);
  return {};
}

// Calls `call` with the file for itself. The error handler comes afterwards: it may use the file.
template <typename Call>
int locked(File& file, const Call& call) {
  Outcome outcome;
  {
    const auto guard = file.lock();
    outcome = call();
  }
  return raise(file.handle(), outcome);
}

using Move = Outcome (File::*)(Access, MPI_Offset, const Memory&, std::uint64_t*);

int move(File& file, Move how, Access access, MPI_Offset offset, const Memory& memory, MPI_Status* status) {
  return locked(file, [&] {
    std::uint64_t bytes = 0;
    Outcome outcome = (file.*how)(access, offset, memory, &bytes);
    tell(status, bytes);
    return outcome;
  });
}

int start(File& file, Access access, MPI_Offset offset, const Memory& memory, MPI_Request* request) {
  return locked(file, [&] {
    std::uint64_t bytes = 0;
    *request = MPI_REQUEST_NULL;
    Outcome outcome = file.move(access, offset, memory, &bytes);
    return outcome.ok() ? make_request(bytes, request) : outcome;
  });
}

int begin(File& file, Access access, MPI_Offset offset, const Memory& memory) {
  return locked(file, [&] { return file.begin_split(access, offset, memory); });
}

int end(File& file, Access access, MPI_Status* status) {
  return locked(file, [&] {
    std::uint64_t bytes = 0;
    Outcome outcome = file.end_split(access, &bytes);
    tell(status, bytes);
    return outcome;
  });
}

}  // namespace
}  // namespace pif::mpi

// ---- what a program calls ----

namespace ours = pif::mpi;

// One function under two names, each of which goes on to the next library's of the same name.
#define PIF_MPI_DEFINE(prefix, name, parameters, arguments, call) \
  int prefix##name parameters {                                   \
    if (const auto file = ours::files().find(fh)) return call;    \
    return ours::real<int parameters>(#prefix #name) arguments;   \
  }
#define PIF_MPI_BOTH(name, parameters, arguments, call)        \
  PIF_MPI_DEFINE(MPI_File_, name, parameters, arguments, call) \
  PIF_MPI_DEFINE(PMPI_File_, name, parameters, arguments, call)

#define PIF_MPI_BUFFER_kRead void*
#define PIF_MPI_BUFFER_kWrite const void*
#define PIF_MPI_ACCESS(direction, pointer) (ours::Access{ours::Direction::direction, ours::Pointer::pointer})
#define PIF_MPI_MEMORY (ours::Memory{const_cast<void*>(static_cast<const void*>(buffer)), count, datatype})

#define PIF_MPI_MOVING_AT(name, Count, d, p, how)                                                              \
  PIF_MPI_BOTH(name,                                                                                           \
               (MPI_File fh, MPI_Offset offset, PIF_MPI_BUFFER_##d buffer, Count count, MPI_Datatype datatype, \
                MPI_Status * status),                                                                          \
               (fh, offset, buffer, count, datatype, status),                                                  \
               ours::move(*file, &ours::File::how, PIF_MPI_ACCESS(d, p), offset, PIF_MPI_MEMORY, status))
#define PIF_MPI_BLOCKING_AT(name, Count, d, p) PIF_MPI_MOVING_AT(name, Count, d, p, move)
#define PIF_MPI_COLLECTIVE_AT(name, Count, d, p) PIF_MPI_MOVING_AT(name, Count, d, p, move_all)
#define PIF_MPI_STARTED_AT(name, Count, d, p)                                                                  \
  PIF_MPI_BOTH(name,                                                                                           \
               (MPI_File fh, MPI_Offset offset, PIF_MPI_BUFFER_##d buffer, Count count, MPI_Datatype datatype, \
                MPI_Request * request),                                                                        \
               (fh, offset, buffer, count, datatype, request),                                                 \
               ours::start(*file, PIF_MPI_ACCESS(d, p), offset, PIF_MPI_MEMORY, request))
#define PIF_MPI_BEGIN_AT(name, Count, d, p)                                                                           \
  PIF_MPI_BOTH(name, (MPI_File fh, MPI_Offset offset, PIF_MPI_BUFFER_##d buffer, Count count, MPI_Datatype datatype), \
               (fh, offset, buffer, count, datatype),                                                                 \
               ours::begin(*file, PIF_MPI_ACCESS(d, p), offset, PIF_MPI_MEMORY))
#define PIF_MPI_MOVING(name, Count, d, p, how)                                                                    \
  PIF_MPI_BOTH(name,                                                                                              \
               (MPI_File fh, PIF_MPI_BUFFER_##d buffer, Count count, MPI_Datatype datatype, MPI_Status * status), \
               (fh, buffer, count, datatype, status),                                                             \
               ours::move(*file, &ours::File::how, PIF_MPI_ACCESS(d, p), 0, PIF_MPI_MEMORY, status))
#define PIF_MPI_BLOCKING(name, Count, d, p) PIF_MPI_MOVING(name, Count, d, p, move)
#define PIF_MPI_COLLECTIVE(name, Count, d, p) PIF_MPI_MOVING(name, Count, d, p, move_all)
#define PIF_MPI_STARTED(name, Count, d, p)                                                                       \
  PIF_MPI_BOTH(                                                                                                  \
      name, (MPI_File fh, PIF_MPI_BUFFER_##d buffer, Count count, MPI_Datatype datatype, MPI_Request * request), \
      (fh, buffer, count, datatype, request), ours::start(*file, PIF_MPI_ACCESS(d, p), 0, PIF_MPI_MEMORY, request))
#define PIF_MPI_BEGIN(name, Count, d, p)                                                           \
  PIF_MPI_BOTH(name, (MPI_File fh, PIF_MPI_BUFFER_##d buffer, Count count, MPI_Datatype datatype), \
               (fh, buffer, count, datatype), ours::begin(*file, PIF_MPI_ACCESS(d, p), 0, PIF_MPI_MEMORY))
#define PIF_MPI_END(name, Count, d, p)                                                                    \
  PIF_MPI_BOTH(name, (MPI_File fh, PIF_MPI_BUFFER_##d buffer, MPI_Status * status), (fh, buffer, status), \
               ours::end(*file, PIF_MPI_ACCESS(d, p), status))

#define PIF_MPI_INT_FORM(name, form, d, p) PIF_MPI_##form(name, int, d, p)

// An end has no count, and so no second form.
#define PIF_MPI_LARGE_BLOCKING_AT PIF_MPI_BLOCKING_AT
#define PIF_MPI_LARGE_COLLECTIVE_AT PIF_MPI_COLLECTIVE_AT
#define PIF_MPI_LARGE_STARTED_AT PIF_MPI_STARTED_AT
#define PIF_MPI_LARGE_BEGIN_AT PIF_MPI_BEGIN_AT
#define PIF_MPI_LARGE_BLOCKING PIF_MPI_BLOCKING
#define PIF_MPI_LARGE_COLLECTIVE PIF_MPI_COLLECTIVE
#define PIF_MPI_LARGE_STARTED PIF_MPI_STARTED
#define PIF_MPI_LARGE_BEGIN PIF_MPI_BEGIN
#define PIF_MPI_LARGE_END(name, Count, d, p)
#define PIF_MPI_COUNT_FORM(name, form, d, p) PIF_MPI_LARGE_##form(name##_c, MPI_Count, d, p)

#define PIF_MPI_MORE(...) __VA_OPT__(, ) __VA_ARGS__
#define PIF_MPI_OTHER(name, parameters, arguments)                                       \
  PIF_MPI_BOTH(name, (MPI_File fh PIF_MPI_MORE parameters), (fh PIF_MPI_MORE arguments), \
               ours::locked(*file, [&] { return ours::name(*file PIF_MPI_MORE arguments); }))

// A name decides, and a handle that ends.
#define PIF_MPI_OPENING(prefix)                                                                                      \
  int prefix##open(MPI_Comm comm, const char* name, int amode, MPI_Info info, MPI_File* fh) {                        \
    if (ours::is_ours(name)) return ours::open_ours(comm, name, amode, info, fh);                                    \
    return ours::real<int(MPI_Comm, const char*, int, MPI_Info, MPI_File*)>(#prefix "open")(comm, name, amode, info, \
                                                                                            fh);                     \
  }                                                                                                                  \
  int prefix##close(MPI_File* fh) {                                                                                  \
    const auto file = fh == nullptr ? nullptr : ours::files().find(*fh);                                             \
    return file != nullptr ? ours::close_ours(*file, fh) : ours::real<int(MPI_File*)>(#prefix "close")(fh);          \
  }                                                                                                                  \
  int prefix##delete (const char* name, MPI_Info info) {                                                             \
    if (ours::is_ours(name)) return ours::delete_ours(name);                                                         \
    return ours::real<int(const char*, MPI_Info)>(#prefix "delete")(name, info);                                     \
  }

#pragma GCC visibility push(default)
extern "C" {
PIF_MPI_ACCESSES(PIF_MPI_INT_FORM)
#if PIF_MPI_LARGE_COUNTS
PIF_MPI_ACCESSES(PIF_MPI_COUNT_FORM)
#endif
PIF_MPI_OTHERS(PIF_MPI_OTHER)
PIF_MPI_OPENING(MPI_File_)
PIF_MPI_OPENING(PMPI_File_)
}
#pragma GCC visibility pop
