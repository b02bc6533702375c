// A file of PIF that a job has open by MPI_File_open. What each call means is in docs/MPIIO.md.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "datatype.h"
#include "outcome.h"
#include "pif/client/pif.h"
#include "team.h"

namespace pif::mpi {

// An access reads or writes, at a place that one of four pointers gives.
enum class Direction : std::uint8_t { kRead, kWrite };
enum class Pointer : std::uint8_t { kAt, kOwn, kShared, kOrdered };
struct Access {
  Direction direction = Direction::kRead;
  Pointer pointer = Pointer::kAt;

  bool operator==(const Access&) const = default;
};

// The memory of an access.
struct Memory {
  void* address = nullptr;  // of which a write only reads
  MPI_Count count = 0;
  MPI_Datatype type = MPI_BYTE;
};

// One process's part of an open file. Offsets are in etypes of the view unless they are said to be in bytes. Collective
// calls are all members'; the others ask no other process to do anything. One thread at a time: lock() keeps the others
// out.
class File {
 public:
  File(MPI_File handle, std::string path, int amode) : handle_(handle), path_(std::move(path)), amode_(amode) {}

  // Any thread: has the file for itself as long as what it returns lives.
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  // ---- collective ----
  Outcome open(MPI_Comm comm, MPI_Info info);
  // Whatever the outcome, nothing is open afterwards. A new file is durable and visible if it is good.
  Outcome close();
  Outcome sync();
  Outcome set_size(MPI_Offset bytes);
  Outcome preallocate(MPI_Offset bytes);
  // The view is set in the MPI's own handle already. Both pointers are 0 then.
  Outcome set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const std::string& datarep);
  Outcome seek_shared(MPI_Offset offset, int whence);
  // As move(); all get the outcome of the worst.
  Outcome move_all(Access access, MPI_Offset offset, const Memory& memory, std::uint64_t* bytes);

  // ---- one process ----
  Outcome length(std::uint64_t* bytes);
  Outcome seek(MPI_Offset offset, int whence);
  Outcome position(MPI_Offset* offset);
  Outcome position_shared(MPI_Offset* offset);
  // Moves bytes; those that came or went are counted in `bytes`. Collective if it is ordered. `offset` counts if it is
  // Pointer::kAt.
  Outcome move(Access access, MPI_Offset offset, const Memory& memory, std::uint64_t* bytes);
  // A split collective access moves them at its beginning, which is collective; its end tells. MPI_ERR_OTHER: another
  // one is under way, or none like this.
  Outcome begin_split(Access access, MPI_Offset offset, const Memory& memory);
  Outcome end_split(Access access, std::uint64_t* bytes);
  // The hints that are in force; the caller frees them.
  Outcome info(MPI_Info* out);
  // The value of MPI_DISPLACEMENT_CURRENT, in bytes.
  Outcome current_displacement(MPI_Offset* bytes);

  MPI_File handle() const { return handle_; }
  int amode() const { return amode_; }
  const std::string& datarep() const { return datarep_; }

 private:
  struct Creation {  // what a new file is to be; arrays are here for as long as pif_create() needs them
    pif_create_options options{};
    std::vector<std::uint32_t> nodes;
    std::vector<std::string> names, values;
    std::vector<pif_attribute> attributes;
  };
  // Rank 0 sends this to all others: the file that it has opened or created.
  struct First {
    std::int32_t amode = 0;
    std::uint8_t is_done = 0, is_new = 0;
    std::uint32_t token_bytes = 0;
    std::array<char, PIF_TOKEN_BYTES_MAX> token{};
  };
  struct Split {
    bool is_active = false;
    Access access;
    std::uint64_t bytes = 0;
  };
  struct Counts {
    std::uint64_t reads = 0, writes = 0, bytes_read = 0, bytes_written = 0, microseconds = 0;
  };

  bool may_write() const { return (amode_ & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0; }
  bool may_read() const { return (amode_ & (MPI_MODE_RDONLY | MPI_MODE_RDWR)) != 0; }

  // Collective; open.cc.
  Outcome open_or_create(MPI_Info info);
  Outcome join_first(const Outcome& done, First* first);
  Outcome finish_new();
  Outcome begin_anew(std::uint64_t bytes);
  Outcome copy_part(pif_file* from, std::uint64_t bytes);
  Outcome common_length(const Outcome& mine, std::uint64_t* bytes);
  Outcome resize(std::uint64_t now, std::uint64_t bytes);
  Outcome set_length(std::uint64_t bytes);
  void report();
  // One process; open.cc.
  Outcome check_amode() const;
  Outcome open_first(MPI_Info info);
  Outcome open_committed(pif_mode mode);
  Outcome join(const First& first);
  Outcome create(const Creation& creation);
  Creation creation_from(MPI_Info info) const;
  Outcome creation_like(pif_file* file, Creation* out) const;
  Outcome close_one(pif_file** file);

  // One process; access.cc.
  Outcome check_access(Access access, const Memory& memory, const Datatype& type) const;
  Outcome place(Access access, MPI_Offset offset, std::uint64_t bytes, std::uint64_t* skip);
  std::uint64_t end_of(std::uint64_t skip, std::uint64_t bytes) const;
  Outcome read(std::uint64_t skip, const Memory& memory, const DatatypePtr& type, std::uint64_t* bytes);
  Outcome write(std::uint64_t skip, const Memory& memory, const DatatypePtr& type, std::uint64_t bytes);
  Outcome cut_to_length(std::uint64_t skip, std::uint64_t* bytes);
  Outcome pass(Direction direction, std::uint64_t skip, std::uint64_t bytes, const Memory& memory,
               const DatatypePtr& type, std::uint64_t* moved);
  Outcome offset_of_end(MPI_Offset* offset);
  Outcome target(MPI_Offset offset, int whence, const std::function<Outcome(MPI_Offset*)>& now, MPI_Offset* out);

  std::mutex mutex_;
  const MPI_File handle_;
  const std::string path_;
  const int amode_;
  std::string datarep_ = "native";
  Team team_;

  pif_file* file_ = nullptr;
  bool is_new_ = false;  // this job's alone until it is closed: all its processes write it, and nobody else sees it
  bool is_exclusive_ = false;
  Outcome lost_;                   // of the first write to a new file that failed: it cannot be whole
  std::uint64_t length_seen_ = 0;  // it is at least as long

  std::uint64_t etype_bytes_ = 1;
  std::int64_t displacement_ = 0;
  DatatypePtr filetype_ = Datatype::byte();
  std::int64_t position_ = 0;
  Split split_;
  Counts counts_;
};

}  // namespace pif::mpi
