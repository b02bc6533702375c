// Reading and writing through the view: what one process does.
#include <algorithm>
#include <chrono>

#include "file.h"
#include "pif/base/assert.h"
#include "session.h"

namespace pif::mpi {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 61;  // of a request, and in front of one

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
  if (__builtin_mul_overflow(type.bytes(), static_cast<std::uint64_t>(memory.count), &bytes) || bytes > kBytesMax ||
      !type.reaches(bytes))
    return {MPI_ERR_COUNT, "one call cannot move so much"};
  if (bytes % etype_bytes_ != 0) return {MPI_ERR_IO, "only whole etypes can be moved"};
  if (bytes > 0 && filetype_->bytes() == 0) return {MPI_ERR_IO, "the view has no bytes"};
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
  const bool writes = access.direction == Direction::kWrite;
  DatatypePtr type;
  Outcome out = Datatype::decode(memory.type, &type);
  if (out.ok()) out = check_access(access, memory, *type);
  const std::uint64_t wanted = out.ok() ? type->bytes() * static_cast<std::uint64_t>(memory.count) : 0;
  std::uint64_t skip = 0;
  if (out.ok() || access.pointer == Pointer::kOrdered) {  // which other ranks wait for
    const Outcome placed = place(access, offset, wanted, &skip);
    if (out.ok()) out = placed;
  }
  PIF_MPI_TRY(out);
  if (!filetype_->reaches(skip + wanted)) return {MPI_ERR_ARG, "an offset is too large"};
  *bytes = wanted;
  if (wanted > 0) out = writes ? write(skip, memory, type, wanted) : read(skip, memory, type, bytes);
  if (!out.ok()) *bytes = 0;
  if (access.pointer == Pointer::kOwn) position_ += static_cast<std::int64_t>(*bytes / etype_bytes_);
  ++(writes ? counts_.writes : counts_.reads);
  (writes ? counts_.bytes_written : counts_.bytes_read) += *bytes;
  const auto time = std::chrono::steady_clock::now() - begin;
  counts_.microseconds +=
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  return out;
}

// Collective: nobody goes on before all have moved their bytes.
Outcome File::move_all(Access access, MPI_Offset offset, const Memory& memory, std::uint64_t* bytes) {
  return team_.agree(move(access, offset, memory, bytes));
}

// Where the last of these bytes of the view ends in the file.
std::uint64_t File::end_of(std::uint64_t skip, std::uint64_t bytes) const {
  PIF_ASSERT(bytes > 0 && filetype_->reaches(skip + bytes), skip, bytes);
  const std::int64_t end = displacement_ + filetype_->offset_of(skip + bytes - 1) + 1;
  PIF_ASSERT(end > 0, end);
  return static_cast<std::uint64_t>(end);
}

Outcome File::read(std::uint64_t skip, const Memory& memory, const DatatypePtr& type, std::uint64_t* bytes) {
  PIF_MPI_TRY(cut_to_length(skip, bytes));
  if (*bytes == 0) return {};
  return pass(Direction::kRead, skip, *bytes, memory, type, bytes);
}

// In a file that several write there is no end of file but the length that they share.
Outcome File::cut_to_length(std::uint64_t skip, std::uint64_t* bytes) {
  const std::uint64_t end = end_of(skip, *bytes);
  std::uint64_t now = length_seen_;
  if (end > now) PIF_MPI_TRY(length(&now));
  if (end <= now) return {};
  const std::uint64_t there = filetype_->bytes_before(static_cast<std::int64_t>(now) - displacement_);
  PIF_ASSERT(there < skip + *bytes, there, skip, *bytes);
  *bytes = there > skip ? there - skip : 0;
  return {};
}

