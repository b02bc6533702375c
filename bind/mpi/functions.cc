// MPI_File_* as a program calls it. A file that this library has opened goes on to OpenFile, every other one to the
// MPI. Each is defined as PMPI_File_*, too: Open MPI's Fortran calls that.
//
// Functions that are the MPI's own for all files have no definition here: get_group, get_view, get_byte_offset,
// get_type_extent, those of error handlers, and those that convert handles.
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "open_file.h"
#include "real.h"

namespace {

using pif::mpi::Access;
using pif::mpi::finish;
using pif::mpi::OpenFile;
using pif::mpi::Outcome;
using pif::mpi::Pointer;

class Files {
 public:
  // The file of that handle of the MPI; null: it is not this library's.
  OpenFile* find(MPI_File handle) {
    const std::shared_lock held(lock_);
    const auto found = files_.find(handle);
    return found == files_.end() ? nullptr : found->second.get();
  }
  void add(MPI_File handle, std::unique_ptr<OpenFile> file) {
    const std::unique_lock held(lock_);
    files_[handle] = std::move(file);
  }
  std::unique_ptr<OpenFile> take(MPI_File handle) {
    const std::unique_lock held(lock_);
    auto taken = files_.extract(handle);
    return taken.empty() ? nullptr : std::move(taken.mapped());
  }

 private:
  std::shared_mutex lock_;
  std::unordered_map<MPI_File, std::unique_ptr<OpenFile>> files_;
};

Files& files() {
  static auto* const all = new Files();  // never destroyed: files may be closed while the program ends
  return *all;
}

void set_status(MPI_Status* status, std::uint64_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(bytes));
  PMPI_Status_set_cancelled(status, 0);
}

// A buffer that is written to the file is only read.
void* memory_of(const void* buffer) { return const_cast<void*>(buffer); }

int blocking(MPI_File handle, OpenFile& file, const Access& access, MPI_Offset offset, void* memory, std::int64_t count,
             MPI_Datatype type, MPI_Status* status) {
  std::uint64_t moved = 0;
  const Outcome outcome = file.move(access, offset, memory, count, type, moved);
  set_status(status, moved);
  return finish(handle, outcome);
}

// ---- requests ------------------------------------------------------------------------------------------------------

int query(void* moved, MPI_Status* status) {
  set_status(status, *static_cast<std::uint64_t*>(moved));
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int release(void* moved) {
  delete static_cast<std::uint64_t*>(moved);
  return MPI_SUCCESS;
}
int cancel(void*, int) { return MPI_SUCCESS; }  // it is complete

// The access is complete when the request begins, which MPI allows.
int started(MPI_File handle, OpenFile& file, const Access& access, MPI_Offset offset, void* memory, std::int64_t count,
            MPI_Datatype type, MPI_Request* request) {
  std::uint64_t moved = 0;
  const Outcome outcome = file.move(access, offset, memory, count, type, moved);
  if (!outcome) return finish(handle, outcome);
  const int code = PMPI_Grequest_start(query, release, cancel, new std::uint64_t(moved), request);
  return code == MPI_SUCCESS ? PMPI_Grequest_complete(*request) : code;
}

int begun(MPI_File handle, OpenFile& file, const Access& access, MPI_Offset offset, void* memory, std::int64_t count,
          MPI_Datatype type) {
  Outcome outcome = file.check_no_split();
  std::uint64_t moved = 0;
  if (outcome) outcome = file.move(access, offset, memory, count, type, moved);
  if (outcome) outcome = file.begin_split(access.is_write, moved);
  return finish(handle, outcome);
}

int ended(MPI_File handle, OpenFile& file, bool is_write, MPI_Status* status) {
  std::uint64_t moved = 0;
  const Outcome outcome = file.end_split(is_write, moved);
  if (outcome) set_status(status, moved);
  return finish(handle, outcome);
}

}  // namespace

// ---- definitions ---------------------------------------------------------------------------------------------------

// MPI_File_NAME, and PMPI_File_NAME for the same. CALL is what is done for `file`, one of this library's; else the MPI
// gets the arguments.
#define PIF_DEFINE(NAME, PARAMETERS, ARGUMENTS, CALL)     \
  extern "C" int MPI_File_##NAME PARAMETERS {             \
    OpenFile* const file = files().find(fh);              \
    if (file == nullptr) return PIF_REAL(NAME) ARGUMENTS; \
    return CALL;                                          \
  }                                                       \
  extern "C" int PMPI_File_##NAME PARAMETERS __attribute__((alias("MPI_File_" #NAME)));

#define PIF_BLOCKING_AT(NAME, BUFFER, COUNT, WRITES)                                                              \
  PIF_DEFINE(NAME, (MPI_File fh, MPI_Offset at, BUFFER buf, COUNT count, MPI_Datatype type, MPI_Status * status), \
             (fh, at, buf, count, type, status),                                                                  \
             blocking(fh, *file, {Pointer::kExplicit, WRITES}, at, memory_of(buf), count, type, status))
