// The processes that have a file open: what they agree on, and the numbers that they share.
#pragma once

#include <cstdint>
#include <span>

#include "outcome.h"

namespace pif::mpi {

// Collective unless something else is said. The numbers are in a window of memory at rank 0, and reached by MPI's
// one-sided operations, so that no process need do anything for another. Any thread of a process, but two collective
// calls at once need the program's own order, as the MPI has it.
class Team {
 public:
  enum class Number : std::uint8_t { kLength, kPointer };  // in bytes; in etypes

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() = default;

  // Both numbers are 0 after the next agree(). Members are those of `comm`. end(): gives back what begin() took;
  // without it nothing is.
  Outcome begin(MPI_Comm comm);
  void end();

  int rank() const { return rank_; }
  int size() const { return size_; }

  void barrier();
  // All get the outcome of the worst, with its text: what one of them has not done none has.
  Outcome agree(const Outcome& mine);
  // From rank 0 to all others.
  void broadcast(std::span<std::byte> bytes);
  void broadcast(std::int64_t* value);
  // The sum of what lower ranks give, and of what all give.
  void sums(std::int64_t mine, std::int64_t* below, std::int64_t* all);

  // Not collective: one step each, which gives the value before it.
  std::int64_t read(Number which);
  std::int64_t add(Number which, std::int64_t value);
  std::int64_t raise(Number which, std::int64_t value);  // to at least this
  void set(Number which, std::int64_t value);

 private:
  std::int64_t change(Number which, std::int64_t value, MPI_Op op);

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0, size_ = 1;
};

}  // namespace pif::mpi
