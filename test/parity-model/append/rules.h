// The ways in which the rules of `append` can be weakened. The model must catch each.
#pragma once

#include "parity-model/cluster.h"

namespace pif::parity_model::append {

enum class Weak : Byte {
  kNone,
  kDoneWithoutRow,
  kDoneWithoutCopy,
  kPublishedBeforeLower,
  kShownWithoutDeputy,
  kCancelledAfterNote,
  kDeadNotCancelled,
  kOlderGenerationAccepted,
  kOldNoteAccepted,
  kOldRowsKept,
  kOldCopiesKept,
  kSettlesAlone,
  kSettleKeepsGeneration,
  kRaiseKeepsCopies,
  kSettleWaitsForAbsent,
  kTakeoverKeepsGeneration,
  kTakeoverCountsOwn,
  kTakeoverUnderLease,
  kZombieTellsLength,
  kDeputyTellsNoted,
  kOldViewAccepted,
  kFoldUnpublished,
  kReturnKeepsUnpublished,
  kReturnKeepsLength,
};

}  // namespace pif::parity_model::append
