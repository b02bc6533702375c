#include "scrub/scrub.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/base/checksum.h"
#include "pif/parity/deputy.h"
#include "pif/wire/views.h"
#include "store/catalogue.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kEntriesAtOnce = 256;  // of the catalogue, in one turn of the loop
constexpr std::int64_t kDaySeconds = 24 * 3600;
constexpr std::int64_t kWeekSeconds = 7 * kDaySeconds;
constexpr std::uint64_t kWeeklyRate = 32u << 20;  // bytes a second
constexpr Duration kDoubtsApart = std::chrono::seconds(2);
constexpr std::size_t kAgainMax = 1000;  // files: an LFS that stays away makes no second pass of this one
constexpr Duration kAgainAfter = std::chrono::seconds(3);
constexpr std::size_t kLostMax = 1000;  // components: where so many are, the disk is to be replaced
constexpr unsigned kDoubtRounds = 10;   // so long others have to repair what is theirs

bool is_looked_at(const proto::ComponentState& state) {
  return state.state() == kCommitted && keeps_parity(state.shape());
}

// Of an entry of the catalogue whose key is no id of a file.
std::string no_file(const Result<proto::ComponentState>& state) {
  return state ? "the catalogue has an entry of file 0, which is none" : state.error().text;
}

}  // namespace

Scrub::Scrub(Keeping& keeping, Managing& managing, Rebuild::Ask ask)
    : keeping_(keeping),
      context_(keeping.context),
      up_since_(keeping.context.now()),
      mend_(keeping, managing, ask, rate_),
      missing_(keeping, mend_, std::move(ask), rate_) {
  context_.operations.bind<&Scrub::scrub>(*this);
  context_.operations.bind<&Scrub::scrub_status>(*this);
  // So that not all LFSs begin at once, and none as soon as it is started.
  const std::string name = context_.config.name + context_.config.root + context_.config.uuid;
  const std::uint64_t spread = hash_bytes(std::as_bytes(std::span(name)));
  first_after_ = std::chrono::seconds(kDaySeconds + static_cast<std::int64_t>(spread % (kWeekSeconds - kDaySeconds)));
}

// ---- who asks ------------------------------------------------------------------------------------------------------

Result<net::Packet> Scrub::scrub(const Request& request, const proto::Scrub& asked) {
  if (!may_run())
    return fail(Code::kUnavailable,
                fmt::format("{} is {}: it is scrubbed when it takes part again", context_.config.name,
                            wire::view_state_name(context_.view.state_of(context_.config.node))));
  if (phase_ == Phase::kIdle) {
    begin_pass(asked.bytes_per_second(), asked.only_look(), false);
  } else {
    rate_.set(asked.bytes_per_second(), context_.now());
    pass_->yields = false;
  }
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_done();
  return reply;
}

Result<net::Packet> Scrub::scrub_status(const Request& request, const proto::ScrubStatus&) {
  net::Packet reply = Replies::reply(request);
  proto::ScrubStatusReply& out = *reply.envelope.mutable_scrub_status_reply();
  out.set_is_running(phase_ != Phase::kIdle);
  out.set_ended(context_.scrubbed.ended);
  if (!pass_) return reply;
  out.set_files(files_);
  out.set_files_total(std::max(files_, files_total_));
  out.set_bytes(pass_->bytes);
  out.set_bytes_total(std::max(pass_->bytes, bytes_total_));
  out.set_found(pass_->report.found);
  out.set_repaired(pass_->report.repaired);
  for (const auto& damage : pass_->report.damages) {
    auto& one = *out.add_damages();
    one.set_file(damage.file);
    one.set_text(damage.text);
    one.set_is_repaired(damage.is_repaired);
  }
  // No damages: of file 0.
  for (const auto& [name, missed] : pass_->report.missed) {
    std::string what = fmt::format("rows or parity of {} files", missed.files);
    if (missed.files == 1) what = "the rows or the parity of a file";
    if (missed.files == 0) what = "the files that have a part here";
    out.add_damages()->set_text(
        fmt::format("{} were not wholly compared with what {} has: {}", what, name, missed.why));
  }
  out.set_began(began_wall_);
  const Duration elapsed = (phase_ == Phase::kIdle ? ended_ : context_.now()) - begun_;
  out.set_elapsed_ms(static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count())));
  return reply;
}

