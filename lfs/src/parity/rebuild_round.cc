// One round of a rebuild: the files that the PIF Server lists are restored, many at once in bounded memory.
#include <algorithm>

#include <spdlog/spdlog.h>

#include "parity/rebuild.h"
#include "pif/base/assert.h"
#include "store/catalogue.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kFilesAtOnce = 64;
constexpr std::uint64_t kBytesAtOnce = 32u << 20;  // of files that are not written yet, each counted up to the next
constexpr std::uint64_t kFileBytesMax = 8u << 20;  // about what one of them has in memory
constexpr std::uint64_t kHereBytes = 1u << 20;     // as which one counts that is there: it lacks little
constexpr std::size_t kQueueLow = 256;
constexpr std::size_t kFailuresMax = 100;                  // that are told of
constexpr unsigned kGivenUpAfter = 2;                      // rounds in which nothing was restored
constexpr Duration kShortRound = std::chrono::seconds(1);  // what came meanwhile is left to the last one

}  // namespace

Rebuild::RoundPtr Rebuild::run_round(std::uint64_t after) {
  if (!ready()) return nullptr;
  phase_ = Phase::kRestoring;
  const Time begun = context_.now();
  const auto round = std::make_shared<Round>();
  // Where all fibers are ended these may leave after this one.
  context_.fibers.start([this, round, after] {
    list_files(*round, after);
    round->is_listing = false;
    news_.notify();
  });
  for (;;) {
    const Time next = start_files(round);
    if (!round->is_listing && round->queue.empty() && round->under_way == 0) break;
    news_.wait(next);
  }
  PIF_ASSERT(round->held == 0, round->held);
  if (is_over_) return nullptr;
  ++rounds_;
  last_failures_ = round->failures;
  last_failed_ = round->failed;
  barren_rounds_ = round->restored == 0 && round->failed > 0 ? barren_rounds_ + 1 : 0;
  round->is_short = round->restored == 0 || context_.now() - begun < kShortRound;
  return round;
}

// Files that were made since the round before are missing here, too. But once all have been listed in the view in which
// this LFS is returning, those that are made are not.
void Rebuild::list_files(Round& round, std::uint64_t after) {
  const bool is_whole = list(after, [&](proto::ListLostReply& page) {
    take_page(round, page);
    news_.notify();
    while (round.queue.size() >= kQueueLow && !is_over_) news_.wait();
  });
  const bool is_news = kind_ == Kind::kCatchUp || (kind_ == Kind::kLast && !context_.lost_files.are_known());
  if (is_whole && !is_over_ && is_news) context_.lost_files.expect(round.surveyed);
}

void Rebuild::take_page(Round& round, proto::ListLostReply& page) const {
  for (One& file : *page.mutable_files()) {
    const FileId id(file.file());
    round.surveyed.push_back(id.value);
    if (context_.lost_files.lacks(id) != (kind_ == Kind::kLacking)) continue;  // tried by a member
    if (kind_ == Kind::kLast && !context_.lost_files.has(id)) continue;
    round.queue.push_back(std::move(file));
  }
}

// Returns when to look again, as the rate allows no more now.
Time Rebuild::start_files(const RoundPtr& round) {
  if (is_over_) round->queue.clear();
  while (may_begin_ && !round->queue.empty() && round->under_way < kFilesAtOnce) {
    const One& file = round->queue.front();
    const bool is_new = !is_here(file.file());
    const std::uint64_t held = std::min(weight(file), is_new ? kFileBytesMax : kHereBytes);
    if (round->under_way > 0 && round->held + held > kBytesAtOnce) return kNever;
    if (round->under_way > 0 && !rate_.is_free(context_.now())) return rate_.next_look(context_.now());
    round->held += held;
    ++round->under_way;
    context_.fibers.start(
        [this, round, held, is_new, file = std::move(round->queue.front())] { restore(*round, file, held, is_new); });
    round->queue.pop_front();
  }
  return kNever;
}

void Rebuild::restore(Round& round, const One& file, std::uint64_t held, bool is_new) {
  bool is_held = true;
  const auto let_go = [&] {
    if (std::exchange(is_held, false)) round.held -= held;
    news_.notify();
  };
  if (!is_over_) {
    const FileRestore::Moment moment{kind_ == Kind::kCatchUp ? 0 : context_.view.index(), order_of(file)};
    FileRestore restore(keeping_, managing_, rate_, file, moment, FileRestore::Purpose::kRebuild, let_go);
    note(round, file, restore.run(), is_new);
  }
  PIF_ASSERT(round.under_way > 0, file.file());
  --round.under_way;
  let_go();
}

void Rebuild::note(Round& round, const One& file, const Result<FileRestore::Outcome>& outcome, bool is_new) {
  const bool is_lacking = kind_ == Kind::kLacking;
  if (!outcome && is_lacking && file.given_up() && barren_rounds_ >= kGivenUpAfter) {
    // A person has given up what cannot be restored of it: what is here is all that there is.
    spdlog::warn("{}: what is not here is given up: {} {}", file.path(), outcome.error().node, outcome.error().text);
    round.restored_lacking.push_back(file.file());
  } else if (!outcome) {
    spdlog::warn("{} cannot be rebuilt at present: {} {}", file.path(), outcome.error().node, outcome.error().text);
    ++round.failed;
    round.failed_files.push_back(file.file());
    if (round.failures.size() < kFailuresMax) round.failures.push_back({file.file(), file.path(), outcome.error()});
  } else if (is_lacking) {
    round.restored_lacking.push_back(file.file());
  } else if (kind_ == Kind::kLast && !is_over_) {
    context_.lost_files.note_caught_up(FileId(file.file()));
  }
  if (!outcome || *outcome != FileRestore::Outcome::kRestored) return;
  const std::uint64_t bytes = is_new ? weight(file) : 0;
  ++round.restored;
  progress_.files += is_new ? 1 : 0;
  progress_.bytes += bytes;
  bytes_now_ += bytes;
}

// When this LFS had all of the file. What others had of one that was given up is not waited for.
std::uint32_t Rebuild::order_of(const One& file) const {
  if (file.given_up()) return UINT32_MAX;
  const auto& lacking = context_.lost_files.lacking();
  const auto known = lacking.find(file.file());
  return known == lacking.end() ? lost_order_ : known->second;
}

bool Rebuild::is_here(std::uint64_t file) {
  if (const auto known = context_.components.find_in_memory(FileId(file))) return known->catalogued;
  const auto stored = catalogue::get(context_.world.catalogue, FileId(file));
  return !stored || stored->has_value();  // one that cannot be read is no reason to make another
}

std::uint64_t Rebuild::weight(const One& file) const {
  const auto layout = layout_of(file.layout());
  const auto format = format_of(file.format());
  const auto& nodes = file.layout().nodes();
  const auto here = std::find(nodes.begin(), nodes.end(), context_.config.node);
  if (!layout || !layout->has_parity() || !format || here == nodes.end()) return 0;
  return bytes_on(*layout, static_cast<LfsIndex>(here - nodes.begin()), *format, file_length_of(file.file_length()));
}

}  // namespace pif::lfs
