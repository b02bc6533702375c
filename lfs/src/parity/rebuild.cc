#include "parity/rebuild.h"

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
constexpr std::size_t kQueueLow = 256;
constexpr std::size_t kFailuresMax = 100;  // that are told of
constexpr unsigned kBarrenMax = 2;         // then people are told that it does not go on
constexpr Duration kPauseFirst = std::chrono::milliseconds(200);
constexpr Duration kPauseMax = std::chrono::seconds(30);
constexpr Duration kAskAgain = std::chrono::milliseconds(200);
constexpr std::uint64_t kHereBytes = 1u << 20;             // as which one counts that is there: it lacks little
constexpr Duration kShortRound = std::chrono::seconds(1);  // what came meanwhile is left to the last one
constexpr unsigned kRoundsMax = 8;                         // the last one ends, whatever is written

bool is_incomplete(std::uint32_t view_state) {
  return view_state == wire::kViewRebuilding || view_state == wire::kViewReturning;
}

}  // namespace

Rebuild::Rebuild(Keeping& keeping, Managing& managing, Ask ask)
    : keeping_(keeping), context_(keeping.context), managing_(managing), ask_(std::move(ask)) {
  context_.operations.bind<&Rebuild::rebuild>(*this);
  context_.operations.bind<&Rebuild::rebuild_status>(*this);
  context_.view_watchers.push_back([this] { view_changed(); });
}

// What others write comes here from the moment on at which this LFS is returning: but only of files that have caught
// up in that view. It may have been lost again in between.
void Rebuild::view_changed() {
  const std::uint32_t own = own_state();
  if (own == std::exchange(last_state_, own)) return;
  context_.lost_files.expect_any();
  const bool is_lost_again = own == wire::kViewLost || own == wire::kViewRebuilding;
  if ((is_last_round_ || is_lacking_round_) && is_lost_again) start_over();
}

// ---- who asks ------------------------------------------------------------------------------------------------------

Result<net::Packet> Rebuild::rebuild(const Request& request, const proto::Rebuild& asked) {
  const std::uint32_t own = own_state();
  const bool lacks = own == wire::kViewMember && !context_.lost_files.lacking().empty();
  if (own == wire::kViewMember && !lacks)
    return fail(Code::kInvalid, fmt::format("{} has nothing to rebuild", context_.config.name));
  if (!is_incomplete(own) && !lacks)
    return fail(Code::kUnavailable,
                fmt::format("{} is lost to the others, and has not come back yet: try again", context_.config.name));
  rate_.set(asked.bytes_per_second(), context_.now());
  if (!is_asked_) begun_ = context_.now();
  is_asked_ = true;
  if (phase_ == Phase::kRestoring) step_round();
  if (phase_ == Phase::kWaiting) begin_round();
  if (phase_ == Phase::kPausing) {
    barren_rounds_ = 0;
    is_lacking_round_ ? begin_lacking_round() : begin_round();
  }
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_done();
  return reply;
}

std::uint32_t Rebuild::own_state() const { return context_.view.state_of(context_.config.node); }

std::uint32_t Rebuild::percent() const {
  if (!is_incomplete(own_state()) || phase_ == Phase::kMember || phase_ == Phase::kSurveying) return 0;
  if (progress_.bytes_total == 0) return 100;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(progress_.bytes * 100 / progress_.bytes_total, 100));
}