#define PIF_BLOCKING(NAME, BUFFER, COUNT, POINTER, WRITES)                                         \
  PIF_DEFINE(NAME, (MPI_File fh, BUFFER buf, COUNT count, MPI_Datatype type, MPI_Status * status), \
             (fh, buf, count, type, status),                                                       \
             blocking(fh, *file, {Pointer::POINTER, WRITES}, 0, memory_of(buf), count, type, status))
#define PIF_STARTED_AT(NAME, BUFFER, COUNT, WRITES)                                                                 \
  PIF_DEFINE(NAME, (MPI_File fh, MPI_Offset at, BUFFER buf, COUNT count, MPI_Datatype type, MPI_Request * request), \
             (fh, at, buf, count, type, request),                                                                   \
             started(fh, *file, {Pointer::kExplicit, WRITES}, at, memory_of(buf), count, type, request))
#define PIF_STARTED(NAME, BUFFER, COUNT, POINTER, WRITES)                                            \
  PIF_DEFINE(NAME, (MPI_File fh, BUFFER buf, COUNT count, MPI_Datatype type, MPI_Request * request), \
             (fh, buf, count, type, request),                                                        \
             started(fh, *file, {Pointer::POINTER, WRITES}, 0, memory_of(buf), count, type, request))
#define PIF_BEGUN_AT(NAME, BUFFER, COUNT, WRITES)                                            \
  PIF_DEFINE(NAME, (MPI_File fh, MPI_Offset at, BUFFER buf, COUNT count, MPI_Datatype type), \
             (fh, at, buf, count, type),                                                     \
             begun(fh, *file, {Pointer::kExplicit, WRITES}, at, memory_of(buf), count, type))
#define PIF_BEGUN(NAME, BUFFER, COUNT, POINTER, WRITES)                                               \
  PIF_DEFINE(NAME, (MPI_File fh, BUFFER buf, COUNT count, MPI_Datatype type), (fh, buf, count, type), \
             begun(fh, *file, {Pointer::POINTER, WRITES}, 0, memory_of(buf), count, type))
#define PIF_ENDED(NAME, BUFFER, WRITES)                                               \
  PIF_DEFINE(NAME, (MPI_File fh, BUFFER buf, MPI_Status * status), (fh, buf, status), \
             (static_cast<void>(buf), ended(fh, *file, WRITES, status)))

