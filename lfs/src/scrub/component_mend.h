// A component that this LFS has lost is made anew out of what others have, like those of an LFS with an empty disk: its
// entry in the catalogue cannot be read, or there is none, or the component ends in front of rows that belong here. An
// entry stays as it is until what replaces it is durable; until then this LFS does not have its part. Files that nobody
// owns are put aside first. One at a time; called by a fiber.
#pragma once

#include "rebuild/file_restore.h"
#include "requests/reporting.h"

namespace pif::lfs {

class ComponentMend {
 public:
  using One = proto::ListLostReply::One;

  // All outlive it. reporting: asks the PIF Server which file that is.
  ComponentMend(Keeping& keeping, Managing& managing, Reporting& reporting, RateLimit& rate);

  // Whether it was made anew; false: nothing of the file belongs here, or it was removed, and there is no damage.
  // Errors: why it stays as it is; kUnavailable: not all LFSs of the file are members.
  // One of which there is an entry.
  [[nodiscard]] Result<bool> mend(FileId file);
  // One of which there is none, as the PIF Server has just listed it. only_look: kCancelled if it is to be made.
  [[nodiscard]] Result<bool> make(const One& file, bool only_look);

 private:
  [[nodiscard]] Result<One> list(FileId file);
  [[nodiscard]] Status check_all_there(const One& file) const;
  [[nodiscard]] bool has_part(const One& file) const;
  [[nodiscard]] Result<bool> restore(const One& file, FileRestore::Purpose purpose);

  Keeping& keeping_;
  LfsContext& context_;
  Managing& managing_;
  Reporting& server_;
  RateLimit& rate_;
};

}  // namespace pif::lfs