std::uint32_t Rebuild::state() const {
  switch (phase_) {
    case Phase::kMember:
      if (!context_.lost_files.lacking().empty()) return wire::kRebuilding;
      return is_incomplete(own_state()) ? wire::kRebuildWaits : wire::kRebuilt;
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

// ---- phases --------------------------------------------------------------------------------------------------------

void Rebuild::tick() {
  was_member_ = was_member_ || (context_.view.index() > 0 && own_state() == wire::kViewMember);
  if (context_.standing != Standing::kServing) return;
  context_.rebuilt_percent = percent();
  const std::uint32_t own = own_state();
  if (!is_incomplete(own)) {
    if (phase_ != Phase::kMember && !is_lacking_round_) become_member();
    const bool is_idle = phase_ == Phase::kMember && under_way_.empty() && !is_listing_ && !lacking_files_.is_busy();
    if (own == wire::kViewMember && is_idle && !context_.lost_files.lacking().empty()) begin_lacking_round();
    if (!is_lacking_round_) return;
  }
  const std::uint32_t order = context_.view.lost_order_of(context_.config.node);
  if (order != 0) lost_order_ = order;  // it falls when a person gives up what only this LFS had
  const bool may_try = context_.now() >= next_try_;
  switch (phase_) {
    case Phase::kMember:
      if (!is_listing_ && under_way_.empty()) begin_survey();  // what is left of a time before ends first
      return;
    case Phase::kSurveying:
      if (!is_listing_ && may_try) list([this](proto::ListLostReply& page) { surveyed(page); });
      return;
    case Phase::kWaiting: return;
    case Phase::kRestoring: return step_round();
    case Phase::kPausing:
      if (may_try && !lacking_files_.is_busy()) is_lacking_round_ ? begin_lacking_round() : begin_round();
      return;
    case Phase::kSettingAside:
      if (may_try && !lacking_files_.is_busy()) set_aside();
      return;
    case Phase::kTelling:
      if (own == wire::kViewReturning && !is_last_round_) {
        is_last_round_ = true;
        return begin_round();
      }
      if (!is_telling_ && may_try) tell();
      return;
  }
}

Time Rebuild::next_deadline() const {
  if (context_.standing != Standing::kServing) return kNever;  // tick() does nothing
  switch (phase_) {
    case Phase::kMember:
    case Phase::kWaiting: return kNever;
    case Phase::kSurveying: return is_listing_ ? kNever : next_try_;
    case Phase::kRestoring: {
      const Time listed = !is_listing_ && has_more_ && queue_.size() < kQueueLow ? next_try_ : kNever;
      return std::min(rate_.next_deadline(), listed);
    }
    case Phase::kPausing:
    case Phase::kSettingAside: return lacking_files_.is_busy() ? kNever : next_try_;
    case Phase::kTelling: return is_telling_ ? kNever : next_try_;
  }
  return kNever;
}

void Rebuild::become_member() {
  if (own_state() == wire::kViewMember)
    spdlog::info("{} has all that it lost: {} files, {} bytes", context_.config.name, progress_.files, bytes_now_);
  start_over();
  ended_ = context_.now();
  is_asked_ = false;
  lost_order_ = 0;
  progress_.files_total = progress_.files;
  progress_.bytes_total = progress_.bytes;
  last_failures_.clear();
  last_failed_ = 0;
  context_.lost_files.expect_any();  // of the next time
}

// What is under way comes to its end, and nothing of it counts.
void Rebuild::start_over() {
  phase_ = Phase::kMember;
  is_last_round_ = is_lacking_round_ = false;
  barren_rounds_ = long_rounds_ = 0;
  queue_.clear();
}

void Rebuild::begin_survey() {
  phase_ = Phase::kSurveying;
  context_.lost_files.expect_any();
  last_state_ = own_state();
  // In this view it was restoring before; it goes on by itself.
  is_last_round_ = own_state() == wire::kViewReturning;
  is_asked_ = is_asked_ || is_last_round_;
  begun_ = context_.now();
  progress_ = {};
  bytes_now_ = lacking_ = 0;
  surveyed_.clear();
  list_after_ = 0;
  list([this](proto::ListLostReply& page) { surveyed(page); });
}

void Rebuild::surveyed(proto::ListLostReply& page) {
  for (const One& file : page.files()) {
    for (const proto::FileLack& lack : file.lacking())
      if (lack.node() == context_.config.node) told_lacking_.try_emplace(file.file(), lack.order());
    const std::uint64_t bytes = weight(file);
    surveyed_.push_back(file.file());
    const bool keeps_length = file.file_length().records() > 0 && file.layout().nodes(0) == context_.config.node;
    if (bytes == 0 && !keeps_length) continue;  // nothing of it belongs here
    const bool is_there = is_here(file.file());
    ++progress_.files_total;
    progress_.bytes_total += bytes;
    progress_.files += is_there ? 1 : 0;
    progress_.bytes += is_there ? bytes : 0;
    lacking_ += is_there ? 0 : 1;
  }
  if (!page.more()) end_survey();
}

void Rebuild::end_survey() {
  PIF_ASSERT(std::is_sorted(surveyed_.begin(), surveyed_.end()), surveyed_.size());
  if (!is_last_round_) context_.lost_files.expect(surveyed_);
  spdlog::info("{} lacks {} of {} files with parity, and looks whether others are behind", context_.config.name,
               lacking_, progress_.files_total);
  // One that has something was away, and one that took part before, with nothing as yet. An empty disk is filled when a
  // person says so.
  const bool has_any = context_.components.totals().components > 0;
  if (!told_lacking_.empty() && !lacking_files_.is_busy()) lacking_files_.adopt(std::exchange(told_lacking_, {}));
  if (is_asked_ || has_any || was_member_ || lacking_ == 0) return begin_round();
  phase_ = Phase::kWaiting;
}

// Of files behind that one.
void Rebuild::begin_round(std::uint64_t after) {
  phase_ = Phase::kRestoring;
  PIF_ASSERT(under_way_.empty() && queue_.empty(), under_way_.size(), queue_.size());
  failures_.clear();
  failed_files_.clear();
  restored_lacking_.clear();
  failed_ = restored_ = 0;
  list_after_ = after;
  has_more_ = true;
  surveyed_.clear();
  round_begun_ = context_.now();
  step_round();
}

void Rebuild::step_round() {
  rate_.begin_turn();
  start_files();
  const bool is_low = has_more_ && queue_.size() < kQueueLow;
  if (is_low && !is_listing_ && context_.now() >= next_try_) {
    list([this](proto::ListLostReply& page) { take_page(page); });
  }
  if (phase_ == Phase::kRestoring && !has_more_ && queue_.empty() && under_way_.empty()) end_round();
}

// Files that were made since the round before are missing here, too. But once all have been listed in the view in which
// this LFS is returning, those that are made are not.
void Rebuild::take_page(proto::ListLostReply& page) {
  for (One& file : *page.mutable_files()) {
    surveyed_.push_back(file.file());
    if (context_.lost_files.lacks(FileId(file.file())) != is_lacking_round_) continue;  // tried by a member
    if (is_lacking_round_) {
      queue_.push_back(std::move(file));
      continue;
    }
    if (!is_last_round_ || context_.lost_files.has(FileId(file.file()))) queue_.push_back(std::move(file));
  }
  has_more_ = page.more();
  const bool is_news = is_lacking_round_ ? false : !is_last_round_ || !context_.lost_files.are_known();
  if (!has_more_ && is_news) context_.lost_files.expect(std::exchange(surveyed_, {}));
  if (phase_ == Phase::kRestoring) step_round();
}

std::uint64_t Rebuild::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const UnderWay& one : under_way_)
    if (!*one.is_written) bytes += one.weight;
  return bytes;
}

