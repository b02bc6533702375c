// A component whose entry in the catalogue cannot be read is made anew out of what others have, like those of an LFS
// with an empty disk. Its entry stays as it is until that is durable; until then this LFS does not have its part. One
// at a time. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "parity/file_restore.h"
#include "parity/rebuild.h"

namespace pif::lfs {

class EntryMend {
 public:
  using Done = std::function<void(const Status&)>;  // on the loop's thread; perhaps before start() returns

  // All outlive it. ask: of the PIF Server, which file that is.
  EntryMend(Keeping& keeping, Managing& managing, Rebuild::Ask ask, RateLimit& rate);

  // Nothing is under way. Errors: why it stays as it is; kUnavailable: not all LFSs of the file are members.
  void start(FileId file, Done done);
  // What had to wait for the rate goes on, if it may.
  void advance();
  bool is_busy() const { return done_ != nullptr; }

 private:
  void listed(const Result<net::Packet>& reply);
  [[nodiscard]] Status check_all_there(const proto::FileLayout& layout) const;
  void restore(const proto::ListLostReply::One& file);
  void end(const Status& status);

  Keeping& keeping_;
  LfsContext& context_;
  Managing& managing_;
  const Rebuild::Ask ask_;
  RateLimit& rate_;
  FileId file_;
  Done done_;
  std::shared_ptr<FileRestore> restore_;
};

}  // namespace pif::lfs
