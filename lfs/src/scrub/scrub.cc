#include "scrub/scrub.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "parity/length_request.h"
#include "pif/base/assert.h"
#include "pif/base/checksum.h"
#include "pif/parity/deputy.h"
#include "pif/wire/views.h"
#include "scrub/scrub_files.h"
#include "scrub/scrub_frames.h"
#include "scrub/scrub_missing.h"
#include "scrub/scrub_pages.h"
#include "scrub/scrub_rows.h"
#include "store/catalogue.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kEntriesAtOnce = 256;               // of the catalogue, in one turn of the loop
constexpr Duration kTurn = std::chrono::milliseconds(1);  // others have one meanwhile
constexpr Duration kIsDueAgain = std::chrono::seconds(10);
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

Scrub::Scrub(Keeping& keeping, Managing& managing, Reporting& reporting, LengthsAtRest& lengths, const Holding& holding)
    : keeping_(keeping),
      context_(keeping.context),
      up_since_(keeping.context.now()),
      server_(reporting),
      lengths_(lengths),
      holding_(holding),
      mend_(keeping, managing, reporting, rate_),
      news_(context_.fibers) {
  context_.operations.bind<&Scrub::scrub>(*this);
  context_.operations.bind<&Scrub::scrub_status>(*this);
  // So that not all LFSs begin at once, and none as soon as it is started.
  const std::string name = context_.config.name + context_.config.root + context_.config.uuid;
  const std::uint64_t spread = hash_bytes(std::as_bytes(std::span(name)));
  first_after_ = std::chrono::seconds(kDaySeconds + static_cast<std::int64_t>(spread % (kWeekSeconds - kDaySeconds)));
  context_.fibers.start<&Scrub::serve>(*this);
}

// ---- who asks ------------------------------------------------------------------------------------------------------

Result<net::Packet> Scrub::scrub(const Request& request, const proto::Scrub& asked) {
  if (!takes_part(context_))
    return fail(Code::kUnavailable,
                fmt::format("{} is {}: it is scrubbed when it takes part again", context_.config.name,
                            wire::view_state_name(context_.view.state_of(context_.config.node))));
  if (is_running_) {
    rate_.set(asked.bytes_per_second(), context_.now());
    pass_->yields = false;
  } else {
    begin_pass(asked.bytes_per_second(), asked.only_look(), false);
  }
  news_.notify();
  net::Packet reply = Replies::reply(request);
  reply.envelope.mutable_done();
  return reply;
}

Result<net::Packet> Scrub::scrub_status(const Request& request, const proto::ScrubStatus&) {
  net::Packet reply = Replies::reply(request);
  proto::ScrubStatusReply& out = *reply.envelope.mutable_scrub_status_reply();
  out.set_is_running(is_running_);
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
  const Duration elapsed = (is_running_ ? context_.now() : ended_) - begun_;
  out.set_elapsed_ms(static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count())));
  return reply;
}

// ---- a pass --------------------------------------------------------------------------------------------------------

// A node that is being rebuilt lacks what it would look at.
bool Scrub::is_due() const {
  const std::int64_t last = context_.scrubbed.ended;
  if (last == 0) return context_.now() - up_since_ >= first_after_;
  return context_.world.messenger.clock().wall_seconds() - last >= kWeekSeconds;
}

void Scrub::begin_pass(std::uint64_t rate, bool only_look, bool yields) {
  PIF_ASSERT(!is_running_);
  is_running_ = true;
  rate_.set(rate, context_.now());
  pass_ = std::make_unique<ScrubPass>(ScrubPass{keeping_, rate_, news_, holding_, lengths_, only_look, {}, {}});
  pass_->yields = yields;
  begun_ = context_.now();
  began_wall_ = context_.world.messenger.clock().wall_seconds();
  files_ = files_total_ = bytes_total_ = 0;
  again_.clear();
  lost_.clear();
  spdlog::info("{} looks at all that it has of files with parity", context_.config.name);
}

