// Reading and writing through the view: what one process does.
#include <algorithm>
#include <chrono>

#include "file.h"
#include "session.h"

namespace pif::mpi {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 61;  // of a request, and in front of one

bool is_range(const Datatype& filetype, std::uint64_t skip, std::uint64_t bytes) {
  return filetype.is_range() ||
         filetype.offset_of(skip + bytes - 1) - filetype.offset_of(skip) == static_cast<std::int64_t>(bytes - 1);
}

}  // namespace

Outcome File::check_access(Access access, const Memory& memory, const Datatype& type) const {
  const bool writes = access.direction == Direction::kWrite;
  if (memory.count < 0) return {MPI_ERR_COUNT, "a count is below 0"};
  if (writes && !may_write()) return {MPI_ERR_READ_ONLY, "the file is open for reading"};
  if (!writes && !may_read()) return {MPI_ERR_ACCESS, "the file is open for writing"};
  const bool is_own = access.pointer == Pointer::kAt || access.pointer == Pointer::kOwn;
  if (is_own && (amode_ & MPI_MODE_SEQUENTIAL) != 0)
    return {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_MODE_SEQUENTIAL has the shared pointer only"};
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(type.bytes(), static_cast<std::uint64_t>(memory.count), &bytes) || bytes > kBytesMax)
    return {MPI_ERR_COUNT, "one call cannot move so much"};
  if (bytes % etype_bytes_ != 0) return {MPI_ERR_IO, "only whole etypes can be moved"};
  if (bytes > 0 && filetype_.bytes() == 0) return {MPI_ERR_IO, "the view has no bytes"};
  return {};
}

// Where it begins: so many bytes of the view are passed over. Moves the pointers that are shared.
Outcome File::place(Access access, MPI_Offset offset, std::uint64_t bytes, std::uint64_t* skip) {
  const auto etypes = static_cast<std::int64_t>(bytes / etype_bytes_);
  std::int64_t at = 0;
  switch (access.pointer) {
    case Pointer::kAt: at = offset; break;
    case Pointer::kOwn: at = position_; break;
    case Pointer::kShared: at = team_.add(Team::Number::kPointer, etypes); break;
    case Pointer::kOrdered: {
      std::int64_t below = 0, all = 0;
      team_.sums(etypes, &below, &all);
      if (team_.rank() == 0) at = team_.add(Team::Number::kPointer, all);
      team_.broadcast(&at);
      at += below;
      break;
    }
  }
  if (at < 0) return {MPI_ERR_ARG, "an offset is below 0"};
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(at), etype_bytes_, skip) || *skip > kBytesMax)
    return {MPI_ERR_ARG, "an offset is too large"};
  return {};
}

Outcome File::move(Access access, MPI_Offset offset, const Memory& memory, std::uint64_t* bytes) {
  const auto begin = std::chrono::steady_clock::now();
  *bytes = 0;
  Datatype type;
  Outcome out = Datatype::decode(memory.type, &type);
  if (out.ok()) out = check_access(access, memory, type);
  const std::uint64_t wanted = out.ok() ? type.bytes() * static_cast<std::uint64_t>(memory.count) : 0;
  std::uint64_t skip = 0;
  if (out.ok() || access.pointer == Pointer::kOrdered) {  // which other ranks wait for
    const Outcome placed = place(access, offset, wanted, &skip);
    if (out.ok()) out = placed;
  }
  PIF_MPI_TRY(out);
  if (!filetype_.reaches(skip + wanted)) return {MPI_ERR_ARG, "an offset is too large"};
  *bytes = wanted;
  if (wanted > 0) out = transfer(access.direction, skip, memory, type, bytes);
  if (!out.ok()) *bytes = 0;
  if (access.pointer == Pointer::kOwn) position_ += static_cast<std::int64_t>(*bytes / etype_bytes_);
  const bool writes = access.direction == Direction::kWrite;
  ++(writes ? counts_.writes : counts_.reads);
  (writes ? counts_.bytes_written : counts_.bytes_read) += *bytes;
  const auto time = std::chrono::steady_clock::now() - begin;
  counts_.microseconds +=
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  return out;
}