// A committed file gets longer by it: of several that do so at once, none takes what another has written.
Outcome File::write(std::uint64_t skip, const Memory& memory, const DatatypePtr& type, std::uint64_t bytes) {
  const std::uint64_t end = end_of(skip, bytes);
  std::uint64_t moved = 0;
  Outcome out = pass(Direction::kWrite, skip, bytes, memory, type, &moved);
  if (!out.ok() && is_new_ && lost_.ok()) lost_ = out;
  PIF_MPI_TRY(out);
  PIF_ASSERT(moved == bytes, moved, bytes);
  if (end <= length_seen_) return {};
  length_seen_ = end;
  if (!is_new_) return {};
  const std::int64_t before = team_.raise(Team::Number::kLength, static_cast<std::int64_t>(end));
  length_seen_ = std::max(end, static_cast<std::uint64_t>(before));
  return {};
}

Outcome File::pass(Direction direction, std::uint64_t skip, std::uint64_t bytes, const Memory& memory,
                   const DatatypePtr& type, std::uint64_t* moved) {
  PIF_ASSERT(file_ != nullptr && type->bytes() > 0 && bytes > 0, bytes);
  const bool writes = direction == Direction::kWrite;
  const bool goes_back = type->extent() < 0;  // tiles of a pattern do not: so it is one type
  const DatatypePtr tile = goes_back ? Datatype::repeated(*type, static_cast<std::uint64_t>(memory.count)) : type;
  char* const low = static_cast<char*>(memory.address) + tile->begin();
  std::int64_t answer = 0;
  if (filetype_->is_range(skip, bytes) && tile->is_range(0, bytes)) {
    const auto at = static_cast<std::uint64_t>(displacement_ + filetype_->offset_of(skip));
    PIF_MPI_TRY(ask(
        [&](auto*) { return writes ? pif_pwrite(file_, low, bytes, at) : pif_pread(file_, low, bytes, at); }, &answer));
  } else {
    const pif_pieces pieces{filetype_->pattern(), tile->pattern(), displacement_ + filetype_->begin(), skip, bytes};
    if (pieces.file == nullptr || pieces.memory == nullptr) return {MPI_ERR_NO_MEM, "memory is out"};
    const auto tiles_before = static_cast<std::int64_t>((bytes - 1) / tile->bytes());
    const auto size = static_cast<std::size_t>(tiles_before * tile->extent() + tile->end() - tile->begin());
    PIF_MPI_TRY(ask(
        [&](auto*) {
          return writes ? pif_write_pieces(file_, &pieces, low, size) : pif_read_pieces(file_, &pieces, low, size);
        },
        &answer));
  }
  *moved = static_cast<std::uint64_t>(answer);
  PIF_ASSERT(*moved <= bytes, *moved, bytes);
  return {};
}

Outcome File::begin_split(Access access, MPI_Offset offset, const Memory& memory) {
  if (split_.is_active) return {MPI_ERR_OTHER, "a split collective access is under way"};
  std::uint64_t bytes = 0;
  PIF_MPI_TRY(move_all(access, offset, memory, &bytes));
  PIF_ASSERT(!split_.is_active);  // one thread at a time
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
  DatatypePtr element, tile;
  Outcome out = Datatype::decode(etype, &element);
  if (out.ok()) out = Datatype::decode(filetype, &tile);
  if (out.ok() && (element->bytes() == 0 || tile->bytes() % element->bytes() != 0))
    out = {MPI_ERR_ARG, "a file type is made of whole etypes"};
  if (out.ok() && tile->bytes() > 0 && displacement + tile->begin() < 0)
    out = {MPI_ERR_ARG, "the view begins before the file does"};
  if (out.ok() && !tile->is_ascending()) out = {MPI_ERR_ARG, "the view goes backwards, or has bytes more than once"};
  PIF_MPI_TRY(team_.agree(out));
  displacement_ = displacement;
  etype_bytes_ = element->bytes();
  PIF_ASSERT(etype_bytes_ > 0 && tile->bytes() % etype_bytes_ == 0, etype_bytes_);
  filetype_ = std::move(tile);
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
  const std::uint64_t before = filetype_->bytes() == 0 ? 0 : filetype_->bytes_before(behind);
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
  *bytes = displacement_ + (filetype_->bytes() == 0 ? 0 : filetype_->offset_of(skip));
  team_.barrier();
  return {};
}

}  // namespace pif::mpi
