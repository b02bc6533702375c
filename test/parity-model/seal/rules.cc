#include "parity-model/seal/rules.h"

#include <array>

#include "parity-model/seal/steps.h"

namespace pif::parity_model {
namespace {

using seal::Weak;

constexpr std::array kRules = {
    Rule{"gather-before-commit", "a commit waits for the gather"},
    Rule{"create-in-one-view", "all of a create happens in one view; else it starts over"},
    Rule{"gather-sealed-rows", "P gathers rows that their LFSs have sealed"},
    Rule{"own-frames-for-absent", "for rows of an absent LFS P takes its own frames"},
    Rule{"answered-when-durable", "rows, copies, and what was gathered are answered when they are durable"},
    Rule{"done-needs-both", "a range is done when its rows and its copies or its page are durable"},
    Rule{"cover-after-rows", "Cover is sent when all rows of the page are durable"},
    Rule{"cover-is-noted", "a page of Cover outlives a restart of P before it is published and counted"},
    Rule{"newer-drops-older", "a newer generation drops rows, copies and pages from its base on"},
    Rule{"older-generation-refused", "rows, copies and Cover of an older generation are refused"},
    Rule{"only-absent-left-out", "only who is absent in the view is left out; silent is not absent"},
    Rule{"shown-at-both", "a length is shown when sequencer and deputy have it durably"},
    Rule{"noted-not-cancelled", "a range whose note was sent is not cancelled"},
    Rule{"settle-with-deputy", "the sequencer settles with its deputy before it grants"},
    Rule{"settle-in-each-view", "the sequencer settles again in each new view"},
    Rule{"deputy-takes-over", "while LFS 0 is absent its deputy is the sequencer"},
    Rule{"deputy-stops", "from the cutover view on the deputy grants no more; LFS 0 does when it has opened"},
    Rule{"fold-published", "P folds published rows; that it has noted a length is not enough"},
    Rule{"published-is-told", "P is told the published length"},
    Rule{"fold-whole-groups", "P folds whole groups"},
    Rule{"count-after-sync", "a page is counted when it is synced"},
    Rule{"frames-go-with-count", "frames go in the transaction that counts their page"},
    Rule{"older-view-refused", "requests of an older view are refused"},
    Rule{"alone-with-lease", "a sequencer tells lengths only with a lease"},
    Rule{"lost-drops-unpublished", "who learns that it was lost drops what it does not know to be published"},
    Rule{"lost-forgets-length", "the length of who was lost does not count"},
    Rule{"rebuild-published", "rounds of rebuilding take what is published"},
    Rule{"rest-in-cutover-view", "in the cutover view the rest is fetched"},
    Rule{"settle-before-opening", "who returns takes the length that was settled in the cutover view"},
    Rule{"fetch-from-adopted", "who returns fetches from those that have adopted the cutover view"},
    Rule{"read-at-p-until-open", "until who returns has opened, its rows are read at P"},
    Rule{"returning-is-written", "rows, copies and notes go to who returns from the cutover view on"},
};

constexpr Mutant mutant(Weak weak, std::string_view name, std::string_view rule, std::string_view weakened,
                        const Bounds& bounds) {
  return {static_cast<Byte>(weak), name, rule, weakened, bounds};
}

// Bounds: sealed, appends, crashes, losses.
constexpr std::array kMutants = {
    mutant(Weak::kCommitBeforeGather, "commit-before-gather", "gather-before-commit", "the commit does not wait for P",
           {2, 0, 0, 0}),
    mutant(Weak::kCreateAcrossViews, "create-across-views", "create-in-one-view", "the create goes on in the new view",
           {2, 0, 0, 1}),
    mutant(Weak::kCreateNeverStartsOver, "create-never-starts-over", "create-in-one-view",
           "the create waits for a view that is gone", {2, 0, 0, 1}),
    mutant(Weak::kGatherUnsealed, "gather-unsealed", "gather-sealed-rows", "P gathers what has arrived", {2, 0, 0, 0}),
    mutant(Weak::kGatherAnsweredUnsynced, "gather-answered-unsynced", "answered-when-durable",
           "the gather at seal is answered before its sync", {2, 0, 0, 0}),
    mutant(Weak::kGatherWaitsForAbsent, "gather-waits-for-absent", "own-frames-for-absent",
           "the gather needs rows from all LFSs", {2, 0, 0, 1}),
    mutant(Weak::kRowAnsweredUnsynced, "row-answered-unsynced", "answered-when-durable",
           "a row is answered before its sync", {1, 1, 0, 0}),
    mutant(Weak::kCopyAnsweredUnsynced, "copy-answered-unsynced", "answered-when-durable",
           "a copy is answered before its sync", {1, 1, 0, 0}),
    mutant(Weak::kCoverAnsweredUnsynced, "cover-answered-unsynced", "answered-when-durable",
           "Cover is answered before its sync", {0, 1, 0, 0}),
    mutant(Weak::kDoneWithoutRow, "done-without-row", "done-needs-both", "copies at P are enough", {1, 1, 0, 0}),
    mutant(Weak::kDoneWithoutCopy, "done-without-copy", "done-needs-both", "rows without copies are enough",
           {1, 1, 0, 0}),
    mutant(Weak::kDoneWithoutCover, "done-without-cover", "done-needs-both", "a page's rows without Cover are enough",
           {0, 1, 0, 0}),
    mutant(Weak::kCoverBeforeRows, "cover-before-rows", "cover-after-rows", "P gathers what has arrived", {0, 2, 0, 0}),
    mutant(Weak::kCoverForgotten, "cover-forgotten", "cover-is-noted", "a restart of P drops pages beyond `pages`",
           {0, 1, 1, 0}),
    mutant(Weak::kOldRowsKept, "old-rows-kept", "newer-drops-older", "a row that is there is kept", {0, 2, 0, 0}),
    mutant(Weak::kOldFramesKept, "old-frames-kept", "newer-drops-older", "a copy that is there is kept", {0, 2, 0, 0}),
    mutant(Weak::kOldPageKept, "old-page-kept", "newer-drops-older", "copies do not drop a page of Cover",
           {0, 3, 0, 0}),
    mutant(Weak::kOlderGenerationAccepted, "older-generation-accepted", "older-generation-refused",
           "late requests are taken", {0, 2, 0, 0}),
    mutant(Weak::kOldCoverAccepted, "old-cover-accepted", "older-generation-refused", "P takes a late Cover",
           {0, 3, 0, 0}),
    mutant(Weak::kSilentIsAbsent, "silent-is-absent", "only-absent-left-out", "who does not answer is left out",
           {1, 1, 1, 0}),
    mutant(Weak::kAbsentAwaited, "absent-awaited", "only-absent-left-out", "an append waits for rows of all LFSs",
           {0, 1, 0, 1}),
    mutant(Weak::kShownWithoutDeputy, "shown-without-deputy", "shown-at-both", "the sequencer's own length is enough",
           {1, 1, 0, 0}),
    mutant(Weak::kCancelledAfterNote, "cancelled-after-note", "noted-not-cancelled", "any range is cancelled",
           {1, 2, 1, 0}),
    mutant(Weak::kSettlesAlone, "settles-alone", "settle-with-deputy", "the sequencer starts with its own length",
           {1, 2, 1, 0}),
    mutant(Weak::kSettlesAtStartsOnly, "settles-at-starts-only", "settle-in-each-view",
           "what was granted in an older view goes on", {0, 1, 0, 1}),
    mutant(Weak::kNoTakeover, "no-takeover", "deputy-takes-over", "appends wait for LFS 0", {0, 1, 0, 1}),
    mutant(Weak::kDeputyGoesOn, "deputy-goes-on", "deputy-stops", "it grants until all are members", {0, 1, 0, 1}),
    mutant(Weak::kFoldUnpublished, "fold-unpublished", "fold-published", "P folds whatever it has", {0, 2, 0, 0}),
    mutant(Weak::kFoldNoted, "fold-noted", "fold-published", "P folds what its note covers, before it is published",
           {0, 2, 0, 1}),
    mutant(Weak::kPublishedNotTold, "published-not-told", "published-is-told", "it hears of it with the next append",
           {0, 2, 0, 0}),
    mutant(Weak::kFoldPartial, "fold-partial", "fold-whole-groups", "P folds the rows of a group that are there",
           {0, 1, 0, 0}),
    mutant(Weak::kCountedBeforeSync, "counted-before-sync", "count-after-sync", "the page is counted, then synced",
           {0, 2, 0, 0}),
    mutant(Weak::kFramesFreedFirst, "frames-freed-first", "frames-go-with-count",
           "frames go when their page is written", {0, 2, 0, 0}),
    mutant(Weak::kOldViewAccepted, "old-view-accepted", "older-view-refused", "views are not compared", {0, 2, 0, 1}),
    mutant(Weak::kZombieTellsLength, "zombie-tells-length", "alone-with-lease", "it tells them without", {0, 1, 0, 1}),
    mutant(Weak::kReturnKeepsUnpublished, "return-keeps-unpublished", "lost-drops-unpublished",
           "it fetches the rows that it does not have", {0, 2, 0, 1}),
    mutant(Weak::kReturnKeepsLength, "return-keeps-length", "lost-forgets-length", "the maximum counts its length",
           {0, 2, 0, 1}),
    mutant(Weak::kRebuildTakesUnpublished, "rebuild-takes-unpublished", "rebuild-published",
           "rounds take all copies that P has", {0, 2, 0, 1}),
    mutant(Weak::kOpensWithoutRest, "opens-without-rest", "rest-in-cutover-view",
           "it opens with what the rounds have brought", {0, 1, 0, 1}),
    mutant(Weak::kOpensBeforeSettled, "opens-before-settled", "settle-before-opening",
           "it takes the sequencer's length as it is", {0, 1, 0, 1}),
    mutant(Weak::kOpensBeforeAdopted, "opens-before-adopted", "fetch-from-adopted", "it fetches from whoever is up",
           {0, 1, 0, 1}),
    mutant(Weak::kServesBeforeOpen, "serves-before-open", "read-at-p-until-open", "it serves in the cutover view",
           {1, 0, 0, 1}),
    mutant(Weak::kReturningLeftOut, "returning-left-out", "returning-is-written",
           "who returns is left out until all are members", {0, 1, 0, 1}),
};

constexpr std::array kTested = {Bounds{4, 0, 1, 1}, Bounds{1, 3, 1, 0}, Bounds{0, 3, 2, 0},
                                Bounds{0, 1, 0, 2}, Bounds{2, 2, 1, 1}, Bounds{0, 2, 1, 1}};
constexpr std::array kLarger = {Bounds{3, 1, 1, 2}, Bounds{1, 3, 1, 1}, Bounds{0, 2, 2, 1}, Bounds{0, 2, 0, 2},
                                Bounds{1, 2, 1, 2}};

model::Outcome search_all(const Bounds& bounds, Byte weak, std::uint64_t states_max, bool ends) {
  const seal::Steps steps(bounds, static_cast<Weak>(weak));
  return model::Search<seal::Steps>(steps, steps.first(), states_max, ends).run();
}

}  // namespace

const Model kSeal = {"seal", seal::kRecords, false, kRules, kMutants, kTested, kLarger, search_all};

}  // namespace pif::parity_model
