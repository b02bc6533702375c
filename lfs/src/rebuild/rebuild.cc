#include "rebuild/rebuild.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/wire/values.h"
#include "pif/wire/views.h"
#include "store/catalogue.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kFilesAtOnce = 64;
constexpr std::uint64_t kBytesAtOnce = 32u << 20;  // of files that are not written yet, each counted up to the next
constexpr std::uint64_t kFileBytesMax = 8u << 20;  // about what one of them has in memory
constexpr std::uint64_t kHereBytes = 1u << 20;     // as which one counts that is there: it lacks little
constexpr std::size_t kQueueLow = 256;
constexpr Duration kJustEnded = std::chrono::minutes(1);
constexpr std::size_t kFailuresMax = 100;                  // that are reported
constexpr Duration kShortRound = std::chrono::seconds(1);  // what came meanwhile is left to the last one
constexpr unsigned kBarrenMax = 2;                         // then people hear that it does not go on
constexpr Duration kPauseFirst = std::chrono::milliseconds(200);
constexpr Duration kPauseMax = std::chrono::seconds(30);
constexpr Duration kAskAgain = std::chrono::milliseconds(200);
constexpr unsigned kRoundsMax = 8;  // the last one ends, whatever is written

}  // namespace

Rebuild::Rebuild(Keeping& keeping, Managing& managing, Reporting& reporting, const Holding& holding)
    : keeping_(keeping),
      context_(keeping.context),
      managing_(managing),
      server_(reporting),
      holding_(holding),
      news_(keeping.context.fibers) {
  context_.operations.bind<&Rebuild::rebuild>(*this);
  context_.operations.bind<&Rebuild::rebuild_status>(*this);
  context_.view_watchers.push_back(this);
  context_.rebuilding = this;
  context_.fibers.start<&Rebuild::serve>(*this);
  context_.fibers.start<&Rebuild::hear_when_it_may>(*this);
}

// What others write comes here from the moment on at which this LFS is returning: but only of files that have caught
// up in that view. It may have been lost again in between.
void Rebuild::view_adopted() {
  const std::uint32_t own = own_state();
  const std::uint32_t order = context_.view.lost_order_of(context_.config.node);
  if (order != 0) lost_order_ = order;  // it falls when a person gives up what only this LFS had
  news_.notify();
  if (own == std::exchange(last_state_, own)) return;
  context_.lost_files.expect_any();
  if (is_over_) return;
  is_lost_again_ = kind_ != Kind::kCatchUp && (own == wire::kViewLost || own == wire::kViewRebuilding);
  is_over_ = is_lost_again_ || (kind_ != Kind::kLacking && !is_incomplete());
  if (is_over_) phase_ = Phase::kMember;
}

bool Rebuild::may_begin() const { return context_.standing == Standing::kServing && !holding_.is_asked(); }

void Rebuild::hear_when_it_may() {
  for (;;) {
    context_.admission.news().wait();
    news_.notify();
  }
}

// ---- who asks ------------------------------------------------------------------------------------------------------

Status Rebuild::rebuild(const Request&, const proto::Rebuild& asked) {
  const bool lacks = lacks_files();
  const bool has_just_ended = ended_ != Time{} && context_.now() - ended_ < kJustEnded;
  if (own_state() == wire::kViewMember && !lacks && has_just_ended) return {};  // who asks came a moment too late
  if (own_state() == wire::kViewMember && !lacks)
    return fail(Code::kInvalid, fmt::format("{} has nothing to rebuild", context_.config.name));
  if (!is_incomplete() && !lacks)
    return fail(Code::kUnavailable,
                fmt::format("{} is lost to the others, and has not come back yet: try again", context_.config.name));
  rate_.set(asked.bytes_per_second(), context_.now());
  if (!is_asked_) begun_ = context_.now();
  is_asked_ = true;
  if (phase_ == Phase::kPausing) {
    barren_rounds_ = 0;
    is_hurried_ = true;
  }
  news_.notify();
  return {};
}

std::uint32_t Rebuild::own_state() const { return context_.view.state_of(context_.config.node); }

bool Rebuild::is_incomplete() const {
  return own_state() == wire::kViewRebuilding || own_state() == wire::kViewReturning;
}

bool Rebuild::lacks_files() const { return own_state() == wire::kViewMember && !context_.lost_files.lacking().empty(); }

