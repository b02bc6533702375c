#include "file/piece_io.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/piece_split.h"
#include "pif/access/piece_requests.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/pattern/zip.h"
#include "session/pool.h"

namespace pif::client {

namespace {

using component::ConstExtent;
using component::Extent;

// A request is done in turns of so many pieces, or bytes: it may have any number of them, and takes so much memory.
constexpr std::size_t kPiecesAtOnce = 32768;
constexpr std::uint64_t kBytesAtOnce = 32u << 20;
constexpr std::size_t kTurnsAtOnce = 8;  // of overwrites
constexpr std::uint64_t kParallelBytes = 256u << 10;

// Both sides of a request, ready to be walked.
struct Walks {
  patterns::Compiled file;
  patterns::Compiled memory;
  std::uint64_t bytes = 0;

  // kInvalid, kTooLarge: of the patterns; memory that is not there.
  static Result<Walks> make(const File::Pieces& wanted, std::size_t memory_bytes);
  [[nodiscard]] Result<patterns::Zip> zip(const File::Pieces& wanted) const {
    PIF_TRY_VALUE(const auto in_file, patterns::Walker::make(file, wanted.displacement, wanted.skip, bytes));
    PIF_TRY_VALUE(const auto in_memory, patterns::Walker::make(memory, 0, 0, bytes));
    return patterns::Zip(in_file, in_memory);
  }
};

Result<Walks> Walks::make(const File::Pieces& wanted, std::size_t memory_bytes) {
  PIF_TRY_VALUE(auto file, patterns::Compiled::make(wanted.file));
  PIF_TRY_VALUE(auto memory, patterns::Compiled::make(wanted.memory));
  const std::uint64_t bytes = wanted.bytes.value_or(memory.bytes());
  PIF_TRY_VALUE(const auto in_file, file.bounds(wanted.displacement, wanted.skip, bytes));
  PIF_TRY_VALUE(const auto in_memory, memory.bounds(0, 0, bytes));
  if (bytes > 0 && in_file.lowest < 0)
    return fail(Code::kInvalid, fmt::format("a piece would begin at byte {} of the file", in_file.lowest));
  if (bytes > 0 && (in_memory.lowest < 0 || static_cast<std::uint64_t>(in_memory.highest) > memory_bytes))
    return fail(Code::kInvalid, fmt::format("pieces take bytes {} to {} of memory, of which {} were given",
                                            in_memory.lowest, in_memory.highest, memory_bytes));
  return Walks{std::move(file), std::move(memory), bytes};
}

// ---- reading -------------------------------------------------------------------------------------------------------

// One turn's pieces of a committed file.
class TurnReader {
 public:
  TurnReader(FileState& file, PieceSplit<Extent>& pieces) : file_(file), pieces_(pieces) {}

  Status read() {
    std::vector<LfsIndex> lfss;
    for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
      if (pieces_.of[lfs].empty()) continue;
      lfss.push_back(lfs);
      if (!pieces_.is_rising[lfs]) sort_pieces(pieces_.of[lfs]);
    }
    PIF_TRY(file_.reader.open(lfss));
    access::Requests messages(file_.session->links(), file_.grant);
    std::vector<LfsIndex> near;
    for (const LfsIndex lfs : lfss) {
      if (file_.component(lfs).has_reader())
        near.push_back(lfs);
      else
        ask(messages, lfs);
    }
    PIF_TRY(messages.step());
    read_near(messages, near);
    PIF_TRY(file_.run(messages));
    return read_rest();
  }

 private:
  void ask(access::Requests& messages, LfsIndex lfs) {
    access::RefusedPieces refused;
    if (access::can_be_rebuilt(file_.parts))
      refused = [this, lfs](std::span<const Extent> pieces, Error error) -> Status {
        if (!access::can_rebuild(file_.parts, error)) return fail(std::move(error));
        for (const Extent& piece : pieces) rest_.push_back({lfs, piece});
        return {};
      };
    access::read_pieces_by_message(messages, lfs, pieces_.of[lfs], file_.counts.bytes_by_message, std::move(refused));
  }

  // What cannot be read so (it may have met a change half way) is asked for.
  void read_near(access::Requests& messages, std::span<const LfsIndex> near) {
    std::vector<Status> outcome(near.size());
    const auto read_one = [&](std::size_t i) {
      component::ExtentReader reader(file_.component(near[i]).reader());
      outcome[i] = reader.read(pieces_.of[near[i]]);
    };
    if (pieces_.bytes >= kParallelBytes && near.size() > 1) {
      file_.session->pool().run(near.size(), read_one);
    } else {
      for (std::size_t i = 0; i < near.size(); ++i) read_one(i);
    }
    for (std::size_t i = 0; i < near.size(); ++i) {
      if (!outcome[i])
        ask(messages, near[i]);
      else
        for (const Extent& piece : pieces_.of[near[i]]) file_.counts.bytes_by_descriptor += piece.size;
    }
  }