// A restore may end at once.
void Rebuild::start_files() {
  if (is_starting_) return;
  is_starting_ = true;
  while (!queue_.empty() && under_way_.size() < kFilesAtOnce) {
    const bool is_new = !is_here(queue_.front().file());
    const std::uint64_t held = std::min(weight(queue_.front()), is_new ? kFileBytesMax : kHereBytes);
    if (!under_way_.empty() && (held_bytes() + held > kBytesAtOnce || !rate_.is_free(context_.now()))) break;
    One file = std::move(queue_.front());
    queue_.pop_front();
    const bool is_here_for_good = is_last_round_ || is_lacking_round_;
    const FileRestore::Moment moment{is_here_for_good ? context_.view.index() : 0, order_of(file)};
    const auto is_written = std::make_shared<bool>(false);
    const auto restore = std::make_shared<FileRestore>(
        keeping_, managing_, rate_, file, moment, FileRestore::Purpose::kRebuild, [is_written] { *is_written = true; });
    const std::uint64_t id = file.file();
    under_way_.push_back({std::move(file), held, is_new, moment.view != 0, is_written});
    restore->start([this, id](FileRestore::Outcome outcome, const Error& error) { restored(id, outcome, error); });
  }
  is_starting_ = false;
}

void Rebuild::restored(std::uint64_t file, FileRestore::Outcome outcome, const Error& error) {
  const auto at = std::find_if(under_way_.begin(), under_way_.end(),
                               [file](const UnderWay& one) { return one.file.file() == file; });
  PIF_ASSERT(at != under_way_.end(), file);
  const UnderWay ended = std::move(*at);
  under_way_.erase(at);
  // A person has given up what cannot be restored of it: what is here is all that there is.
  const bool is_given_up = outcome == FileRestore::Outcome::kFailed && ended.file.given_up() && is_lacking_round_ &&
                           barren_rounds_ >= kBarrenMax;
  if (is_lacking_round_ && (outcome != FileRestore::Outcome::kFailed || is_given_up)) restored_lacking_.push_back(file);
  if (is_given_up) {
    spdlog::warn("{}: what is not here is given up: {} {}", ended.file.path(), error.node, error.text);
  } else if (outcome == FileRestore::Outcome::kFailed) {
    spdlog::warn("{} cannot be rebuilt at present: {} {}", ended.file.path(), error.node, error.text);
    ++failed_;
    failed_files_.push_back(file);
    if (failures_.size() < kFailuresMax) failures_.push_back({file, ended.file.path(), error});
  } else if (ended.is_final && is_last_round_) {
    context_.lost_files.note_caught_up(FileId(file));
  }
  if (outcome == FileRestore::Outcome::kRestored) {
    const std::uint64_t bytes = ended.is_new ? weight(ended.file) : 0;
    ++restored_;
    progress_.files += ended.is_new ? 1 : 0;
    progress_.bytes += bytes;
    bytes_now_ += bytes;
  }
  if (phase_ == Phase::kRestoring && !is_starting_) step_round();
}

