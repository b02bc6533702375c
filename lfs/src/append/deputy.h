// The sequencer's deputy: it keeps the published length of a file with parity, too, so that it is not lost with LFS 0.
// docs/PROTOCOL.md "Append".
//
// Rules: (1) what a sequencer notes is durable here before it publishes it; with a note, or soon after, it says what it
// has published, and until then nobody here knows whether what is noted ever will be. (2) Notes of an older sequencer,
// or of an older generation of it, are refused, and all while it acts for LFS 0 itself (append_coordinator.h). (3) The
// noted length never falls, but to what a sequencer published that went on while the deputy was absent.
#pragma once

#include "context/lfs_context.h"
#include "store/keeper.h"

namespace pif::lfs {

class Deputy {
 public:
  explicit Deputy(LfsContext& context);

  // The newest that there is, when the note is durable.
  [[nodiscard]] Result<net::Packet> note_length(const Request& request, const proto::NoteLength& asked);

 private:
  [[nodiscard]] Result<ComponentPtr> component_of(const Request& request, const Keeper& keeper);
  // kInvalid, kTooLarge.
  [[nodiscard]] static Status check_length(const proto::NoteLength& asked);
  // kOldView, kRetry, kUnavailable.
  [[nodiscard]] Status check_takes_notes(const proto::NoteLength& asked, const parity::Layout& layout) const;

  LfsContext& context_;
};

}  // namespace pif::lfs