  // Of LFSs that are away: through the records that they are in, which are rebuilt.
  Status read_rest() {
    const std::uint64_t length = file_.parts.format.record_length;
    for (const auto& [lfs, piece] : rest_) {
      Extent left = piece;
      while (left.size > 0) {
        const std::uint64_t within = left.offset % length;
        const std::size_t size = std::min<std::uint64_t>(left.size, length - within);
        const RecordNumber record = file_.parts.layout.record_at({lfs, left.offset / length});
        PIF_TRY(file_.reader.read_within(record, static_cast<std::uint32_t>(within), {left.at, size}));
        left = {left.offset + size, left.size - size, left.at + size};
      }
    }
    return {};
  }

  struct Rest {
    LfsIndex lfs;
    Extent piece;
  };
  FileState& file_;
  PieceSplit<Extent>& pieces_;
  std::vector<Rest> rest_;
};

Status read_turn(FileState& file, PieceSplit<Extent>& pieces) {
  if (pieces.count == 0) return {};
  if (file.scattered.is_on()) return file.scattered.read(pieces);
  return file.in_newest_view([&] { return TurnReader(file, pieces).read(); });
}

// Variable records, and what a file being created has gathered: one piece after another.
Result<std::uint64_t> read_one_by_one(FileState& file, patterns::Zip& zip, std::span<std::byte> out) {
  std::uint64_t done = 0;
  while (const auto pair = zip.next()) {
    const auto at = out.subspan(static_cast<std::size_t>(pair->memory_offset), pair->size);
    PIF_TRY_VALUE(const std::size_t n, file.pread(at, static_cast<std::uint64_t>(pair->file_offset)));
    done += n;
    if (n < pair->size) break;
  }
  return done;
}

// ---- writing -------------------------------------------------------------------------------------------------------

Status write_scattered(FileState& file, patterns::Zip& zip, std::span<const std::byte> in) {
  PieceSplit<ConstExtent> pieces(file.parts.layout, file.parts.format.record_length);
  std::uint64_t end = 0;
  while (zip.left() > 0) {
    pieces.clear();
    while (pieces.count < kPiecesAtOnce && pieces.bytes < kBytesAtOnce) {
      const auto pair = zip.next(kBytesAtOnce);
      if (!pair) break;
      const auto offset = static_cast<std::uint64_t>(pair->file_offset);
      pieces.add(offset, pair->size, in.data() + pair->memory_offset);
      end = std::max(end, offset + pair->size);
    }
    // One turn has arrived before the next: of bytes that both have, the later ones stay.
    PIF_TRY(file.scattered.write(pieces, end));
  }
  return {};
}

// Of variable records, in a committed file: one piece after another.
Status write_one_by_one(FileState& file, patterns::Zip& zip, std::span<const std::byte> in) {
  while (const auto pair = zip.next()) {
    const auto from = in.subspan(static_cast<std::size_t>(pair->memory_offset), pair->size);
    PIF_TRY(file.pwrite(from, static_cast<std::uint64_t>(pair->file_offset)));
  }
  return {};
}

// Into a committed file of fixed records. A turn is answered after a sync of each LFS's log, so several are under way:
// but none that writes between what those before it write, for of bytes that both have the later ones stay.
class PieceOverwriter {
 public:
  explicit PieceOverwriter(FileState& file) : file_(file), requests_(file.session->links(), file.grant) {}

  Status write(patterns::Zip& zip, std::span<const std::byte> in) {
    while (zip.left() > 0) PIF_TRY(write_turn(zip, in));
    return file_.run(requests_);
  }

 private:
  using Turn = PieceSplit<ConstExtent>;

  Status write_turn(patterns::Zip& zip, std::span<const std::byte> in) {
    const std::uint64_t length = file_.parts.format.record_length;
    const auto turn = std::make_shared<Turn>(file_.parts.layout, file_.parts.format.record_length);
    std::uint64_t begin = UINT64_MAX, end = 0;
    const auto add = [&](std::uint64_t bytes_max) {
      const auto pair = zip.next(bytes_max);
      PIF_ASSERT(pair.has_value(), zip.left());
      const auto offset = static_cast<std::uint64_t>(pair->file_offset);
      turn->add(offset, pair->size, in.data() + pair->memory_offset);
      begin = std::min(begin, offset);
      end = std::max(end, offset + pair->size);
      return offset + pair->size;
    };
    while (zip.left() > 0 && turn->count < kPiecesAtOnce && turn->bytes < kBytesAtOnce) {
      const std::uint64_t before = turn->bytes;
      const std::uint64_t at = add(kBytesAtOnce);
      // A long piece is not cut inside a record, which changes whole or not at all.
      const bool is_cut = turn->bytes == before + kBytesAtOnce && at % length > 0;
      if (is_cut && zip.left() > 0) add(length - at % length);
    }
    PIF_TRY(make_way(begin, end));
    send(turn);
    return requests_.step();
  }

