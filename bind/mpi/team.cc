#include "team.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "pif/base/assert.h"

namespace pif::mpi {
namespace {

constexpr int kNumbers = 2;
constexpr std::size_t kTextMax = 256;

}  // namespace

Outcome Team::begin(MPI_Comm comm) {
  if (PMPI_Comm_dup(comm, &comm_) != MPI_SUCCESS) return {MPI_ERR_COMM, "the communicator cannot be duplicated"};
  PMPI_Comm_rank(comm_, &rank_);
  PMPI_Comm_size(comm_, &size_);
  PIF_ASSERT(rank_ >= 0 && rank_ < size_, rank_, size_);
  std::int64_t* numbers = nullptr;
  const MPI_Aint bytes = rank_ == 0 ? kNumbers * static_cast<MPI_Aint>(sizeof(std::int64_t)) : 0;
  if (PMPI_Win_allocate(bytes, sizeof(std::int64_t), MPI_INFO_NULL, comm_, &numbers, &window_) != MPI_SUCCESS)
    return {MPI_ERR_NO_MEM, "no window of memory for what the processes share"};
  if (rank_ == 0) {
    set(Number::kLength, 0);
    set(Number::kPointer, 0);
  }
  return {};
}

void Team::end() {
  if (window_ != MPI_WIN_NULL) PMPI_Win_free(&window_);
  if (comm_ != MPI_COMM_NULL) PMPI_Comm_free(&comm_);
}

void Team::barrier() { PMPI_Barrier(comm_); }

Outcome Team::agree(const Outcome& mine) {
  struct {
    int error_class, rank;
  } worst{mine.error_class, rank_};
  PMPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_2INT, MPI_MAXLOC, comm_);
  if (worst.error_class == MPI_SUCCESS) return {};
  PIF_ASSERT(worst.rank >= 0 && worst.rank < size_, worst.rank, size_);
  std::array<char, kTextMax> text{};
  std::memcpy(text.data(), mine.text.data(), std::min(mine.text.size(), kTextMax - 1));
  PMPI_Bcast(text.data(), kTextMax, MPI_CHAR, worst.rank, comm_);
  return {worst.error_class, text.data()};
}

void Team::broadcast(std::span<std::byte> bytes) {
  PIF_ASSERT(bytes.size() <= std::numeric_limits<int>::max(), bytes.size());
  PMPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, comm_);
}

void Team::broadcast(std::int64_t* value) { broadcast(std::as_writable_bytes(std::span(value, 1))); }

void Team::sums(std::int64_t mine, std::int64_t* below, std::int64_t* all) {
  *below = 0;
  PMPI_Exscan(&mine, below, 1, MPI_INT64_T, MPI_SUM, comm_);
  if (rank_ == 0) *below = 0;
  PMPI_Allreduce(&mine, all, 1, MPI_INT64_T, MPI_SUM, comm_);
  PIF_ASSERT(mine < 0 || *below < 0 || *below + mine <= *all, *below, mine, *all);
}

std::int64_t Team::change(Number which, std::int64_t value, MPI_Op op) {
  PIF_ASSERT(window_ != MPI_WIN_NULL && static_cast<int>(which) < kNumbers, which);
  std::int64_t before = 0;
  PMPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window_);
  PMPI_Fetch_and_op(&value, &before, MPI_INT64_T, 0, static_cast<MPI_Aint>(which), op, window_);
  PMPI_Win_unlock(0, window_);
  return before;
}

std::int64_t Team::read(Number which) { return change(which, 0, MPI_NO_OP); }
std::int64_t Team::add(Number which, std::int64_t value) { return change(which, value, MPI_SUM); }
std::int64_t Team::raise(Number which, std::int64_t value) { return change(which, value, MPI_MAX); }
void Team::set(Number which, std::int64_t value) { change(which, value, MPI_REPLACE); }

}  // namespace pif::mpi
