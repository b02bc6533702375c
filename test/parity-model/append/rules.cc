#include "parity-model/append/rules.h"

#include <array>

#include "parity-model/append/steps.h"

namespace pif::parity_model {
namespace {

using append::Weak;

constexpr std::array kRules = {
    Rule{"done-needs-both", "a range is done when its row and its copy are durable"},
    Rule{"lower-ranges-first", "a range is published when all lower ones are"},
    Rule{"shown-at-both", "a length is shown when sequencer and deputy have it durably"},
    Rule{"noted-not-cancelled", "a range whose note was sent is not cancelled"},
    Rule{"dead-are-cancelled", "the ranges of appenders that do not come back are cancelled"},
    Rule{"older-generation-refused", "rows and copies of an older generation are refused"},
    Rule{"older-note-refused", "a note of an older generation is refused"},
    Rule{"newer-drops-older", "a newer generation drops rows and copies from its base on"},
    Rule{"settle-with-deputy", "the sequencer settles with its deputy before it grants"},
    Rule{"settle-raises-generation", "settling raises the generation at sequencer and deputy"},
    Rule{"raising-cancels", "whoever raises its generation drops what it has above the published length"},
    Rule{"settle-without-absent", "the sequencer settles alone while its deputy is absent"},
    Rule{"takeover-raises-generation", "the deputy's generation is above all that LFS 0 can have used"},
    Rule{"alone-with-lease", "a sequencer tells lengths only with a lease, and its deputy acts for it without one"},
    Rule{"deputy-tells-published", "the deputy tells what LFS 0 said to be published, until it acts for it"},
    Rule{"older-view-refused", "requests of an older view are refused"},
    Rule{"fold-published", "P folds published rows"},
    Rule{"lost-drops-unpublished", "who learns that it was lost drops what it does not know to be published"},
    Rule{"lost-forgets-length", "the length of who was lost does not count"},
};

constexpr Mutant mutant(Weak weak, std::string_view name, std::string_view rule, std::string_view weakened,
                        const Bounds& bounds) {
  return {static_cast<Byte>(weak), name, rule, weakened, bounds};
}

// Bounds: sealed, appends, crashes, losses.
constexpr std::array kMutants = {
    mutant(Weak::kDoneWithoutRow, "done-without-row", "done-needs-both", "a copy at P is enough", {0, 1, 0, 0}),
    mutant(Weak::kDoneWithoutCopy, "done-without-copy", "done-needs-both", "a row without its copy is enough",
           {0, 1, 0, 0}),
    mutant(Weak::kPublishedBeforeLower, "published-before-lower", "lower-ranges-first",
           "a range is published when it is done", {0, 2, 0, 0}),
    mutant(Weak::kShownWithoutDeputy, "shown-without-deputy", "shown-at-both", "the sequencer's own length is enough",
           {0, 1, 0, 0}),
    mutant(Weak::kCancelledAfterNote, "cancelled-after-note", "noted-not-cancelled", "any range is cancelled",
           {0, 3, 1, 0}),
    mutant(Weak::kDeadNotCancelled, "dead-not-cancelled", "dead-are-cancelled", "grants do not lapse", {0, 2, 0, 0}),
    mutant(Weak::kOlderGenerationAccepted, "older-generation-accepted", "older-generation-refused",
           "late requests are taken", {0, 2, 0, 0}),
    mutant(Weak::kOldNoteAccepted, "old-note-accepted", "older-note-refused", "late notes are taken", {0, 2, 1, 0}),
    mutant(Weak::kOldRowsKept, "old-rows-kept", "newer-drops-older", "a row that is there is kept", {1, 2, 0, 0}),
    mutant(Weak::kOldCopiesKept, "old-copies-kept", "newer-drops-older", "a copy that is there is kept", {0, 2, 0, 0}),
    mutant(Weak::kSettlesAlone, "settles-alone", "settle-with-deputy", "the sequencer starts with its own length",
           {0, 2, 1, 0}),
    mutant(Weak::kSettleKeepsGeneration, "settle-keeps-generation", "settle-raises-generation",
           "the deputy hears of the new generation later", {0, 2, 1, 0}),
    mutant(Weak::kRaiseKeepsCopies, "raise-keeps-copies", "raising-cancels",
           "what is there is taken for repeated requests", {0, 2, 1, 0}),
    mutant(Weak::kSettleWaitsForAbsent, "settle-waits-for-absent", "settle-without-absent",
           "it waits for its deputy in any view", {0, 1, 0, 1}),
    mutant(Weak::kTakeoverKeepsGeneration, "takeover-keeps-generation", "takeover-raises-generation",
           "the deputy goes on with the generation that it knows", {1, 2, 0, 1}),
    mutant(Weak::kTakeoverCountsOwn, "takeover-counts-own", "takeover-raises-generation",
           "the deputy raises the generation that it knows by one", {1, 3, 0, 1}),
    mutant(Weak::kTakeoverUnderLease, "takeover-under-lease", "alone-with-lease",
           "the deputy takes over when it hears of the view", {0, 1, 0, 1}),
    mutant(Weak::kZombieTellsLength, "zombie-tells-length", "alone-with-lease", "LFS 0 tells lengths without",
           {0, 1, 0, 1}),
    mutant(Weak::kDeputyTellsNoted, "deputy-tells-noted", "deputy-tells-published", "it tells what is noted",
           {0, 1, 1, 1}),
    mutant(Weak::kOldViewAccepted, "old-view-accepted", "older-view-refused", "views are not compared", {1, 2, 0, 1}),
    mutant(Weak::kFoldUnpublished, "fold-unpublished", "fold-published", "P folds whatever it has", {0, 2, 0, 0}),
    mutant(Weak::kReturnKeepsUnpublished, "return-keeps-unpublished", "lost-drops-unpublished",
           "it fetches the rows that it does not have", {0, 2, 0, 1}),
    mutant(Weak::kReturnKeepsLength, "return-keeps-length", "lost-forgets-length", "the maximum counts its length",
           {0, 2, 0, 1}),
};

constexpr std::array kTested = {Bounds{0, 3, 1, 0}, Bounds{0, 2, 3, 0}, Bounds{0, 1, 0, 2},
                                Bounds{1, 2, 0, 1}, Bounds{0, 2, 1, 1}, Bounds{1, 2, 0, 1, true}};
constexpr std::array kLarger = {Bounds{0, 4, 1, 0}, Bounds{0, 2, 2, 1},       Bounds{0, 2, 0, 2},
                                Bounds{0, 3, 1, 1}, Bounds{0, 2, 1, 1, true}, Bounds{0, 3, 0, 1, true}};

model::Outcome search_all(const Bounds& bounds, Byte weak, std::uint64_t states_max, bool ends) {
  const append::Steps steps(bounds, static_cast<Weak>(weak));
  return model::Search<append::Steps>(steps, steps.first(), states_max, ends).run();
}

}  // namespace

const Model kAppend = {"append", append::kRecords, true, kRules, kMutants, kTested, kLarger, search_all};

}  // namespace pif::parity_model
