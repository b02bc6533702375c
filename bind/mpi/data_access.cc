// Views, pointers and data.
#include <algorithm>
#include <cstring>
#include <utility>

#include "connection.h"
#include "open_file.h"

namespace pif::mpi {
namespace {

Outcome run(const std::function<std::int64_t(pif_connection*)>& call, std::uint64_t& value) {
  std::int64_t given = 0;
  Outcome outcome = Connection::instance().run(call, given);
  value = outcome ? static_cast<std::uint64_t>(given) : 0;
  return outcome;
}

using Range = std::unique_ptr<pif_pattern, decltype(&pif_pattern_free)>;

Range range(std::uint64_t bytes) { return {pif_pattern_range(0, bytes), &pif_pattern_free}; }

}  // namespace

// ---- views ---------------------------------------------------------------------------------------------------------

Outcome OpenFile::check_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                             const char* representation) {
  std::shared_ptr<const Datatype> of_etype, of_filetype;
  Outcome outcome = decode(etype, of_etype);
  if (outcome) outcome = decode(filetype, of_filetype);
  if (!outcome) return outcome;
  if (representation == nullptr ||
      (std::strcmp(representation, "native") != 0 && std::strcmp(representation, "internal") != 0))
    return {MPI_ERR_UNSUPPORTED_DATAREP, "pif: data is native or internal"};
  if (displacement < 0) return {MPI_ERR_ARG, "pif: a negative displacement"};
  if (of_etype->bytes() == 0 || of_filetype->bytes() % of_etype->bytes() != 0)
    return {MPI_ERR_ARG, "pif: the filetype is not made of whole etypes"};
  if (of_filetype->bytes() > 0 && of_filetype->lowest() < 0 && displacement + of_filetype->lowest() < 0)
    return {MPI_ERR_ARG, "pif: the view begins before the file"};
  if ((amode_ & MPI_MODE_RDONLY) == 0 && !of_filetype->is_rising())
    return {MPI_ERR_ARG, "pif: the view goes backwards or overlaps itself, and the file is written"};
  return {};
}

Outcome OpenFile::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype) {
  std::shared_ptr<const Datatype> of_etype;
  Outcome outcome = decode(etype, of_etype);
  if (outcome) outcome = decode(filetype, filetype_);
  if (outcome) {
    displacement_ = displacement;
    etype_bytes_ = of_etype->bytes();
    own_ = 0;
    if (rank_ == 0) outcome = set_shared(0);
  }
  return agree(outcome);
}

// The first etype that is not before the file's end.
Outcome OpenFile::end_of_view(MPI_Offset& etypes) {
  MPI_Offset end = 0;
  const Outcome outcome = size(end);
  if (!outcome) return outcome;
  if (!filetype_->is_rising()) return {MPI_ERR_UNSUPPORTED_OPERATION, "pif: the view goes backwards: it has no end"};
  const std::uint64_t bytes = filetype_->bytes_before(end - displacement_);
  etypes = static_cast<MPI_Offset>((bytes + etype_bytes_ - 1) / etype_bytes_);
  return {};
}

Outcome OpenFile::target_of(MPI_Offset offset, int whence, MPI_Offset position, MPI_Offset& target) {
  MPI_Offset from = 0;
  if (whence == MPI_SEEK_CUR) {
    from = position;
  } else if (whence == MPI_SEEK_END) {
    const Outcome outcome = end_of_view(from);
    if (!outcome) return outcome;
  } else if (whence != MPI_SEEK_SET) {
    return {MPI_ERR_ARG, "pif: seek from where?"};
  }
  if (__builtin_add_overflow(from, offset, &target) || target < 0)
    return {MPI_ERR_ARG, "pif: a pointer before the view's beginning"};
  return {};
}

Outcome OpenFile::seek(MPI_Offset offset, int whence) {
  if (is_sequential()) return {MPI_ERR_UNSUPPORTED_OPERATION, "pif: the file is sequential"};
  const std::lock_guard held(lock_);
  MPI_Offset target = 0;
  const Outcome outcome = target_of(offset, whence, own_, target);
  if (outcome) own_ = target;
  return outcome;
}