Outcome File::transfer(Direction direction, std::uint64_t skip, const Memory& memory, const Datatype& type,
                       std::uint64_t* bytes) {
  // The lowest byte of the memory is where the pattern's offset 0 is.
  const auto count = static_cast<std::uint64_t>(memory.count);
  const std::int64_t way = type.extent() * static_cast<std::int64_t>(count - 1);
  const std::int64_t low = type.begin() + std::min<std::int64_t>(0, way);
  char* const begin = static_cast<char*>(memory.address) + low;
  const Datatype all = Datatype::repeated(type, count, -low);
  if (direction == Direction::kWrite) return write(skip, *bytes, begin, all);
  PIF_MPI_TRY(cut_to_length(skip, bytes));
  if (*bytes == 0) return {};
  std::int64_t moved = 0;
  PIF_MPI_TRY(pass(direction, skip, *bytes, begin, all, &moved));
  *bytes = static_cast<std::uint64_t>(moved);
  return {};
}

// In a file that several write there is no end of file but the length that they share.
Outcome File::cut_to_length(std::uint64_t skip, std::uint64_t* bytes) {
  const auto end = [&] { return displacement_ + filetype_.offset_of(skip + *bytes - 1) + 1; };
  std::uint64_t now = length_seen_;
  if (end() > static_cast<std::int64_t>(now)) PIF_MPI_TRY(length(&now));
  if (end() <= static_cast<std::int64_t>(now)) return {};
  const std::uint64_t there = filetype_.bytes_before(static_cast<std::int64_t>(now) - displacement_);
  *bytes = there > skip ? std::min(*bytes, there - skip) : 0;
  return {};
}

Outcome File::write(std::uint64_t skip, std::uint64_t bytes, char* memory, const Datatype& type) {
  const auto end = static_cast<std::uint64_t>(displacement_ + filetype_.offset_of(skip + bytes - 1) + 1);
  std::int64_t moved = 0;
  std::uint64_t now = length_seen_;
  if (is_new_) {
    PIF_MPI_TRY(pass(Direction::kWrite, skip, bytes, memory, type, &moved));
    if (end <= length_seen_) return {};
    length_seen_ =
        std::max(end, static_cast<std::uint64_t>(team_.raise(Team::Number::kLength, static_cast<std::int64_t>(end))));
    return {};
  }
  if (end > now) PIF_MPI_TRY(length(&now));
  if (end <= now) return pass(Direction::kWrite, skip, bytes, memory, type, &moved);
  // Past the end of a committed file: one process at a time makes it longer. One range of bytes does that by itself.
  const bool is_one_range = is_range(filetype_, skip, bytes) && type.is_range();
  team_.lock();
  Outcome out = is_one_range ? pass(Direction::kWrite, skip, bytes, memory, type, &moved) : lengthen(end);
  team_.unlock();
  if (out.ok() && !is_one_range) out = pass(Direction::kWrite, skip, bytes, memory, type, &moved);
  return out;
}

Outcome File::lengthen(std::uint64_t end) {
  std::uint64_t now = 0;
  PIF_MPI_TRY(length(&now));
  if (now >= end) return {};
  PIF_MPI_TRY(ask([&](auto*) { return pif_resize(file_, end); }));
  length_seen_ = end;
  return {};
}

Outcome File::pass(Direction direction, std::uint64_t skip, std::uint64_t bytes, char* memory, const Datatype& type,
                   std::int64_t* moved) {
  const bool writes = direction == Direction::kWrite;
  if (is_range(filetype_, skip, bytes) && type.is_range()) {
    const auto at = static_cast<std::uint64_t>(displacement_ + filetype_.offset_of(skip));
    return ask(
        [&](auto*) { return writes ? pif_pwrite(file_, memory, bytes, at) : pif_pread(file_, memory, bytes, at); },
        moved);
  }
  const PatternPtr in_memory = type.pattern();
  if (in_memory == nullptr || file_pattern_ == nullptr) return {MPI_ERR_NO_MEM, "memory is out"};
  pif_pieces pieces{file_pattern_.get(), in_memory.get(), displacement_, skip, bytes};
  const std::vector<pif_piece> few = filetype_.few_pieces(skip, bytes);
  const PatternPtr of_few(few.empty() ? nullptr : pif_pattern_list(few.data(), few.size()));
  if (of_few != nullptr) {
    pieces.file = of_few.get();
    pieces.skip = 0;
  }
  const auto size = static_cast<std::size_t>(type.end());
  return ask(
      [&](auto*) {
        return writes ? pif_write_pieces(file_, &pieces, memory, size) : pif_read_pieces(file_, &pieces, memory, size);
      },
      moved);
}

Outcome File::begin_split(Access access, MPI_Offset offset, const Memory& memory) {
  if (split_.is_active) return {MPI_ERR_OTHER, "a split collective access is under way"};
  std::uint64_t bytes = 0;
  PIF_MPI_TRY(move(access, offset, memory, &bytes));
  split_ = {true, access, bytes};
  return {};
}

