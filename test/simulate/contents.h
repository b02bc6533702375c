// What files hold that only grow, byte by byte: files with parity are made and appended to, and nothing in them ever
// changes. So every byte that was ever read, or acknowledged, is there for good, at its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "pif/base/format.h"
#include "simulate/oracle.h"

namespace pif::simulate {

class Contents {
 public:
  using FileNumber = std::uint64_t;  // FileId
  using Bytes = std::vector<std::byte>;
  using Append = std::size_t;

  // oracle: gets what is wrong, and outlives this.
  explicit Contents(Oracle& oracle) : oracle_(oracle) {}

  // ---- what is done ----
  // A number that no other bytes were made with (stamped_bytes, stamped_lines).
  std::uint64_t next_stamp() { return ++stamps_; }
  // All of the file when it is committed.
  void created(FileNumber file, const Format& format, Bytes bytes, std::uint64_t records);
  // Bytes that may be there from now on, behind all that was there: all of them, once, or none.
  Append begin_append(FileNumber file, Bytes bytes, std::uint64_t records);
  // They are there, from this byte or (delimited records) from this record on.
  void appended(Append append, std::uint64_t first, Time now);

  // ---- what is seen ----
  void saw_length(FileNumber file, const FileLength& file_length, const Span& when);
  // A part of it, from byte `offset` on.
  void saw_bytes(FileNumber file, std::uint64_t offset, std::span<const std::byte> bytes);
  // Delimited records only: this one.
  void saw_line(FileNumber file, std::uint64_t record, std::span<const std::byte> bytes);
  // All of it, by what its length was between.
  void saw_all(FileNumber file, std::span<const std::byte> bytes, const Span& when);

 private:
  struct Piece {
    FileNumber file = 0;
    Bytes bytes;
    std::uint64_t records = 0;           // delimited: that it has
    std::optional<std::uint64_t> first;  // as it was acknowledged
    Time end = kNever;
  };
  struct Known {
    Time at{};
    FileLength least;
  };
  struct File {
    Format format;
    Bytes created;
    std::uint64_t records = 0;  // when it was created
    Bytes image;
    std::vector<bool> is_known;  // by byte of the image
    std::map<std::uint64_t, Bytes> lines;
    std::vector<Append> appends;
    std::vector<Known> lengths;
  };
  static Bytes part(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }
  // What stands at that byte, of those that were not found yet.
  std::optional<Append> find_at(std::span<const std::byte> rest, const std::vector<Append>& left) const;
  void check_place(FileNumber id, const Piece& piece, std::uint64_t offset, std::uint64_t record);
  void check_lines(FileNumber id, const File& file, std::span<const std::byte> bytes);

  Oracle& oracle_;
  std::map<FileNumber, File> files_;
  std::vector<Piece> pieces_;
  std::uint64_t stamps_ = 0;
};

// `size` bytes, which begin with the stamp; at least kStampBytes of them.
Contents::Bytes stamped_bytes(std::uint64_t stamp, std::size_t size);
// Lines with these lengths, their ends included; the first, of at least kStampLine bytes, begins with the stamp.
inline constexpr std::uint32_t kStampLine = 18;
Contents::Bytes stamped_lines(std::uint64_t stamp, std::span<const std::uint32_t> lengths);

}  // namespace pif::simulate