// ---- a pass --------------------------------------------------------------------------------------------------------

// A node that is being rebuilt lacks what it would look at.
bool Scrub::may_run() const {
  return context_.standing == Standing::kServing && context_.view.state_of(context_.config.node) == wire::kViewMember;
}

bool Scrub::is_due() const {
  const std::int64_t last = context_.scrubbed.ended;
  if (last == 0) return context_.now() - up_since_ >= first_after_;
  return context_.world.messenger.clock().wall_seconds() - last >= kWeekSeconds;
}

Time Scrub::next_deadline() const {
  if (!may_run()) return kNever;
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kKeeping: return kNever;
    case Phase::kListing: return missing_.is_over() ? Time{} : missing_.next_deadline();
    case Phase::kCounting: return Time{};
    case Phase::kWaiting: return next_try_;
    case Phase::kDoubting:
      if (!turn_) return next_try_;
      [[fallthrough]];
    case Phase::kLooking:
      if (mend_.is_busy()) return rate_.next_deadline();
      if (!turn_ || turn_->is_over) return Time{};
      if (turn_->pages) return turn_->pages->next_deadline();
      if (turn_->rows) return turn_->rows->next_deadline();
      return turn_->files ? turn_->files->next_deadline() : kNever;
  }
  return kNever;
}

void Scrub::tick() {
  if (!may_run()) return;
  switch (phase_) {
    case Phase::kIdle:
      if (is_due()) begin_pass(kWeeklyRate, false, true);
      return;
    case Phase::kListing:
      missing_.advance();
      if (missing_.is_over()) phase_ = Phase::kCounting;
      return;
    case Phase::kCounting: return count_some();
    case Phase::kLooking: return look();
    case Phase::kWaiting:
      if (context_.now() >= next_try_) phase_ = Phase::kLooking;
      return;
    case Phase::kDoubting: return doubt();
    case Phase::kKeeping: return;
  }
}

void Scrub::begin_pass(std::uint64_t rate, bool only_look, bool yields) {
  PIF_ASSERT(phase_ == Phase::kIdle && !turn_, static_cast<unsigned>(phase_));
  rate_.set(rate, context_.now());
  pass_ = std::make_unique<ScrubPass>(ScrubPass{keeping_, rate_, only_look, {}, {}});
  pass_->yields = yields;
  phase_ = Phase::kListing;
  missing_.start(*pass_);
  begun_ = context_.now();
  began_wall_ = context_.world.messenger.clock().wall_seconds();
  files_ = files_total_ = bytes_total_ = next_id_ = 0;
  has_all_ = false;
  queue_.clear();
  again_.clear();
  lost_.clear();
  is_second_look_ = false;
  doubts_.clear();
  rounds_ = 0;
  spdlog::info("{} looks at all that it has of files with parity", context_.config.name);
}

void Scrub::count_some() {
  std::size_t seen = 0;
  const Status good = catalogue::each(context_.world.catalogue, FileId(next_id_),
                                      [&](FileId file, const Result<proto::ComponentState>& state) {
                                        if (file.value == 0) return true;  // no file's: refill() tells of it
                                        next_id_ = file.value + 1;
                                        ++seen;
                                        if (state && is_looked_at(*state)) {
                                          ++files_total_;
                                          // Its rows, and the parity that it keeps of others.
                                          bytes_total_ += state->bytes() * 2;
                                        }
                                        return seen < kEntriesAtOnce;
                                      });
  if (!good) spdlog::error("{}", good.error().text);
  if (good && seen == kEntriesAtOnce && next_id_ != 0) return;
  next_id_ = 0;
  phase_ = Phase::kLooking;
}

// The next files of the catalogue.
void Scrub::refill() {
  std::size_t seen = 0;
  const Status good = catalogue::each(context_.world.catalogue, FileId(next_id_),
                                      [&](FileId file, const Result<proto::ComponentState>& state) {
                                        if (file.value == 0) {
                                          pass_->report.add(file, no_file(state), false);
                                          return true;
                                        }
                                        next_id_ = file.value + 1;
                                        ++seen;
                                        if (!state) lost_.push_back({file, state.error().text});
                                        if (state && is_looked_at(*state)) queue_.push_back(file);
                                        return seen < kEntriesAtOnce;
                                      });
  if (!good) pass_->report.add(FileId(0), good.error().text, false);
  has_all_ = !good || seen < kEntriesAtOnce || next_id_ == 0;
}

