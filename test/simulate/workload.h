// What a client of a simulated history does: small operations on few files, each told to the oracle.
#pragma once

#include <string>
#include <vector>

#include "simulate/teller.h"

namespace pif::simulate {

class Workload : public Teller {
 public:
  using Teller::Teller;

  // Some operations of the dice's choice.
  void run(unsigned operations);

  // ---- single operations; false: it failed ----
  bool put(std::size_t path, bool may_abort = true);
  bool put_as(std::size_t path, const Format& format, std::uint32_t records);
  bool append(std::size_t path);
  bool overwrite(std::size_t path);
  bool read(std::size_t path, bool all);
  // All of a file that has a name which no client gave it.
  bool read_found(const std::string& path, std::uint64_t id);
  bool copy(std::size_t path);

 private:
  void one();
  Status fill(File& file, std::uint32_t records);
  Status read_range(File& file, std::uint64_t first, std::uint64_t count);
  Status read_fixed(File& file, std::uint64_t first, std::uint64_t count);
  Status read_variable(File& file, std::uint64_t first, std::uint64_t count);
  Status read_some(File& file, bool all);
  Result<std::uint64_t> length(File& file);
  Status overwrite_some(File& file, std::uint64_t first, std::uint32_t count);
  Result<RecordNumber> append_some(File& file, std::uint64_t write, std::uint32_t count);
  bool publish(File& file, std::size_t path, std::uint32_t records, bool exclusive);

  unsigned copies_ = 0;
};

}  // namespace pif::simulate