std::uint32_t Rebuild::percent() const {
  if (!is_incomplete() || phase_ == Phase::kMember || phase_ == Phase::kSurveying) return 0;
  if (progress_.bytes_total == 0) return 100;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(progress_.bytes * 100 / progress_.bytes_total, 100));
}

std::uint32_t Rebuild::state() const {
  switch (phase_) {
    case Phase::kMember:
      if (!context_.lost_files.lacking().empty()) return wire::kRebuilding;
      return is_incomplete() ? wire::kRebuildWaits : wire::kRebuilt;
    case Phase::kSettingAside: return wire::kRebuilding;
    case Phase::kWaiting: return wire::kRebuildWaits;
    case Phase::kTelling: return wire::kRebuildSettles;
    case Phase::kSurveying: return is_asked_ ? wire::kRebuilding : wire::kRebuildWaits;
    case Phase::kPausing:
    case Phase::kRestoring: return barren_rounds_ >= kBarrenMax ? wire::kRebuildPauses : wire::kRebuilding;
  }
  PIF_ASSERT(false, static_cast<unsigned>(phase_));
  return wire::kRebuilding;
}

Result<net::Packet> Rebuild::rebuild_status(const Request& request, const proto::RebuildStatus&) {
  net::Packet reply = Replies::reply(request);
  proto::RebuildStatusReply& out = *reply.envelope.mutable_rebuild_status_reply();
  out.set_state(state());
  out.set_files(progress_.files);
  out.set_files_total(progress_.files_total);
  out.set_bytes(progress_.bytes);
  out.set_bytes_total(progress_.bytes_total);
  out.set_bytes_now(bytes_now_);
  const Time until = phase_ == Phase::kMember ? ended_ : context_.now();
  const Duration elapsed = std::max<Duration>(until - begun_, Duration::zero());
  if (begun_ != Time{})
    out.set_elapsed_ms(
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count()));
  for (const Failure& failure : last_failures_) {
    auto& one = *out.add_failed();
    one.set_file(failure.file);
    one.set_path(failure.path);
    one.mutable_error()->set_code(static_cast<std::uint32_t>(failure.error.code));
    one.mutable_error()->set_node(failure.error.node);
    const std::string& node = failure.error.node;
    one.mutable_error()->set_text(node.empty() ? failure.error.text : node + ": " + failure.error.text);
  }
  out.set_failed_count(last_failed_);
  out.set_rounds(rounds_);
  return reply;
}

// ---- all of it ------------------------------------------------------------------------------------------------------

void Rebuild::serve() {
  for (;;) {
    while (!may_begin() || !(is_incomplete() || lacks_files())) news_.wait();
    PIF_ASSERT(is_over_ && phase_ == Phase::kMember, is_over_, static_cast<unsigned>(phase_));
    is_over_ = is_lost_again_ = false;
    barren_rounds_ = 0;
    const bool has_all = is_incomplete() ? come_back() : restore_lacking();
    PIF_ASSERT(has_all != is_over_, has_all);
    is_over_ = true;
    phase_ = Phase::kMember;
    if (!is_lost_again_) become_member();
  }
}

bool Rebuild::come_back() {
  // It was returning before, in this view, and goes on by itself.
  kind_ = own_state() == wire::kViewReturning ? Kind::kLast : Kind::kCatchUp;
  if (!survey()) return false;
  if (kind_ == Kind::kCatchUp) {
    if (!restore_all() || !tell_server(wire::kViewReturning)) return false;
    kind_ = Kind::kLast;  // rows come here again: what came until then is fetched
  }
  return restore_all() && tell_server(wire::kViewMember);
}

// Of a member; all of it, in the end.
bool Rebuild::restore_lacking() {
  kind_ = Kind::kLacking;
  for (;;) {
    const auto& lacking = context_.lost_files.lacking();
    const RoundPtr round = run_round(lacking.begin()->first - 1);
    if (!round) return false;
    std::vector<std::uint64_t> done = round->restored_lacking;
    for (const auto& [file, order] : lacking)  // those that are not listed were removed
      if (!std::binary_search(round->surveyed.begin(), round->surveyed.end(), file)) done.push_back(file);
    if (!done.empty()) {
      const Status removed = lacking_files_.remove(done);
      if (!removed) spdlog::warn("the PIF Server cannot be told what is back: {}", removed.error().text);
      if (is_over_) return false;
    }
    if (lacking.empty()) return true;
    if (!pause()) return false;
  }
}