void Scrub::serve() {
  for (;;) {
    news_.wait(context_.now() + kIsDueAgain);
    if (!is_running_ && takes_part(context_) && is_due()) begin_pass(kWeeklyRate, false, true);
    if (is_running_) run_pass();
  }
}

void Scrub::run_pass() {
  PIF_ASSERT(is_running_ && pass_ != nullptr);
  pass_->await_leave();
  ScrubMissing(*pass_, mend_, server_).run();
  count();
  look_at_all();
  look_again();
  settle_doubts();
  end_pass();
}

bool Scrub::take_entries(std::uint64_t& next, const TakeEntry& take) {
  pass_->wait_until(context_.now() + kTurn);
  std::size_t seen = 0;
  const Status good = catalogue::each(context_.world.catalogue, FileId(next),
                                      [&](FileId file, const Result<proto::ComponentState>& state) {
                                        take(file, state);
                                        if (file.value == 0) return true;
                                        next = file.value + 1;
                                        return ++seen < kEntriesAtOnce;
                                      });
  if (!good) take(FileId(0), fail(good.error()));
  return good && seen == kEntriesAtOnce && next != 0;
}

void Scrub::count() {
  const TakeEntry take = [&](FileId file, const Result<proto::ComponentState>& state) {
    if (file.value == 0 || !state || !is_looked_at(*state)) return;
    ++files_total_;
    bytes_total_ += state->bytes() * 2;  // its rows, and the parity that it keeps of others
  };
  for (std::uint64_t next = 0; take_entries(next, take);) {
  }
}

void Scrub::look_at_all() {
  std::vector<FileId> files;
  const TakeEntry take = [&](FileId file, const Result<proto::ComponentState>& state) {
    if (file.value == 0)
      pass_->report.add(file, no_file(state), false);
    else if (!state)
      lost_.push_back({file, state.error().text});
    else if (is_looked_at(*state))
      files.push_back(file);
  };
  bool has_more = true;
  for (std::uint64_t next = 0; has_more; files.clear()) {
    has_more = take_entries(next, take);
    for (const FileId file : files) {
      ++files_;
      look_at(file);
    }
  }
  mend_lost();
}

// Who was away is asked again.
void Scrub::look_again() {
  if (again_.empty()) return;
  pass_->is_second_look = true;
  pass_->away.clear();
  pass_->wait_until(context_.now() + kAgainAfter);
  for (const FileId file : std::exchange(again_, {})) look_at(file);
  mend_lost();
}

// What is another's to repair is looked at again, until it is, or has been for long.
void Scrub::settle_doubts() {
  for (unsigned round = 1; !pass_->doubts.empty(); ++round) {
    PIF_ASSERT(!pass_->is_last_look && round <= kDoubtRounds, pass_->doubts.size(), round);
    pass_->wait_until(context_.now() + kDoubtsApart);
    pass_->is_last_look = pass_->only_look || round == kDoubtRounds;
    for (const ScrubDoubt& doubt : std::exchange(pass_->doubts, {})) look_at(doubt.file, doubt.page);
  }
}

void Scrub::end_pass() {
  ended_ = context_.now();
  const ScrubReport& report = pass_->report;
  PIF_ASSERT(report.repaired <= report.found, report.repaired, report.found);
  const catalogue::ScrubRecord record{std::max<std::int64_t>(1, context_.world.messenger.clock().wall_seconds()),
                                      report.found - report.repaired};
  const Status noted = context_.batch.commit_scrub(record);
  is_running_ = false;
  if (!noted) return spdlog::error("the end of the scrub is not noted: {}", noted.error().text);
  context_.scrubbed = record;
  spdlog::info("{} has looked at {} files with parity: {} damages, {} of them repaired", context_.config.name, files_,
               report.found, report.repaired);
}

// ---- one component -------------------------------------------------------------------------------------------------

