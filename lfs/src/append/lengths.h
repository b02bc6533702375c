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

  // Of a file without a component here: 0. kCorrupt: there was one, and its entry is lost. kUnavailable: others may
  // have appended without this LFS, ask the deputy; kOldView; kRetry: its length is about to grow, or whether it has
  // grown is not known here yet; kInvalid: it is not known here.
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