// With both kinds of counts, where the MPI has both.
#if PIF_MPI_HAS_LARGE_COUNTS
#define PIF_COUNTS(DEFINE, NAME, BUFFER, ...) \
  DEFINE(NAME, BUFFER, int, __VA_ARGS__)      \
  DEFINE(NAME##_c, BUFFER, MPI_Count, __VA_ARGS__)
#else
#define PIF_COUNTS(DEFINE, NAME, BUFFER, ...) DEFINE(NAME, BUFFER, int, __VA_ARGS__)
#endif

PIF_COUNTS(PIF_BLOCKING_AT, read_at, void*, false)
PIF_COUNTS(PIF_BLOCKING_AT, read_at_all, void*, false)
PIF_COUNTS(PIF_BLOCKING_AT, write_at, const void*, true)
PIF_COUNTS(PIF_BLOCKING_AT, write_at_all, const void*, true)
PIF_COUNTS(PIF_STARTED_AT, iread_at, void*, false)
PIF_COUNTS(PIF_STARTED_AT, iread_at_all, void*, false)
PIF_COUNTS(PIF_STARTED_AT, iwrite_at, const void*, true)
PIF_COUNTS(PIF_STARTED_AT, iwrite_at_all, const void*, true)
PIF_COUNTS(PIF_BEGUN_AT, read_at_all_begin, void*, false)
PIF_COUNTS(PIF_BEGUN_AT, write_at_all_begin, const void*, true)
PIF_COUNTS(PIF_BLOCKING, read, void*, kOwn, false)
PIF_COUNTS(PIF_BLOCKING, read_all, void*, kOwn, false)
PIF_COUNTS(PIF_BLOCKING, write, const void*, kOwn, true)
PIF_COUNTS(PIF_BLOCKING, write_all, const void*, kOwn, true)
PIF_COUNTS(PIF_BLOCKING, read_shared, void*, kShared, false)
PIF_COUNTS(PIF_BLOCKING, write_shared, const void*, kShared, true)
PIF_COUNTS(PIF_BLOCKING, read_ordered, void*, kOrdered, false)
PIF_COUNTS(PIF_BLOCKING, write_ordered, const void*, kOrdered, true)
PIF_COUNTS(PIF_STARTED, iread, void*, kOwn, false)
PIF_COUNTS(PIF_STARTED, iread_all, void*, kOwn, false)
PIF_COUNTS(PIF_STARTED, iwrite, const void*, kOwn, true)
PIF_COUNTS(PIF_STARTED, iwrite_all, const void*, kOwn, true)
PIF_COUNTS(PIF_STARTED, iread_shared, void*, kShared, false)
PIF_COUNTS(PIF_STARTED, iwrite_shared, const void*, kShared, true)
PIF_COUNTS(PIF_BEGUN, read_all_begin, void*, kOwn, false)
PIF_COUNTS(PIF_BEGUN, write_all_begin, const void*, kOwn, true)
PIF_COUNTS(PIF_BEGUN, read_ordered_begin, void*, kOrdered, false)
PIF_COUNTS(PIF_BEGUN, write_ordered_begin, const void*, kOrdered, true)
PIF_ENDED(read_at_all_end, void*, false)
PIF_ENDED(write_at_all_end, const void*, true)
PIF_ENDED(read_all_end, void*, false)
PIF_ENDED(write_all_end, const void*, true)
PIF_ENDED(read_ordered_end, void*, false)
PIF_ENDED(write_ordered_end, const void*, true)

PIF_DEFINE(seek, (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence),
           finish(fh, file->seek(offset, whence)))
PIF_DEFINE(get_position, (MPI_File fh, MPI_Offset* offset), (fh, offset), finish(fh, file->position(*offset)))
PIF_DEFINE(seek_shared, (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence),
           finish(fh, file->seek_shared(offset, whence)))
PIF_DEFINE(get_position_shared, (MPI_File fh, MPI_Offset* offset), (fh, offset),
           finish(fh, file->position_shared(*offset)))
PIF_DEFINE(get_size, (MPI_File fh, MPI_Offset* size), (fh, size), finish(fh, file->size(*size)))
PIF_DEFINE(set_size, (MPI_File fh, MPI_Offset size), (fh, size), finish(fh, file->set_size(size)))
PIF_DEFINE(preallocate, (MPI_File fh, MPI_Offset size), (fh, size), finish(fh, file->preallocate(size)))
PIF_DEFINE(sync, (MPI_File fh), (fh), finish(fh, file->sync()))
PIF_DEFINE(get_amode, (MPI_File fh, int* amode), (fh, amode), (*amode = file->amode(), MPI_SUCCESS))
PIF_DEFINE(get_info, (MPI_File fh, MPI_Info* info), (fh, info), (*info = file->hints(), MPI_SUCCESS))
PIF_DEFINE(set_info, (MPI_File fh, MPI_Info info), (fh, info), MPI_SUCCESS)
PIF_DEFINE(get_atomicity, (MPI_File fh, int* flag), (fh, flag), (*flag = 0, MPI_SUCCESS))
PIF_DEFINE(set_atomicity, (MPI_File fh, int flag), (fh, flag),
           finish(fh, flag == 0 ? Outcome() : Outcome{MPI_ERR_UNSUPPORTED_OPERATION, "pif: there is no atomic mode"}))

namespace {

// The MPI keeps the view, for get_view and get_byte_offset.
int set_view(MPI_File handle, OpenFile& file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
             const char* representation, MPI_Info info) {
  if (const Outcome outcome = file.check_view(displacement, etype, filetype, representation); !outcome)
    return finish(handle, outcome);
  if (const int code = PIF_REAL(set_view)(handle, displacement, etype, filetype, "native", info); code != MPI_SUCCESS)
    return code;
  return finish(handle, file.set_view(displacement, etype, filetype));
}

}  // namespace

PIF_DEFINE(set_view,
           (MPI_File fh, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
            MPI_Info info),
           (fh, displacement, etype, filetype, datarep, info),
           set_view(fh, *file, displacement, etype, filetype, datarep, info))

extern "C" int MPI_File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  const auto path = pif::mpi::path_in(filename);
  if (!path) return PIF_REAL(open)(comm, filename, amode, info, fh);
  std::unique_ptr<OpenFile> opened;
  if (const Outcome outcome = OpenFile::open(comm, *path, amode, info, opened); !outcome)
    return finish(MPI_FILE_NULL, outcome);
  const int code = PIF_REAL(open)(comm, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, fh);
  if (code == MPI_SUCCESS) files().add(*fh, std::move(opened));
  return code;
}
extern "C" int PMPI_File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh)
    __attribute__((alias("MPI_File_open")));

extern "C" int MPI_File_close(MPI_File* fh) {
  if (files().find(*fh) == nullptr) return PIF_REAL(close)(fh);
  const std::unique_ptr<OpenFile> file = files().take(*fh);
  const int code = finish(*fh, file->close());
  const int closed = PIF_REAL(close)(fh);
  return code == MPI_SUCCESS ? closed : code;
}
extern "C" int PMPI_File_close(MPI_File* fh) __attribute__((alias("MPI_File_close")));

extern "C" int MPI_File_delete(const char* filename, MPI_Info info) {
  const auto path = pif::mpi::path_in(filename);
  if (!path) return PIF_REAL(delete)(filename, info);
  return finish(MPI_FILE_NULL, OpenFile::remove(*path));
}
extern "C" int PMPI_File_delete(const char* filename, MPI_Info info) __attribute__((alias("MPI_File_delete")));
