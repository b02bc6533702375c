// What a client does with files that several write: it begins them, joins those that others have begun, writes and
// reads bytes anywhere in them, says that it is done, drops who has gone, and commits; and it reads, renames and
// removes those that are there. All that it sees is told to the oracles.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulate/teller.h"
#include "simulate/together.h"

namespace pif::simulate {

class TogetherWorkload : public Teller {
 public:
  using Teller::Teller;

  // At least so many operations of the dice's choice, more until no LFS is away, and the end of what it takes part in.
  void run(unsigned operations);

  // ---- single operations; false: it failed ----
  // A file that others are invited to, or not; from then on it takes part in it.
  bool begin_file(std::size_t path, bool shares);
  // Takes part in a file that somebody else has begun: this one, or any; false if there is none, too.
  bool join(std::uint64_t wanted = 0);
  // In the file that it takes part in.
  bool write();
  bool read_unfinished();
  bool done();
  bool commit();
  bool read(std::size_t path);

  bool takes_part() const { return file_.has_value(); }

 private:
  using Bytes = std::vector<std::byte>;
  using Range = Together::Range;

  void one();
  void one_alone();
  void one_in_file();
  void finish();
  Together& together() { return *shared_.together; }
  // Ranges of the file, and how they are asked for.
  struct Places {
    enum class How : std::uint8_t { kRange, kRecords, kPieces };
    How how = How::kRange;
    std::vector<Range> ranges;
    File::Pieces pieces;  // kPieces
    std::uint64_t bytes = 0;
  };
  Places some_places(std::uint64_t reach, std::uint64_t most);
  Places some_pieces(std::uint64_t reach, std::uint64_t most);
  Status write_to(const Places& places, std::span<const std::byte> bytes);
  Result<std::uint64_t> read_from(File& file, const Places& places, std::span<std::byte> out);
  Status read_committed(File& file);
  void drop_gone();
  void leave() { file_.reset(); }
  // The same as failed(); and what cannot be finished any more is given up.
  bool failed_in_file(const std::string& what, const Error& error);

  std::optional<File> file_;  // that it takes part in
  std::size_t path_ = 0;      // of that
  std::uint64_t reach_ = 0;
  bool is_shared_ = false;
  bool is_done_ = false;
};

}  // namespace pif::simulate