void Rebuild::become_member() {
  if (own_state() == wire::kViewMember)
    spdlog::info("{} has all that it lost: {} files, {} bytes", context_.config.name, progress_.files, bytes_now_);
  ended_ = context_.now();
  is_asked_ = false;
  lost_order_ = 0;
  progress_.files_total = progress_.files;
  progress_.bytes_total = progress_.bytes;
  last_failures_.clear();
  last_failed_ = 0;
  context_.lost_files.expect_any();  // of the next time
}

// ---- its steps ------------------------------------------------------------------------------------------------------

// Which files it lacks. One that has something was away, and one that took part before, with nothing as yet. An empty
// disk is filled when a person says so.
bool Rebuild::survey() {
  phase_ = Phase::kSurveying;
  context_.lost_files.expect_any();
  last_state_ = own_state();
  is_asked_ = is_asked_ || kind_ == Kind::kLast;
  begun_ = context_.now();
  progress_ = {};
  bytes_now_ = 0;
  std::uint64_t missing = 0;
  std::vector<std::uint64_t> files;
  LackingFiles::Files lacking;  // as the server knows, perhaps of the root before
  const auto take = [&](proto::ListLostReply& page) {
    for (const One& file : page.files()) {
      files.push_back(file.file());
      for (const proto::FileLack& lack : file.lacking())
        if (lack.node() == context_.config.node) lacking.try_emplace(file.file(), lack.order());
      missing += count(file) ? 1 : 0;
    }
  };
  if (!list(0, take)) return false;
  PIF_ASSERT(std::is_sorted(files.begin(), files.end()), files.size());
  if (kind_ != Kind::kLast) context_.lost_files.expect(std::move(files));
  spdlog::info("{} lacks {} of {} files with parity, and looks whether others are behind", context_.config.name,
               missing, progress_.files_total);
  if (auto kept = lacking_files_.adopt(lacking); !kept)
    spdlog::warn("files that are lacking cannot be noted: {}", kept.error().text);
  if (context_.components.totals().components > 0 || context_.view.was_member() || missing == 0) return !is_over_;
  phase_ = Phase::kWaiting;
  while (!is_asked_ && !is_over_) news_.wait();
  return !is_over_;
}

// Whether it is missing.
bool Rebuild::count(const One& file) {
  const std::uint64_t bytes = weight(file);
  const bool keeps_length = file.file_length().records() > 0 && file.layout().nodes(0) == context_.config.node;
  if (bytes == 0 && !keeps_length) return false;  // nothing of it belongs here
  const bool is_there = is_here(file.file());
  ++progress_.files_total;
  progress_.bytes_total += bytes;
  progress_.files += is_there ? 1 : 0;
  progress_.bytes += is_there ? bytes : 0;
  return !is_there;
}

// Rounds until little came meanwhile, and nothing of it failed but what is set aside.
bool Rebuild::restore_all() {
  for (unsigned long_rounds = 0;;) {
    const RoundPtr round = run_round();
    if (!round) return false;
    if (round->failed > 0) {
      if (!(may_set_aside(*round) ? set_aside(*round) : pause())) return false;
    } else if (kind_ == Kind::kLast || round->is_short || ++long_rounds >= kRoundsMax) {
      return true;
    }
  }
}

bool Rebuild::pause() {
  phase_ = Phase::kPausing;
  is_hurried_ = false;
  const unsigned doublings = std::min(barren_rounds_, 8u);
  const Time until = context_.now() + std::min<Duration>(kPauseFirst * (1u << doublings), kPauseMax);
  while (!is_hurried_ && !is_over_ && context_.now() < until) news_.wait(until);
  return !is_over_;
}

// They failed twice in a row, and it is known which of the others were lost later.
bool Rebuild::may_set_aside(const Round& round) const {
  return barren_rounds_ >= kBarrenMax && lost_order_ > 0 &&
         context_.lost_files.lacking().size() + round.failed_files.size() <= LackingFiles::kFilesMax;
}