void Rebuild::end_round() {
  ++rounds_;
  last_failures_ = std::exchange(failures_, {});
  last_failed_ = failed_;
  barren_rounds_ = restored_ == 0 && failed_ > 0 ? barren_rounds_ + 1 : 0;
  const bool is_short = restored_ == 0 || context_.now() - round_begun_ < kShortRound;
  if (is_lacking_round_) return end_lacking_round();
  if (failed_ > 0) {
    if (!may_set_aside()) return pause();
    phase_ = Phase::kSettingAside;
    next_try_ = context_.now();
    if (!lacking_files_.is_busy()) set_aside();  // what was said as a member may be under way still
  } else if (!is_last_round_ && !is_short && ++long_rounds_ < kRoundsMax) {
    begin_round();  // until little came meanwhile
  } else {
    phase_ = Phase::kTelling;
    next_try_ = context_.now();
    if (!is_telling_) tell();  // what was said in the round before may be under way still
  }
}

void Rebuild::pause() {
  phase_ = Phase::kPausing;
  const unsigned doublings = std::min(barren_rounds_, 8u);
  next_try_ = context_.now() + std::min<Duration>(kPauseFirst * (1u << doublings), kPauseMax);
}

// ---- files that hold up only themselves
// ------------------------------------------------------------------------------

