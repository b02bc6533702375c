// An LFS that stands in for an absent one (stand_in.h) gets that one's rows back (rows_back.h) into files without
// names. It brings rows that were written into such files to the LFSs that keep their parity. One thread, but for what
// `works` does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rebuild/rows_back.h"

namespace pif::lfs {

// A component's files, gone with the last process that has them open.
struct NamelessFiles {
  std::shared_ptr<component::Files> writable;
  std::shared_ptr<component::Files> readable;  // the same; they cannot be written through these
};
// number: another one for each call of this process. Any thread.
[[nodiscard]] Result<NamelessFiles> make_nameless_files(component::Storage& storage, const std::string& root,
                                                        const component::Shape& shape, std::uint64_t number);

class RowsAway {
 public:
  // keeping outlives it. files: complete, up to `tail`; every byte read is checked. view: that the keepers
  // must go by. The grant has kMayCreate.
  RowsAway(Keeping& keeping, AbsentRowsPtr rows, std::shared_ptr<component::Files> files, const component::Tail& tail,
           std::uint64_t view);
  // Returns when all rows are there. Called by a fiber, once.
  [[nodiscard]] Status run();

 private:
  // The rows of a batch that one keeper gets: from `first` on, keepers_.size() apart.
  struct Part {
    Row first = 0;
    std::vector<std::uint32_t> lengths;  // variable records
    std::uint64_t count = 0;
    std::vector<std::byte> data;
  };
  [[nodiscard]] Status read();  // away from the loop
  [[nodiscard]] Status read_fixed();
  [[nodiscard]] Status read_variable();
  void add(Row row, std::span<const std::byte> bytes);
  void ask_all(access::Requests& requests);
  void ask(access::Requests& requests, std::size_t stream);

  Keeping& keeping_;
  const AbsentRowsPtr lost_;
  const std::shared_ptr<component::Files> files_;
  const component::Reader reader_;
  const std::uint64_t view_;
  const std::vector<LfsIndex> keepers_;
  Row next_ = 0;             // to be read
  std::vector<Part> parts_;  // of the present batch, by stream
};

}  // namespace pif::lfs
