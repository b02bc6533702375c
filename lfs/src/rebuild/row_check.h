// Rows of a component that its LFS had made durable when it was lost, and that it does not know to be published: which
// of them are as the keepers of their parity have them now. Rows that were never published may have been written anew,
// without this LFS. Where a keeper cannot rebuild a row, since another LFS is away, the row is compared with the hash
// that the keeper's page has. One thread; comparing is done away from it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "parity/keeping.h"

namespace pif::lfs {

class RowCheck {
 public:
  struct Rows {
    Keeper keeper;  // of this LFS: whose layout it is
    Range range;    // all are here, and in a file of file_length
    FileLength file_length;
    std::vector<std::optional<LfsIndex>> keepers;  // of row q that of index q mod size; nothing: is not asked
    component::Reader reader;
    std::shared_ptr<component::Files> files;  // of the reader
  };

  // keeping and grant outlive it.
  RowCheck(Keeping& keeping, access::Grant& grant, Rows rows);
  // The first row that is other than the keepers have it; the end of those that were looked at, if all are the same.
  // Called by a fiber, once.
  [[nodiscard]] Result<Row> run();

 private:
  struct Piece {  // of one keeper
    std::size_t stream = 0;
    std::uint64_t wanted = 0;  // rows
    std::uint64_t rows = 0;    // that came
    net::Buffer body;
    std::vector<std::uint64_t> hashes;  // instead of that: of the stretches that have the rows
  };

  std::vector<Piece> next_pieces() const;
  void ask(access::Requests& requests, Piece& piece);
  [[nodiscard]] Status take(Piece& piece, net::Packet& reply) const;
  [[nodiscard]] Result<Row> compare_rows(const Piece& piece) const;  // away from the loop; so is the next one
  [[nodiscard]] Result<Row> compare_hashes(const Piece& piece) const;
  Error cannot_say(Row first) const;
  std::uint64_t page_of(Row row) const { return row / next_.size() / rows_.keeper.shape.page_rows(); }

  Keeping& keeping_;
  access::Grant& grant_;
  const Rows rows_;
  std::vector<Row> next_;  // by keeper
  Row first_other_;
};

}  // namespace pif::lfs
