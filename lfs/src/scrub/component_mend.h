// A component that this LFS has lost is made anew out of what others have, like those of an LFS with an empty disk: its
// entry in the catalogue cannot be read, or there is none, or the component ends in front of rows that belong here. An
// entry stays as it is until what replaces it is durable; until then this LFS does not have its part. Files that nobody
// owns are put aside first. One at a time. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "parity/file_restore.h"
#include "parity/rebuild.h"

namespace pif::lfs {

class ComponentMend {
 public:
  using One = proto::ListLostReply::One;
  enum class Outcome : std::uint8_t {
    kMended,
    kNothing,  // nothing of the file belongs here, or it was removed: there is no damage
    kFailed,
  };
  // error: of kFailed. On the loop's thread; perhaps before start() returns.
  using Done = std::function<void(Outcome, const Error& error)>;

  // All outlive it. ask: of the PIF Server, which file that is.
  ComponentMend(Keeping& keeping, Managing& managing, Rebuild::Ask ask, RateLimit& rate);

  // One of which there is an entry. Nothing is under way. Errors: why it stays as it is; kUnavailable: not all LFSs of
  // the file are members.
  void start(FileId file, Done done);
  // One of which there is none, as the PIF Server has just listed it. only_look: kCancelled if it is to be made.
  void start_missing(const One& file, bool only_look, Done done);
  // What had to wait for the rate goes on, if it may.
  void advance();
  bool is_busy() const { return done_ != nullptr; }

 private:
  using Listed = std::function<void(const Result<One>&)>;
  void list(Listed listed);
  void listed(const Result<One>& file);
  [[nodiscard]] Status check_all_there(const One& file) const;
  [[nodiscard]] bool has_part(const One& file) const;
  void restore(const One& file, FileRestore::Purpose purpose);
  void restored(FileRestore::Outcome outcome, const Error& error);
  void end(Outcome outcome, Error error = {});

  Keeping& keeping_;
  LfsContext& context_;
  Managing& managing_;
  const Rebuild::Ask ask_;
  RateLimit& rate_;
  FileId file_;
  bool is_missing_ = false;  // there is no entry
  Done done_;
  std::shared_ptr<FileRestore> restore_;
};

}  // namespace pif::lfs