// When this LFS had all of the file. What others had of one that was given up is not waited for.
std::uint32_t Rebuild::order_of(const One& file) const {
  if (file.given_up()) return UINT32_MAX;
  const auto& lacking = context_.lost_files.lacking();
  const auto known = lacking.find(file.file());
  return known == lacking.end() ? lost_order_ : known->second;
}

// They failed twice in a row, and it is known which of the others were lost later.
bool Rebuild::may_set_aside() const {
  return barren_rounds_ >= kBarrenMax && lost_order_ > 0 &&
         context_.lost_files.lacking().size() + failed_files_.size() <= LackingFiles::kFilesMax;
}

void Rebuild::set_aside() {
  PIF_ASSERT(phase_ == Phase::kSettingAside && !failed_files_.empty(), failed_files_.size());
  spdlog::warn("{} goes on without its part of {} files, which cannot be rebuilt at present", context_.config.name,
               failed_files_.size());
  lacking_files_.add(failed_files_, lost_order_, [this](const Status& status) {
    next_try_ = context_.now() + kAskAgain;
    if (!status) spdlog::warn("files cannot be set aside yet: {}", status.error().text);
    if (!status || phase_ != Phase::kSettingAside) return;
    barren_rounds_ = 0;
    begin_round();  // in which nothing fails, or little more
  });
}

void Rebuild::begin_lacking_round() {
  const auto& lacking = context_.lost_files.lacking();
  if (lacking.empty()) return become_member();
  is_lacking_round_ = true;
  begin_round(lacking.begin()->first - 1);
}

// Those that are not listed were removed.
void Rebuild::end_lacking_round() {
  std::vector<std::uint64_t> done = restored_lacking_;
  for (const auto& [file, order] : context_.lost_files.lacking())
    if (!std::binary_search(surveyed_.begin(), surveyed_.end(), file)) done.push_back(file);
  pause();
  if (done.empty() || lacking_files_.is_busy()) return;
  lacking_files_.remove(std::move(done), [this](const Status& status) {
    if (!status) spdlog::warn("the PIF Server cannot be told what is back: {}", status.error().text);
    if (is_lacking_round_ && phase_ == Phase::kPausing && context_.lost_files.lacking().empty()) become_member();
  });
}

// ---- the end --------------------------------------------------------------------------------------------------------

// Rows come here again when it is returning; then what came until then is fetched, and it is a member.
void Rebuild::tell() {
  PIF_ASSERT(phase_ == Phase::kTelling && !is_telling_, static_cast<unsigned>(phase_));
  is_telling_ = true;
  net::Packet packet;
  proto::NodeRebuilt& word = *packet.envelope.mutable_node_rebuilt();
  word.set_node(context_.config.node);
  word.set_state(is_last_round_ ? wire::kViewMember : wire::kViewReturning);
  ask_(std::move(packet), [this](const Result<net::Packet>& reply) {
    is_telling_ = false;
    next_try_ = context_.now() + kAskAgain;  // the view comes with a heartbeat
    if (!reply)
      spdlog::warn("the PIF Server cannot be told that {} is rebuilt: {}", context_.config.name, reply.error().text);
  });
}

void Rebuild::list(Page page) {
  PIF_ASSERT(!is_listing_);
  is_listing_ = true;
  net::Packet packet;
  proto::ListLost& asked = *packet.envelope.mutable_list_lost();
  asked.set_node(context_.config.node);
  asked.set_after(list_after_);
  ask_(std::move(packet), [this, phase = phase_, page = std::move(page)](Result<net::Packet> reply) {
    is_listing_ = false;
    if (phase_ != phase) return;
    next_try_ = context_.now();
    auto* const listed = reply ? reply->envelope.mutable_list_lost_reply() : nullptr;
    if (listed == nullptr || (listed->more() && listed->last() <= list_after_)) {
      next_try_ += kAskAgain;
      return;
    }
    list_after_ = listed->last();
    page(*listed);
  });
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