// Files that are gone meanwhile, or out of service, are passed over.
void Scrub::look_at(FileId file, std::optional<std::uint64_t> page) {
  const auto found = context_.components.find(file);
  if (!found || !(*found)->catalogued || !is_looked_at((*found)->state)) return;
  const ComponentPtr component = *found;
  if (auto lost = context_.check_not_lost(file); !lost) return pass_->report.add(file, lost.error().text, false);
  const auto keeper = keeper_of(context_, component->state.shape());
  if (!keeper) return pass_->report.add(file, keeper.error().text, false);
  ScrubJob job{*pass_,
               context_.world.storage,
               context_.components.stem(file),
               component,
               *keeper,
               file_length_of(component->state.published()),
               {}};
  const std::uint64_t found_before = pass_->report.found;
  find_length(job);
  if (page)
    ScrubPages(job, page).run();
  else
    look_at_parts(job);
  // Whatever was found would be found twice.
  if (!page && pass_->report.found == found_before && may_look_again(job)) {
    if (job.is_doubtful) context_.components.unsettled()[file.value] = context_.now();
    context_.peer_list.want();
    return again_.push_back(file);
  }
  for (const auto& [name, why] : job.missed) {
    auto& missed = pass_->report.missed[name];
    if (missed.files++ == 0) missed.why = why;
  }
}

void Scrub::look_at_parts(ScrubJob& job) {
  scrub_files(job);
  // Of what was published rows are missing behind those that are here: the LFS was put back, and taken as it was.
  const std::uint64_t rows = job.component->state.rows();
  if (job.keeper.layout.rows(job.keeper.index, job.published.records) > rows)
    return lost_.push_back({job.component->file, fmt::format("file {}: {} rows of it are here, and more belong here",
                                                             name_of(job.component->file), rows)});
  ScrubRows(job).run();
  ScrubPages(job).run();
  ScrubFrames(job).run();
}

// Of the sequencer; if it is away, of the deputy. If both are, what is known here is all there is to look at.
void Scrub::find_length(ScrubJob& job) {
  const LfsIndex deputy = parity::deputy_of(job.keeper.layout);
  if (job.keeper.index == deputy) extend(job.published, file_length_of(job.component->state.noted().file_length()));
  for (const LfsIndex lfs : {LfsIndex(0), deputy}) {
    if (lfs == job.keeper.index || ask_length(job, lfs)) return;
  }
}

// False: it is away, or does not know the file.
bool Scrub::ask_length(ScrubJob& job, LfsIndex lfs) {
  if (job.is_away(lfs)) return false;
  const Component& c = *job.component;
  const auto grant = keeping_.peers.grant(c.state.shape(), c.state.epoch());
  if (!grant) return false;
  const bool is_noted = lfs == parity::deputy_of(job.keeper.layout);
  const Status asked = keeping_.peers.run(**grant, [&](access::Requests& requests) {
    requests.add(
        length_request({lfs, c.file.value, is_noted}, c.shape.format, [&job](const LengthAnswer& answer) -> Status {
          extend(job.published, answer.length);
          return {};
        }));
  });
  return asked.has_value();
}

bool Scrub::may_look_again(const ScrubJob& job) const {
  return job.is_worth_another && !pass_->is_second_look && !job.component->is_removed() && again_.size() < kAgainMax;
}

void Scrub::mend_lost() {
  for (; !lost_.empty(); lost_.pop_front()) {
    const auto [file, why] = lost_.front();
    if (pass_->only_look || lost_.size() > kLostMax) {
      pass_->report.add(file, why, false);
      continue;
    }
    pass_->await_leave();
    const auto made = mend_.mend(file);
    if (made && !*made) continue;
    pass_->report.add(
        file, why + (made ? "; made anew out of what the others have" : "; not made anew: " + made.error().text),
        made.has_value());
  }
}

}  // namespace pif::lfs
