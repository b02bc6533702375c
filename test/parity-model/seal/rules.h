// The ways in which the rules of `seal` can be weakened. The model must catch each.
#pragma once

#include "parity-model/cluster.h"

namespace pif::parity_model::seal {

enum class Weak : Byte {
  kNone,
  // Creating.
  kCommitBeforeGather,
  kCreateAcrossViews,
  kCreateNeverStartsOver,
  kGatherUnsealed,
  kGatherAnsweredUnsynced,
  kGatherWaitsForAbsent,
  // Appending.
  kRowAnsweredUnsynced,
  kCopyAnsweredUnsynced,
  kCoverAnsweredUnsynced,
  kDoneWithoutRow,
  kDoneWithoutCopy,
  kDoneWithoutCover,
  kCoverBeforeRows,
  kCoverForgotten,
  kOldRowsKept,
  kOldFramesKept,
  kOldPageKept,
  kOlderGenerationAccepted,
  kOldCoverAccepted,
  kSilentIsAbsent,
  kAbsentAwaited,
  kShownWithoutDeputy,
  kCancelledAfterNote,
  kSettlesAlone,
  kSettlesAtStartsOnly,
  kNoTakeover,
  kDeputyGoesOn,
  // Folding.
  kFoldUnpublished,
  kFoldNoted,
  kPublishedNotTold,
  kFoldPartial,
  kCountedBeforeSync,
  kFramesFreedFirst,
  // Views.
  kOldViewAccepted,
  kZombieTellsLength,
  // Returning.
  kReturnKeepsUnpublished,
  kReturnKeepsLength,
  kRebuildTakesUnpublished,
  kOpensWithoutRest,
  kOpensBeforeSettled,
  kOpensBeforeAdopted,
  kServesBeforeOpen,
  kReturningLeftOut,
};

}  // namespace pif::parity_model::seal