Outcome OpenFile::position(MPI_Offset& offset) {
  if (is_sequential()) return {MPI_ERR_UNSUPPORTED_OPERATION, "pif: the file is sequential"};
  const std::lock_guard held(lock_);
  offset = own_;
  return {};
}

// ---- the shared pointer --------------------------------------------------------------------------------------------

Outcome OpenFile::add_to_shared(std::int64_t etypes, std::int64_t& before) {
  std::uint64_t done = 0;
  return run([&](pif_connection* c) { return pif_counter_add(c, counter_, etypes, &before); }, done);
}

// Nobody else moves it meanwhile: it is asked for by one rank of a collective call.
Outcome OpenFile::set_shared(MPI_Offset offset) {
  std::int64_t now = 0;
  Outcome outcome = add_to_shared(0, now);
  if (outcome && now != offset) outcome = add_to_shared(offset - now, now);
  return outcome;
}

Outcome OpenFile::position_shared(MPI_Offset& offset) {
  std::int64_t now = 0;
  const Outcome outcome = add_to_shared(0, now);
  offset = now;
  return outcome;
}

Outcome OpenFile::seek_shared(MPI_Offset offset, int whence) {
  if (is_sequential()) return {MPI_ERR_UNSUPPORTED_OPERATION, "pif: the file is sequential"};
  MPI_Offset both[2] = {offset, whence};
  PMPI_Bcast(both, 2, MPI_OFFSET, 0, comm_);
  Outcome outcome;
  if (both[0] != offset || both[1] != whence) outcome = {MPI_ERR_NOT_SAME, "pif: not all ranks seek the same"};
  outcome = agree(outcome);
  if (!outcome) return outcome;
  MPI_Offset now = 0, target = 0;
  if (rank_ == 0) {
    outcome = position_shared(now);
    if (outcome) outcome = target_of(offset, whence, now, target);
    if (outcome) outcome = set_shared(target);
  }
  return agree(outcome);
}

// ---- data ----------------------------------------------------------------------------------------------------------

Outcome OpenFile::check_access(const Access& access, MPI_Offset offset, std::int64_t count) const {
  if (access.is_write && (amode_ & MPI_MODE_RDONLY) != 0)
    return {MPI_ERR_READ_ONLY, "pif: the file is open for reading"};
  if (!access.is_write && (amode_ & MPI_MODE_WRONLY) != 0) return {MPI_ERR_ACCESS, "pif: the file is open for writing"};
  const bool is_shared = access.pointer == Pointer::kShared || access.pointer == Pointer::kOrdered;
  if (is_sequential() && !is_shared) return {MPI_ERR_UNSUPPORTED_OPERATION, "pif: the file is sequential"};
  if (count < 0) return {MPI_ERR_COUNT, "pif: a negative count"};
  if (offset < 0) return {MPI_ERR_ARG, "pif: a negative offset"};
  return {};
}

// In the order of the ranks. Who failed takes part with nothing.
Outcome OpenFile::take_ordered(std::int64_t etypes, MPI_Offset& offset) {
  std::int64_t end = 0;
  PMPI_Scan(&etypes, &end, 1, MPI_INT64_T, MPI_SUM, comm_);
  std::int64_t first = 0;
  Outcome outcome;
  if (rank_ == ranks_ - 1) outcome = add_to_shared(end, first);
  PMPI_Bcast(&first, 1, MPI_INT64_T, ranks_ - 1, comm_);
  offset = first + end - etypes;
  return agree(outcome);
}

Outcome OpenFile::take_offset(Pointer pointer, std::int64_t etypes, MPI_Offset& offset) {
  if (pointer == Pointer::kOwn) {
    const std::lock_guard held(lock_);
    offset = std::exchange(own_, own_ + etypes);
  } else if (pointer == Pointer::kShared) {
    std::int64_t before = 0;
    const Outcome outcome = add_to_shared(etypes, before);
    offset = before;
    return outcome;
  }
  return {};
}