  // For bytes [begin, end): few enough turns are under way, and none of them writes there.
  Status make_way(std::uint64_t begin, std::uint64_t end) {
    if (begin < end_ && begin_ < end) {
      PIF_TRY(file_.run(requests_));
      begin_ = begin;
      end_ = end;
    }
    begin_ = std::min(begin_, begin);
    end_ = std::max(end_, end);
    while (count_turns() >= kTurnsAtOnce) PIF_TRY(file_.session->pump(requests_));
    return {};
  }

  void send(const std::shared_ptr<Turn>& turn) {
    for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
      if (turn->of[lfs].empty()) continue;
      if (!turn->is_rising[lfs]) settle_pieces(turn->of[lfs]);
      access::write_pieces_by_message(requests_, lfs, turn->of[lfs], file_.counts.bytes_by_message, turn);
    }
    under_way_.push_back(turn);
  }

  std::size_t count_turns() {
    std::erase_if(under_way_, [](const std::weak_ptr<const Turn>& turn) { return turn.expired(); });
    return under_way_.size();
  }

  FileState& file_;
  std::vector<std::weak_ptr<const Turn>> under_way_;  // their requests have them
  std::uint64_t begin_ = UINT64_MAX, end_ = 0;        // of what they write, or have written
  access::Requests requests_;
};

// That no piece ends behind a committed file. Bounds may say more than a request of a part of its pattern takes.
Status check_end(FileState& file, const Walks& walks, const File::Pieces& wanted) {
  PIF_TRY_VALUE(const auto bounds, walks.file.bounds(wanted.displacement, wanted.skip, walks.bytes));
  auto end = static_cast<std::uint64_t>(bounds.highest);
  if (auto inside = file.check_piece_end(end); inside || file.creating()) return inside;
  PIF_TRY_VALUE(auto walker, patterns::Walker::make(walks.file, wanted.displacement, wanted.skip, walks.bytes));
  end = 0;
  while (const auto piece = walker.next()) end = std::max(end, static_cast<std::uint64_t>(piece->offset) + piece->size);
  return file.check_piece_end(end);
}

}  // namespace

Result<std::uint64_t> read_pieces(FileState& file, const File::Pieces& wanted, std::span<std::byte> out) {
  PIF_TRY(file.check_usable());
  PIF_TRY(file.keep_rights());
  PIF_TRY_VALUE(const Walks walks, Walks::make(wanted, out.size()));
  PIF_TRY_VALUE(patterns::Zip zip, walks.zip(wanted));
  const bool by_pieces = file.parts.format.is_fixed() && (!file.creating() || file.scattered.is_on());
  if (!by_pieces) return read_one_by_one(file, zip, out);
  if (!file.creating()) PIF_TRY(file.length.get(true));
  const std::uint64_t file_end = file.creating() ? kFileBytesMax : file.length.bytes();
  PieceSplit<Extent> pieces(file.parts.layout, file.parts.format.record_length);
  std::uint64_t done = 0;
  bool is_short = false;
  while (zip.left() > 0 && !is_short) {
    pieces.clear();
    while (!is_short && pieces.count < kPiecesAtOnce && pieces.bytes < kBytesAtOnce) {
      const auto pair = zip.next(kBytesAtOnce);
      if (!pair) break;
      const auto offset = static_cast<std::uint64_t>(pair->file_offset);
      const std::uint64_t size = offset >= file_end ? 0 : std::min(pair->size, file_end - offset);
      is_short = size < pair->size;
      pieces.add(offset, size, out.data() + pair->memory_offset);
    }
    PIF_TRY(read_turn(file, pieces));
    done += pieces.bytes;
  }
  return done;
}

Status write_pieces(FileState& file, const File::Pieces& wanted, std::span<const std::byte> in) {
  PIF_TRY(file.check_usable());
  PIF_TRY(file.keep_rights());
  PIF_TRY(file.check_may_write());
  PIF_TRY(file.check_may_overwrite());
  PIF_TRY_VALUE(const Walks walks, Walks::make(wanted, in.size()));
  if (walks.bytes == 0) return {};
  PIF_TRY(check_end(file, walks, wanted));
  PIF_TRY_VALUE(patterns::Zip zip, walks.zip(wanted));
  if (!file.creating())
    return file.parts.format.is_fixed() ? PieceOverwriter(file).write(zip, in) : write_one_by_one(file, zip, in);
  PIF_TRY(file.check_not_done());
  PIF_TRY(file.scattered.begin());
  return write_scattered(file, zip, in);
}

}  // namespace pif::client
