// A file of the file system that an MPI program has open. The program's handle is the MPI's own, of /dev/null on the
// same communicator, which keeps the group, the view as it was asked for, and the error handler.
//
// A new file is created by rank 0 and shared; all ranks are members. How long it is, a rank knows of itself, and of the
// others as of the last call that tells (open, sync, set_size, preallocate): that is all that MPI asks for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "datatype.h"
#include "outcome.h"

namespace pif::mpi {

// The path in "pif:/a/b"; nothing: the name is of another file system.
std::optional<std::string> path_in(const char* name);

enum class Pointer : std::uint8_t { kExplicit, kOwn, kShared, kOrdered };
struct Access {
  Pointer pointer;
  bool is_write;
};

class OpenFile {
 public:
  // Collective. The outcome is that of all ranks, whose files are closed if it is an error of one.
  static Outcome open(MPI_Comm comm, const std::string& path, int amode, MPI_Info info,
                      std::unique_ptr<OpenFile>& opened);
  static Outcome remove(const std::string& path);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  // Collective. A new file is committed when all ranks are done with it, durable and visible then, or else given up.
  // Nothing else follows. The outcome is that of all ranks.
  Outcome close();

  int amode() const { return amode_; }

  // ---- views and pointers, in etypes ----
  Outcome check_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* representation);
  // Collective. The view was checked, and the MPI has it, too. Both pointers are 0 then.
  Outcome set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype);
  Outcome seek(MPI_Offset offset, int whence);
  Outcome position(MPI_Offset& offset);
  Outcome seek_shared(MPI_Offset offset, int whence);  // collective
  Outcome position_shared(MPI_Offset& offset);

  // ---- sizes ----
  Outcome size(MPI_Offset& bytes);
  Outcome set_size(MPI_Offset bytes);     // collective
  Outcome preallocate(MPI_Offset bytes);  // collective
  Outcome sync();                         // collective

  // ---- data ----
  // Moves `count` items at `memory`. moved: bytes; fewer only where a read meets the end of the file. `offset` is that
  // of an access with an explicit one. One with Pointer::kOrdered is collective.
  Outcome move(const Access& access, MPI_Offset offset, void* memory, std::int64_t count, MPI_Datatype type,
               std::uint64_t& moved);
  // Between the begin and the end of a collective access: one at a time.
  Outcome begin_split(bool is_write, std::uint64_t moved);
  Outcome end_split(bool is_write, std::uint64_t& moved);
  Outcome check_no_split() const;

  // What is in force, as hints.
  MPI_Info hints() const;

 private:
  struct Plan;  // what rank 0 tells the others when it opens the file
  OpenFile() = default;

  void open_first(Plan& plan, const std::string& path, MPI_Info info);
  Outcome open_other(const Plan& plan, const std::string& path);
  Outcome agree(const Outcome& own) const;
  void learn_shape();
  bool is_sequential() const { return (amode_ & MPI_MODE_SEQUENTIAL) != 0; }
  Outcome check_access(const Access& access, MPI_Offset offset, std::int64_t count) const;
  Outcome take_offset(Pointer pointer, std::int64_t etypes, MPI_Offset& offset);
  Outcome take_ordered(std::int64_t etypes, MPI_Offset& offset);
  Outcome add_to_shared(std::int64_t etypes, std::int64_t& before);
  Outcome set_shared(MPI_Offset offset);
  Outcome end_of_view(MPI_Offset& etypes);
  Outcome target_of(MPI_Offset offset, int whence, MPI_Offset position, MPI_Offset& target);
  Outcome transfer(bool is_write, std::uint64_t at, std::byte* memory, const Datatype& type, std::int64_t count,
                   std::uint64_t& moved);
  Outcome clip(std::uint64_t at, std::uint64_t& bytes);
  Outcome resize_new(std::uint64_t bytes);
  Outcome resize_committed(std::uint64_t bytes);
  Outcome agree_end();
  Outcome own_end(std::uint64_t& bytes);
  void report() const;

  MPI_Comm comm_ = MPI_COMM_NULL;  // a copy: nobody else's messages are on it
  int rank_ = 0, ranks_ = 0;
  std::string path_;
  int amode_ = 0;
  pif_file* file_ = nullptr;
  bool is_new_ = false;
  std::uint64_t counter_ = 0;  // the shared pointer, at the server
  std::uint32_t record_length_ = 0, width_ = 0;

  std::uint64_t others_end_ = 0;  // of a new file, as all ranks have told last

  std::int64_t displacement_ = 0;
  std::uint64_t etype_bytes_ = 1;
  std::shared_ptr<const Datatype> filetype_;
  std::mutex lock_;            // guards own_
  MPI_Offset own_ = 0;         // pointer
  std::optional<bool> split_;  // under way; whether it writes
  std::uint64_t split_moved_ = 0;

  bool reports_ = false;
  std::uint64_t calls_ = 0, bytes_read_ = 0, bytes_written_ = 0;
  std::chrono::steady_clock::duration time_{};
};

}  // namespace pif::mpi