Outcome OpenFile::move(const Access& access, MPI_Offset offset, void* memory, std::int64_t count, MPI_Datatype type,
                       std::uint64_t& moved) {
  moved = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<const Datatype> items;
  Outcome outcome = check_access(access, offset, count);
  if (outcome) outcome = decode(type, items);
  std::uint64_t bytes = 0;
  if (outcome && __builtin_mul_overflow(static_cast<std::uint64_t>(count), items->bytes(), &bytes))
    outcome = {MPI_ERR_COUNT, "pif: more bytes than a file has"};
  if (outcome && bytes % etype_bytes_ != 0) outcome = {MPI_ERR_IO, "pif: the bytes are no whole etypes of the view"};
  const auto etypes = static_cast<std::int64_t>(outcome ? bytes / etype_bytes_ : 0);
  if (access.pointer == Pointer::kOrdered) {
    const Outcome taken = take_ordered(etypes, offset);
    if (outcome) outcome = taken;
  } else if (outcome) {
    outcome = take_offset(access.pointer, etypes, offset);
  }
  std::uint64_t at = 0;
  if (outcome && __builtin_mul_overflow(static_cast<std::uint64_t>(offset), etype_bytes_, &at))
    outcome = {MPI_ERR_ARG, "pif: an offset that no file has"};
  if (outcome && bytes > 0)
    outcome = transfer(access.is_write, at, static_cast<std::byte*>(memory), *items, count, moved);
  const std::lock_guard held(lock_);
  ++calls_;
  (access.is_write ? bytes_written_ : bytes_read_) += moved;
  time_ += std::chrono::steady_clock::now() - begin;
  return outcome;
}

// Of a new file, which has no end at the servers: what all ranks know of is there.
Outcome OpenFile::clip(std::uint64_t at, std::uint64_t& bytes) {
  MPI_Offset end = 0;
  const Outcome outcome = size(end);
  if (!outcome) return outcome;
  const std::uint64_t there = filetype_->bytes_before(end - displacement_);
  bytes = there <= at ? 0 : std::min(bytes, there - at);
  return {};
}

Outcome OpenFile::transfer(bool is_write, std::uint64_t at, std::byte* memory, const Datatype& type, std::int64_t count,
                           std::uint64_t& moved) {
  std::uint64_t bytes = static_cast<std::uint64_t>(count) * type.bytes();
  if (filetype_->bytes() == 0) return {};  // nothing of the file is seen
  if (count > 1 && type.extent() < 0) return {MPI_ERR_TYPE, "pif: items of memory that go backwards"};
  if (is_new_ && !is_write) {
    const Outcome outcome = clip(at, bytes);
    if (!outcome || bytes == 0) return outcome;
  }
  const bool is_packed = type.is_dense() || (count == 1 && type.run());
  std::byte* const base = memory + type.lowest();
  const auto memory_bytes = static_cast<std::size_t>((count - 1) * type.extent() + type.highest() - type.lowest());
  if (filetype_->is_dense() && is_packed) {
    const std::uint64_t offset = static_cast<std::uint64_t>(displacement_ + filetype_->lowest()) + at;
    return run(
        [&](pif_connection*) {
          return is_write ? pif_pwrite(file_, base, bytes, offset) : pif_pread(file_, base, bytes, offset);
        },
        moved);
  }
  const Range packed = range(bytes);
  pif_pieces pieces = {};
  pieces.file = filetype_->pattern();
  pieces.memory = is_packed ? packed.get() : type.pattern_from_lowest();
  pieces.displacement = displacement_;
  pieces.skip = at;
  pieces.bytes = bytes;
  return run(
      [&](pif_connection*) {
        return is_write ? pif_write_pieces(file_, &pieces, base, memory_bytes)
                        : pif_read_pieces(file_, &pieces, base, memory_bytes);
      },
      moved);
}

// ---- split collective accesses -------------------------------------------------------------------------------------

Outcome OpenFile::check_no_split() const {
  if (split_) return {MPI_ERR_IO, "pif: a split collective access of this file is under way"};
  return {};
}

Outcome OpenFile::begin_split(bool is_write, std::uint64_t moved) {
  split_ = is_write;
  split_moved_ = moved;
  return {};
}

Outcome OpenFile::end_split(bool is_write, std::uint64_t& moved) {
  if (split_ != is_write) return {MPI_ERR_IO, "pif: no such split collective access is under way"};
  split_.reset();
  moved = split_moved_;
  return {};
}

}  // namespace pif::mpi