void Scrub::look() {
  if (turn_ && turn_->is_over) end_turn();
  if (turn_) {
    if (turn_->pages) return turn_->pages->advance();
    if (turn_->rows) return turn_->rows->advance();
    if (turn_->files) turn_->files->advance();
    return;
  }
  if (queue_.empty() && !has_all_) refill();
  if (!queue_.empty()) {
    const FileId file = queue_.front();
    queue_.pop_front();
    return start(file, {});
  }
  if (has_all_ && !lost_.empty()) return mend_lost();
  if (has_all_) end_look();
}

void Scrub::mend_lost() {
  if (mend_.is_busy()) {
    rate_.begin_turn();
    return mend_.advance();
  }
  const Lost one = lost_.front();
  if (pass_->only_look || lost_.size() > kLostMax) {
    lost_.pop_front();
    return pass_->report.add(one.file, one.why, false);
  }
  mend_.start(one.file, [this, one](ComponentMend::Outcome outcome, const Error& error) {
    lost_.pop_front();
    if (outcome == ComponentMend::Outcome::kNothing) return;
    const bool is_mended = outcome == ComponentMend::Outcome::kMended;
    pass_->report.add(
        one.file,
        is_mended ? one.why + "; made anew out of what the others have" : one.why + "; not made anew: " + error.text,
        is_mended);
  });
}

// Who was away is asked again in the second look.
void Scrub::end_look() {
  PIF_ASSERT(!turn_ && queue_.empty() && phase_ == Phase::kLooking, queue_.size());
  if (!again_.empty()) {
    is_second_look_ = true;
    queue_ = std::exchange(again_, {});
    pass_->away.clear();
    phase_ = Phase::kWaiting;
    next_try_ = context_.now() + kAgainAfter;
    return;
  }
  phase_ = Phase::kDoubting;
  next_try_ = context_.now() + (pass_->doubts.empty() ? Duration::zero() : kDoubtsApart);
}

// Files that are gone meanwhile, or out of service, are passed over.
void Scrub::start(FileId file, std::optional<std::uint64_t> page) {
  PIF_ASSERT(!turn_ && pass_, file.value);
  if (!page && !is_second_look_) ++files_;
  const auto found = context_.components.find(file);
  if (!found || !(*found)->catalogued || !is_looked_at((*found)->state)) return;
  const ComponentPtr component = *found;
  if (auto lost = context_.check_not_lost(file); !lost) return pass_->report.add(file, lost.error().text, false);
  const auto keeper = keeper_of(context_, component->state.shape());
  if (!keeper) return pass_->report.add(file, keeper.error().text, false);
  FileLength known = file_length_of(component->state.published());
  if (parity::deputy_of(keeper->layout) == keeper->index)
    extend(known, file_length_of(component->state.noted().file_length()));
  turn_ = std::make_shared<Turn>();
  turn_->page = page;
  turn_->found = pass_->report.found;
  turn_->job = std::make_shared<ScrubJob>(
      ScrubJob{*pass_, context_.world.storage, context_.components.stem(file), component, *keeper, known, {}});
  if (keeper->index == 0) return look_at_files(turn_);
  find_length(turn_, 0);
}

// Of the sequencer; if it is away, of the deputy. If both are, what is known here is all there is to look at.
void Scrub::find_length(const TurnPtr& turn, LfsIndex lfs) {
  const LfsIndex deputy = parity::deputy_of(turn->job->keeper.layout);
  const ComponentPtr& component = turn->job->component;
  auto granted = keeping_.peers.grant(component->state.shape(), component->state.epoch());
  const bool is_own = lfs == turn->job->keeper.index;
  if (granted && !is_own && turn->job->is_away(lfs) && lfs != deputy) return find_length(turn, deputy);
  if (!granted || is_own || turn->job->is_away(lfs)) return look_at_files(turn);
  turn->grant = std::move(*granted);
  auto request = length_request({lfs, component->file.value, lfs == deputy}, component->shape.format,
                                [turn](const LengthTold& told) -> Status {
                                  extend(turn->job->published, told.length);
                                  return {};
                                });
  keeping_.peers.run(
      *turn->grant, [&request](access::Requests& requests) { requests.add(std::move(request)); },
      [this, turn, lfs, deputy](const Status& status) {
        if (!status && lfs != deputy) return find_length(turn, deputy);  // it is away, or does not know the file
        look_at_files(turn);
      });
}

