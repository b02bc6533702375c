// A file being created whose bytes come in pieces, in any order, and perhaps from several members: its components have
// no sums before they are sealed (pif/component/extents.h). Fixed records. Every member can read back what was
// written.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "pieces/piece_split.h"
#include "pif/access/requests.h"
#include "pif/access/sealing.h"
#include "pif/component/extents.h"

namespace pif::client {

class FileState;

class ScatteredWriter {
 public:
  explicit ScatteredWriter(FileState& file) : file_(file) {}

  // Whether the file is written so. begin(): from now on; what was written before is in the components then.
  // kUnsupported: variable records. kUnavailable: an LFS of it is lost.
  bool is_on() const { return is_on_; }
  // Whether begin() would succeed, but for the disk and the network.
  bool is_possible() const;
  [[nodiscard]] Status begin();

  // Has returned when it is written; the file is that much longer at least. Pieces: PieceWriter.
  [[nodiscard]] Status write(std::uint64_t offset, std::span<const std::byte> in);
  // Zeros where nobody has written, as far as anybody may write. Pieces: PieceReader.
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out);
  // How many of these bytes there are: of a file that several write all, else as far as it was written.
  [[nodiscard]] Result<std::size_t> readable(std::uint64_t offset, std::size_t bytes) const;
  // Makes all that was written durable at the LFSs, though nobody else sees it.
  [[nodiscard]] Status sync();

  // Writeback of what is written into that component here. It is on.
  component::WritebackBehind& writeback(LfsIndex lfs) { return writebacks_[lfs]; }

  // The LFSs have room for the file's first `bytes` bytes.
  [[nodiscard]] Status preallocate(std::uint64_t bytes);

  // The file, which nobody else writes, ends at this byte. Bytes that are cut off stay in the components until they are
  // sealed.
  [[nodiscard]] Status resize(std::uint64_t bytes);
  // In a file that several write, bytes that are cut off are zero at once, as far as they were written here.
  [[nodiscard]] Status resize_shared(std::uint64_t bytes);
  // Makes all bytes zero that were cut off, before others write there.
  [[nodiscard]] Status clear_cut();
  // Before something is written from this byte on: if that is past the end, there are zeros in front of it, whatever
  // was cut off.
  [[nodiscard]] Status clear_gap(std::uint64_t offset);

  // No more is written here: the components are closed. They can be read, by message.
  void close();
  // All components of a file of that length are sealed. kExists: they are sealed already, as of another length.
  [[nodiscard]] Status seal(const FileLength& file_length);

 private:
  // Writes zeros there.
  [[nodiscard]] Status clear(std::uint64_t begin, std::uint64_t end);
  // Bytes in that LFS's .dat of a file of that length.
  std::uint64_t component_bytes(LfsIndex lfs, const FileLength& file_length) const;
  FileState& file_;
  bool is_on_ = false;
  std::uint64_t cut_end_ = 0;                          // from the file's end to here are bytes that were cut off
  std::deque<component::WritebackBehind> writebacks_;  // by LFS
  access::Sealing sealing_;
};

}  // namespace pif::client
