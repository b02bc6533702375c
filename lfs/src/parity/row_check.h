// Rows of a component that its LFS had made durable when it was lost, and that it does not know to be published: which
// of them are as the keepers of their parity have them now. What was never published, others may have written anew
// without this LFS. Where a keeper cannot rebuild them, since another LFS is away, they are compared by what its page
// says that they hash to. One thread; comparing is done away from it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "parity/keeping.h"

namespace pif::lfs {

class RowCheck : public std::enable_shared_from_this<RowCheck> {
 public:
  // The first row that is other than the keepers have it; the end of those that were looked at, if all are the same.
  using Done = std::function<void(const Status&, Row first_other)>;
  struct Rows {
    Keeper keeper;  // of this LFS: whose layout it is
    Range range;    // all are here, and in a file of file_length
    FileLength file_length;
    std::vector<std::optional<LfsIndex>> keepers;  // of row q that of index q mod size; nothing: is not asked
    component::Reader reader;
    std::shared_ptr<component::Files> files;  // of the reader
  };

  // keeping and grant outlive what runs of it.
  RowCheck(Keeping& keeping, access::Grant& grant, Rows rows);
  void start(Done done);

 private:
  struct Piece {  // of one keeper
    std::size_t stream = 0;
    std::uint64_t rows = 0;
    net::Buffer body;
    std::vector<std::uint64_t> hashes;  // instead of that: of the stretches that have the rows
    Result<Row> first_other = Row{0};
  };
  using PiecePtr = std::shared_ptr<Piece>;

  void step(std::size_t stream);
  void ask(access::Requests& requests, const PiecePtr& piece);
  void compare(const PiecePtr& piece);
  [[nodiscard]] Result<Row> compare_rows(const Piece& piece) const;  // away from the loop; so is the next one
  [[nodiscard]] Result<Row> compare_hashes(const Piece& piece) const;
  Error cannot_say(Row first) const;
  std::uint64_t page_of(Row row) const { return row / next_.size() / rows_.keeper.shape.page_rows(); }
  void compared(const PiecePtr& piece);
  void end_if_idle();

  Keeping& keeping_;
  access::Grant& grant_;
  const Rows rows_;
  std::vector<Row> next_;  // by keeper
  Row first_other_;
  Status status_;
  unsigned under_way_ = 0;
  Done done_;
};

}  // namespace pif::lfs
