// What a client does with files that have parity: it makes them, appends records and bytes to them, reads, renames and
// removes them, while one of their LFSs may be away. All that it sees is told to the oracles.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/contents.h"
#include "simulate/teller.h"

namespace pif::simulate {

class BevyWorkload : public Teller {
 public:
  using Teller::Teller;

  // At least so many operations of the dice's choice, and more until no LFS is away any more, nor will be.
  void run(unsigned operations);

  // ---- single operations; false: it failed ----
  bool put(std::size_t path, bool may_abort = true);
  bool append(std::size_t path);
  bool read(std::size_t path);
  bool read_one(std::size_t path);

 private:
  struct Made {
    Contents::Bytes bytes;
    std::vector<std::uint32_t> lengths;  // of lines
  };
  void one();
  CreateOptions some_file();
  Made some_bytes(const Format& format, std::uint64_t records, bool may_be_short);
  std::uint64_t some_count();
  Status fill(File& file, const Made& made);
  Status put_once(std::size_t path, const CreateOptions& options, const Made& made);
  Status append_once(File& file);
  Result<FileLength> length(File& file);
  Status read_all(File& file);
  Status read_single(File& file);
};

}  // namespace pif::simulate