Outcome File::end_split(Access access, std::uint64_t* bytes) {
  if (!split_.is_active || split_.access != access) return {MPI_ERR_OTHER, "no such split collective access was begun"};
  split_.is_active = false;
  *bytes = split_.bytes;
  return {};
}

// ---- view and pointers ----

Outcome File::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const std::string& datarep) {
  Datatype element, tile;
  Outcome out = Datatype::decode(etype, &element);
  if (out.ok()) out = Datatype::decode(filetype, &tile);
  if (out.ok() && (element.bytes() == 0 || tile.bytes() % element.bytes() != 0))
    out = {MPI_ERR_ARG, "a file type is made of whole etypes"};
  if (out.ok() && tile.bytes() > 0 && displacement + tile.begin() < 0)
    out = {MPI_ERR_ARG, "the view begins before the file does"};
  if (out.ok() && !tile.is_ascending()) out = {MPI_ERR_ARG, "the view goes backwards, or has bytes more than once"};
  PIF_MPI_TRY(team_.agree(out));
  displacement_ = displacement;
  etype_bytes_ = element.bytes();
  filetype_ = std::move(tile);
  file_pattern_ = filetype_.pattern();
  datarep_ = datarep;
  position_ = 0;
  if (team_.rank() == 0) team_.set(Team::Number::kPointer, 0);
  team_.barrier();
  return {};
}

// The first etype of the view that begins at the end of the file, or behind it.
Outcome File::offset_of_end(MPI_Offset* offset) {
  std::uint64_t bytes = 0;
  PIF_MPI_TRY(length(&bytes));
  const std::int64_t behind = static_cast<std::int64_t>(bytes) - displacement_;
  const std::uint64_t before = filetype_.bytes() == 0 ? 0 : filetype_.bytes_before(behind);
  *offset = static_cast<MPI_Offset>((before + etype_bytes_ - 1) / etype_bytes_);
  return {};
}

Outcome File::target(MPI_Offset offset, int whence, const std::function<Outcome(MPI_Offset*)>& now, MPI_Offset* out) {
  MPI_Offset base = 0;
  if ((amode_ & MPI_MODE_SEQUENTIAL) != 0)
    return {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_MODE_SEQUENTIAL has no pointer to set"};
  if (whence == MPI_SEEK_CUR)
    PIF_MPI_TRY(now(&base));
  else if (whence == MPI_SEEK_END)
    PIF_MPI_TRY(offset_of_end(&base));
  else if (whence != MPI_SEEK_SET)
    return {MPI_ERR_ARG, "MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END is wanted"};
  if (__builtin_add_overflow(base, offset, out) || *out < 0) return {MPI_ERR_ARG, "a pointer cannot be below 0"};
  return {};
}

Outcome File::seek(MPI_Offset offset, int whence) {
  MPI_Offset to = 0;
  PIF_MPI_TRY(target(
      offset, whence, [&](MPI_Offset* now) { return position(now); }, &to));
  position_ = to;
  return {};
}

Outcome File::position(MPI_Offset* offset) {
  if ((amode_ & MPI_MODE_SEQUENTIAL) != 0)
    return {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_MODE_SEQUENTIAL has the shared pointer only"};
  *offset = position_;
  return {};
}

Outcome File::seek_shared(MPI_Offset offset, int whence) {
  team_.barrier();
  Outcome mine;
  MPI_Offset to = 0;
  if (team_.rank() == 0)
    mine = target(
        offset, whence, [&](MPI_Offset* now) { return position_shared(now); }, &to);
  if (mine.ok() && team_.rank() == 0) team_.set(Team::Number::kPointer, to);
  return team_.agree(mine);
}

Outcome File::position_shared(MPI_Offset* offset) {
  *offset = team_.read(Team::Number::kPointer);
  return {};
}

Outcome File::current_displacement(MPI_Offset* bytes) {
  if ((amode_ & MPI_MODE_SEQUENTIAL) == 0) return {MPI_ERR_ARG, "MPI_DISPLACEMENT_CURRENT is for MPI_MODE_SEQUENTIAL"};
  team_.barrier();
  const auto skip = static_cast<std::uint64_t>(team_.read(Team::Number::kPointer)) * etype_bytes_;
  *bytes = displacement_ + (filetype_.bytes() == 0 ? 0 : filetype_.offset_of(skip));
  team_.barrier();
  return {};
}

}  // namespace pif::mpi