void Scrub::look_at_files(const TurnPtr& turn) {
  if (turn->page) return look_at_pages(turn);
  turn->files = std::make_shared<ScrubFiles>(turn->job);
  turn->files->start([this, weak = std::weak_ptr(turn)] {
    if (const TurnPtr ended = weak.lock()) look_at_rows(ended);
  });
}

// Of what was published rows are missing behind those that are here: the LFS was put back, and taken as it was.
bool Scrub::lacks_rows(const TurnPtr& turn) const {
  const ScrubJob& job = *turn->job;
  return job.keeper.layout.rows(job.keeper.index, job.published.records) > job.component->state.rows();
}

void Scrub::look_at_rows(const TurnPtr& turn) {
  if (lacks_rows(turn)) {
    const ScrubJob& job = *turn->job;
    lost_.push_back({job.component->file, fmt::format("file {}: {} rows of it are here, and more belong here",
                                                      name_of(job.component->file), job.component->state.rows())});
    turn->is_over = true;
    return;
  }
  turn->rows = std::make_shared<ScrubRows>(turn->job);
  turn->rows->start([this, weak = std::weak_ptr(turn)] {
    if (const TurnPtr ended = weak.lock()) look_at_pages(ended);
  });
}

void Scrub::look_at_pages(const TurnPtr& turn) {
  turn->pages = std::make_shared<ScrubPages>(turn->job, turn->page);
  turn->pages->start([weak = std::weak_ptr(turn)] {
    if (const TurnPtr ended = weak.lock()) ended->is_over = true;
  });
}

// Whatever was found would be found twice.
bool Scrub::may_look_again() const {
  const ScrubJob& job = *turn_->job;
  return job.is_worth_another && !is_second_look_ && !turn_->page && !job.component->is_removed() &&
         pass_->report.found == turn_->found && again_.size() < kAgainMax;
}

void Scrub::end_turn() {
  PIF_ASSERT(turn_ && turn_->is_over);
  if (may_look_again()) {
    const ScrubJob& job = *turn_->job;
    if (job.is_doubtful) context_.components.unsettled()[job.component->file.value] = context_.now();
    context_.peer_list.want();
    again_.push_back(job.component->file);
    turn_.reset();
    return;
  }
  for (const auto& [name, why] : turn_->job->missed) {
    auto& missed = pass_->report.missed[name];
    if (missed.files++ == 0) missed.why = why;
  }
  turn_.reset();
}

// What is another's to repair is looked at again, until it is, or has been for long.
void Scrub::doubt() {
  if (turn_ && turn_->is_over) end_turn();
  if (turn_) return turn_->pages ? turn_->pages->advance() : void();
  if (context_.now() < next_try_) return;
  if (!doubts_.empty()) {
    const ScrubDoubt one = doubts_.front();
    doubts_.pop_front();
    return start(one.file, one.page);
  }
  if (pass_->doubts.empty()) return keep();
  PIF_ASSERT(!pass_->is_last_look, pass_->doubts.size());
  const bool was_looked_at = std::exchange(rounds_, rounds_ + 1) > 0;
  doubts_.assign(pass_->doubts.begin(), pass_->doubts.end());
  pass_->doubts.clear();
  pass_->is_last_look = pass_->only_look || rounds_ == kDoubtRounds;
  if (was_looked_at) next_try_ = context_.now() + kDoubtsApart;
}

void Scrub::keep() {
  phase_ = Phase::kKeeping;
  ended_ = context_.now();
  const ScrubReport& report = pass_->report;
  PIF_ASSERT(report.repaired <= report.found, report.repaired, report.found);
  const catalogue::ScrubRecord record{std::max<std::int64_t>(1, context_.world.messenger.clock().wall_seconds()),
                                      report.found - report.repaired};
  context_.batch.keep_scrub(record, [this, record](const Status& status) {
    phase_ = Phase::kIdle;
    if (!status) return spdlog::error("the end of the scrub is not noted: {}", status.error().text);
    context_.scrubbed = record;
    spdlog::info("{} has looked at {} files with parity: {} damages, {} of them repaired", context_.config.name, files_,
                 pass_->report.found, pass_->report.repaired);
  });
}

}  // namespace pif::lfs