// Files that hold up only themselves. The next round is one in which nothing fails, or little more.
bool Rebuild::set_aside(const Round& round) {
  phase_ = Phase::kSettingAside;
  spdlog::warn("{} goes on without its part of {} files, which cannot be rebuilt at present", context_.config.name,
               round.failed_files.size());
  while (ready()) {
    const Status added = lacking_files_.add(round.failed_files, lost_order_);
    if (added) {
      barren_rounds_ = 0;
      return !is_over_;
    }
    spdlog::warn("files cannot be set aside yet: {}", added.error().text);
    if (!wait_until(context_.now() + kAskAgain)) return false;
  }
  return false;
}

// Until it is so in the view, which comes with a heartbeat.
bool Rebuild::tell_server(std::uint32_t view_state) {
  phase_ = Phase::kTelling;
  while (ready() && own_state() != view_state) {
    net::Packet packet;
    proto::NodeRebuilt& word = *packet.envelope.mutable_node_rebuilt();
    word.set_node(context_.config.node);
    word.set_state(view_state);
    const auto reply = server_.ask(std::move(packet));
    if (!reply)
      spdlog::warn("the PIF Server cannot be told that {} is rebuilt: {}", context_.config.name, reply.error().text);
    const Time again = context_.now() + kAskAgain;
    while (!is_over_ && own_state() != view_state && context_.now() < again) news_.wait(again);
  }
  return !is_over_;
}

bool Rebuild::ready() {
  while (!may_begin() && !is_over_) news_.wait();
  return !is_over_;
}

bool Rebuild::wait_until(Time until) {
  while (!is_over_ && context_.now() < until) news_.wait(until);
  return ready();
}

bool Rebuild::list(std::uint64_t after, const std::function<void(proto::ListLostReply&)>& take) {
  for (bool has_more = true; has_more;) {
    if (!ready()) return false;
    net::Packet packet;
    proto::ListLost& asked = *packet.envelope.mutable_list_lost();
    asked.set_node(context_.config.node);
    asked.set_after(after);
    auto reply = server_.ask(std::move(packet));
    auto* const listed = reply ? reply->envelope.mutable_list_lost_reply() : nullptr;
    if (listed == nullptr || (listed->more() && listed->last() <= after)) {
      if (!wait_until(context_.now() + kAskAgain)) return false;
      continue;
    }
    if (is_over_) return false;
    after = listed->last();
    has_more = listed->more();
    take(*listed);
  }
  return true;
}

// ---- one round ------------------------------------------------------------------------------------------------------

Rebuild::RoundPtr Rebuild::run_round(std::uint64_t after) {
  if (!ready()) return nullptr;
  phase_ = Phase::kRestoring;
  const Time begun = context_.now();
  const auto round = std::make_shared<Round>();
  // Where all fibers are ended these may leave after this one.
  context_.fibers.start<&Rebuild::list_files>(*this, round, after);
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
void Rebuild::list_files(const RoundPtr& kept, std::uint64_t after) {
  Round& round = *kept;
  const bool is_whole = list(after, [&](proto::ListLostReply& page) {
    take_page(round, page);
    news_.notify();
    while (round.queue.size() >= kQueueLow && !is_over_) news_.wait();
  });
  const bool is_news = kind_ == Kind::kCatchUp || (kind_ == Kind::kLast && !context_.lost_files.are_known());
  if (is_whole && !is_over_ && is_news) context_.lost_files.expect(round.surveyed);
  round.is_listing = false;
  news_.notify();
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
  while (may_begin() && !round->queue.empty() && round->under_way < kFilesAtOnce) {
    const One& file = round->queue.front();
    const bool is_new = !is_here(file.file());
    const std::uint64_t held = std::min(weight(file), is_new ? kFileBytesMax : kHereBytes);
    if (round->under_way > 0 && round->held + held > kBytesAtOnce) return kNever;
    if (round->under_way > 0 && !rate_.is_free(context_.now())) return rate_.next_look(context_.now());
    round->held += held;
    ++round->under_way;
    context_.fibers.start<&Rebuild::restore>(*this, round, One(file), held, is_new);
    round->queue.pop_front();
  }
  return kNever;
}

void Rebuild::restore(const RoundPtr& kept, const One& file, std::uint64_t held, bool is_new) {
  Round& round = *kept;
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
  if (!outcome && is_lacking && file.given_up() && barren_rounds_ >= kBarrenMax) {
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
