// The pages of a file's parity, copied to that of a file that has the same rows in the same layout. Such files have the
// same pages: neither bytes nor vectors say whose they are, only their sums do. Frames are not copied.
#pragma once

#include "pif/component/parity.h"

namespace pif::component {

// Copies in steps, page by page in their order, and stops in front of the first page that is not what was written: what
// is copied is right, and who copies makes the others anew out of rows. Not thread-safe.
class PageCopy {
 public:
  // from: open for reading. to: all three, open for writing, holding nothing that counts. Both outlive this. target:
  // the file of `to`. pages: to be copied, from 0 on.
  PageCopy(const ParityShape& source, ParityFiles& from, FileId target, ParityFiles& to, std::uint64_t pages);

  // The next pages, of about `bytes` bytes, or one page. .par is cloned where the file system can; its
  // pages are read and checked all the same. The numbers in vectors become 0, as a copy's stamps are. Does not sync.
  // Memory: less than 1 MiB. False: nothing is left, or the next page has a damage(). Errors: what the disk says.
  [[nodiscard]] Result<bool> step(std::uint64_t bytes);
  // Cuts off what `to` has behind pages(). Once, after the last step, whatever that said.
  [[nodiscard]] Status finish();

  std::uint64_t pages() const { return done_; }  // that are copied
  bool is_cloned() const { return cloned_; }     // .par shares blocks with the other one
  // Why it ended before all pages, naming the page; empty: it did not.
  const std::string& damage() const { return damage_; }

 private:
  class Entries;

  [[nodiscard]] Status begin();
  [[nodiscard]] Result<std::uint64_t> copy_batch(std::uint64_t bytes);
  [[nodiscard]] Status copy_short_pages(Entries& entries, Range pages);
  [[nodiscard]] Status copy_long_page(Entries& entries, std::uint64_t i);
  // True: all bytes at `at` of .par are in `part`, and in `to` unless it is cloned.
  [[nodiscard]] Result<bool> copy_bytes(std::uint64_t at, std::span<std::byte> part);
  [[nodiscard]] Status keep(Entries& entries, Range pages);
  void stop(const std::string& why);
  bool is_over() const { return done_ == pages_ || !damage_.empty(); }

  const ParityShape& source_;
  ParityFiles& from_;
  const FileId target_;
  ParityFiles& to_;
  const std::uint64_t pages_;
  bool begun_ = false;
  bool cloned_ = false;
  std::uint64_t done_ = 0;
  std::uint64_t end_ = 0;           // of the last page that is copied, in .par
  std::uint64_t written_back_ = 0;  // bytes of .par that are on their way to the disk
  std::string damage_;
  std::vector<std::byte> buffer_;
};

}  // namespace pif::component
