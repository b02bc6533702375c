#include "operations/piece_io.h"

#include <algorithm>

#include "file/file_state.h"
#include "file/overwriter.h"
#include "file/piece_reader.h"
#include "file/piece_writer.h"
#include "pieces/piece_source.h"
#include "pif/base/assert.h"
#include "pif/pattern/zip.h"

namespace pif::client {

namespace {

// Variable records, and what a file being created has gathered: one piece after another.
Result<std::uint64_t> read_one_by_one(FileState& file, patterns::Zip& zip, std::span<std::byte> out) {
  std::uint64_t done = 0;
  while (const auto pair = zip.next()) {
    const auto at = out.subspan(static_cast<std::size_t>(pair->memory_offset), pair->size);
    PIF_TRY_VALUE(const std::size_t n, file.pread(at, static_cast<std::uint64_t>(pair->file_offset)));
    PIF_ASSERT(n <= pair->size, n, pair->size);
    done += n;
    if (n < pair->size) break;
  }
  return done;
}

// ---- writing -------------------------------------------------------------------------------------------------------

// Of variable records, in a committed file: one piece after another.
Status write_one_by_one(FileState& file, patterns::Zip& zip, std::span<const std::byte> in) {
  while (const auto pair = zip.next()) {
    const auto from = in.subspan(static_cast<std::size_t>(pair->memory_offset), pair->size);
    PIF_TRY(file.pwrite(from, static_cast<std::uint64_t>(pair->file_offset)));
  }
  return {};
}

// The end of the piece that reaches furthest. Bounds say more where a request is for a part of its pattern.
Result<std::uint64_t> end_of(const Walks& walks, const File::Pieces& wanted) {
  const std::uint64_t skipped = walks.file->is_rising() ? walks.bytes - 1 : 0;
  PIF_TRY_VALUE(auto walker,
                patterns::Walker::make(*walks.file, wanted.displacement, wanted.skip + skipped, walks.bytes - skipped));
  std::uint64_t end = 0;
  while (const auto piece = walker.next()) end = std::max(end, static_cast<std::uint64_t>(piece->offset) + piece->size);
  return end;
}

// Makes a committed file so long that no piece ends behind it.
Status reach_end(FileState& file, const Walks& walks, const File::Pieces& wanted) {
  PIF_TRY_VALUE(const auto bounds, walks.file->bounds(wanted.displacement, wanted.skip, walks.bytes));
  auto inside = file.check_piece_end(static_cast<std::uint64_t>(bounds.highest));
  if (inside || file.creating()) return inside;
  PIF_TRY_VALUE(const std::uint64_t end, end_of(walks, wanted));
  if (!file.parts.format.is_fixed()) return file.check_piece_end(end);
  return file.lengthen(end);
}

}  // namespace

Result<std::uint64_t> read_pieces(FileState& file, const File::Pieces& wanted, std::span<std::byte> out) {
  PIF_TRY(file.check_usable());
  PIF_TRY(file.keep_rights());
  PIF_TRY_VALUE(const auto reader, make_piece_reader(file, wanted, out, true));
  if (reader) {
    PIF_TRY(reader->run());
    return reader->result();
  }
  PIF_TRY_VALUE(const Walks walks, Walks::make(wanted, out.size(), true));
  PIF_TRY_VALUE(patterns::Zip zip, walks.zip(wanted));
  return read_one_by_one(file, zip, out);
}

Status write_pieces(FileState& file, const File::Pieces& wanted, std::span<const std::byte> in) {
  PIF_TRY(file.check_usable());
  PIF_TRY(file.keep_rights());
  PIF_TRY(file.check_may_write());
  PIF_TRY(file.check_may_overwrite());
  PIF_TRY_VALUE(const auto writer, make_piece_writer(file, wanted, in, true));
  if (writer) return writer->run();
  PIF_TRY_VALUE(const Walks walks, Walks::make(wanted, in.size(), true));
  if (walks.bytes == 0) return {};
  PIF_TRY(reach_end(file, walks, wanted));
  PIF_TRY_VALUE(patterns::Zip zip, walks.zip(wanted));
  if (file.parts.format.is_fixed()) return PieceOverwriter(file).write(zip, in);
  return write_one_by_one(file, zip, in);
}

}  // namespace pif::client
