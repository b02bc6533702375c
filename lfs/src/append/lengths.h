// Length: the published length of a file, of who may know it. docs/PROTOCOL.md "Append".
#pragma once

#include "append/append_coordinator.h"
#include "context/lfs_context.h"
#include "store/aside.h"

namespace pif::lfs {

class Lengths final : public LengthsAtRest {
 public:
  // coordinator: of the same context. All outlive this.
  Lengths(LfsContext& context, AppendCoordinator& coordinator, const Aside& aside);

  // Answers with the published length; 0 if the file has no component here. kCorrupt: it had one, and the entry is
  // lost. kUnavailable: others may have appended without this LFS; ask the deputy. kOldView. kRetry: the length is
  // about to grow, or this LFS does not know yet whether it has grown. kInvalid: this LFS is none that knows the
  // length.
  [[nodiscard]] Result<net::Packet> length(const Request& request, const proto::Length& asked);
  [[nodiscard]] Result<FileLength> length_at_rest(const ComponentPtr& component) override;

 private:
  // At a deputy: others do without LFS 0, or it is back and takes the length from here.
  bool stands_for_first(const Component& component) const;
  // As far as this LFS may say. counts_noted: at a deputy, in any case.
  Sequencer::Publication newest_of(const Component& component, bool counts_noted) const;
  [[nodiscard]] Status check_may_answer(const ComponentPtr& component, const proto::Length& asked);
  [[nodiscard]] Status check_deputy(const ComponentPtr& component, const proto::Length& asked) const;
  // kUnavailable: this LFS is returning, and does not know all lengths yet.
  [[nodiscard]] Status check_not_returning() const;
  bool may_answer_alone() const;
  // Files of a component that were put aside, and may have rows that are published.
  bool aside_has_rows(FileId file) const;

  LfsContext& context_;
  AppendCoordinator& coordinator_;
  const Aside& aside_;
};

}  // namespace pif::lfs
