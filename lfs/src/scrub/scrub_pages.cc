#include "scrub/scrub_pages.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/checksum.h"
#include "store/covered.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kWindowBytes = 2u << 20;  // of all members: they are in memory
constexpr std::size_t kUncoveredMax = 1000;       // records, in one pass
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kLookAgain = std::chrono::milliseconds(50);
constexpr std::size_t kDoubtsMax = 10000;

// The one that went bad may still be known.
void replace_frame(component::FrameIndex& index, const component::Frame& frame) {
  const auto [begin, end] = index.frames.equal_range(frame.record);
  for (auto at = begin; at != end;) {
    const bool is_same = at->second.bytes == frame.bytes && at->second.generation <= frame.generation;
    at = is_same ? index.frames.erase(at) : std::next(at);
  }
  index.frames.emplace(frame.record, frame);
}

}  // namespace

void ScrubPages::start(Done done) {
  done_ = std::move(done);
  if (only_) next_ = *only_;
  for (const LfsIndex lfs : job_->keeper.members.lfs) names_.push_back(job_->name_of(lfs));
  patience_ = job_->context().now() + kPatience;
  step();
}

Range ScrubPages::rows_of(Range pages) const {
  const std::uint64_t page_rows = job_->keeper.shape.page_rows();
  return {pages.begin * page_rows, pages.end * page_rows};
}

void ScrubPages::add(const std::string& text, bool is_repaired) {
  const std::string line = fmt::format("file {}: {}", name_of(component_->file), text);
  if (job_->pass.report.may_log()) spdlog::warn("{}", line);
  job_->pass.report.add(component_->file, line, is_repaired);
}

// Everything goes on from here.
void ScrubPages::step() {
  if (!done_ || is_busy_) return;
  if (is_gone() || job_->keeper.parity_rows(job_->published) == 0) return end();
  if (!uncovered_.empty()) return write_frames();
  if (!job_->may_go_on(next_try_)) return;
  if (next_window()) return fetch();
  if (has_scanned_ || only_) return end();
  scan();
}

// Pages that are there, of published rows.
bool ScrubPages::next_window() {
  const auto& state = component_->state;
  const std::uint64_t end = only_ ? *only_ + 1 : std::min(job_->keeper.pages(job_->published), behind_pages(state));
  while (next_ < end && !has_page(state, next_)) ++next_;
  if (next_ >= end) return false;
  const std::uint64_t page_bytes = job_->keeper.shape.page_rows() * job_->keeper.size() * job_->row_bytes();
  const std::uint64_t most = std::max<std::uint64_t>(kWindowBytes / page_bytes, 1);
  window_ = {next_, next_ + 1};
  while (window_.end < end && window_.size() < most && has_page(state, window_.end)) ++window_.end;
  next_ = window_.end;
  job_->spend(window_.size() * page_bytes);
  without_.reset();
  is_local_ = false;
  tries_ = 0;
  return true;
}

// ---- the members' rows ---------------------------------------------------------------------------------------------

MemberOptions ScrubPages::members_of(Range parity_rows) const {
  MemberOptions options;
  options.file_length = job_->published;
  options.parity_rows = parity_rows;
  options.epoch = component_->state.epoch();
  options.by_message = true;
  options.without = without_;
  return options;
}

// One member that is away is left out; without two of them nothing can be said.
void ScrubPages::fetch() {
  PIF_ASSERT(!is_busy_ && !window_.empty(), window_.begin);
  sources_.clear();
  const auto& members = job_->keeper.members.lfs;
  for (std::size_t i = 0; i < members.size() && !is_local_; ++i) {
    if (without_ == i || !job_->is_away(members[i])) continue;
    job_->miss_away(members[i]);
    is_local_ = without_.has_value();
    without_ = i;
  }
  if (is_local_ || (without_ && members.size() == 1)) return look();
  is_busy_ = true;
  rows_ = std::make_shared<MemberRows>(job_->pass.keeping.peers, job_->context().world.storage, job_->keeper,
                                       members_of(rows_of(window_)));
  job_->context().fibers.start([self = shared_from_this()] {
    Status status = self->rows_->open(self->component_->state.shape());
    if (status && self->rows_->is_any_far()) status = self->rows_->fetch(self->rows_of(self->window_));
    self->fetched(status);
  });
}

void ScrubPages::fetched(const Status& status) {
  PIF_ASSERT(is_busy_, component_->file.value);
  is_busy_ = false;
  if (status) {
    sources_ = rows_->sources();
    return look();
  }
  const auto& members = job_->keeper.members.lfs;
  const auto bad = std::find_if(members.begin(), members.end(),
                                [&](LfsIndex lfs) { return job_->name_of(lfs) == status.error().node; });
  job_->miss(status.error().node.empty() ? "others" : status.error().node, status.error());
  if (bad != members.end() && access::is_lost(status.error().code)) job_->note_away(*bad);
  is_local_ = bad == members.end() || without_.has_value() || ++tries_ > members.size();
  if (bad != members.end() && !without_) without_ = static_cast<std::size_t>(bad - members.begin());
  fetch();
}

// ---- pages ---------------------------------------------------------------------------------------------------------

Result<component::ParityFiles> ScrubPages::open(component::OpenMode mode) const {
  return component::open_parity(job_->storage, job_->stem, mode);
}

void ScrubPages::look() {
  is_busy_ = true;
  verdicts_.clear();
  job_->pass.keeping.works.submit(
      [self = shared_from_this()] {
        auto files = self->open(component::OpenMode::kRead);
        self->result_ = files ? Status() : fail(files.error());
        if (!files) return;
        self->files_ = std::make_shared<component::ParityFiles>(std::move(*files));
        for (std::uint64_t page = self->window_.begin; page < self->window_.end; ++page) {
          Verdict verdict = self->judge(page);
          if (verdict.is_bad || verdict.is_doubtful || verdict.is_hopeless)
            self->verdicts_.push_back(std::move(verdict));
        }
      },
      [self = shared_from_this()] {
        self->is_busy_ = false;
        self->looked();
      });
}

Result<component::PackedRows> ScrubPages::stretch_of(std::uint64_t page, std::size_t member) const {
  const auto& shape = job_->keeper.shape;
  component::PackedRows all, part;
  for (std::uint64_t done = 0; done < shape.page_rows(); done += part.lengths.size()) {
    const Row first = shape.row_of(member, page * shape.page_rows() + done);
    PIF_TRY(sources_[member]->read(first, shape.page_rows() - done, shape.members(), part));
    if (part.lengths.empty()) return fail(Code::kEndOfFile, fmt::format("row {} did not come", first));
    all.bytes.insert(all.bytes.end(), part.bytes.begin(), part.bytes.end());
    all.lengths.insert(all.lengths.end(), part.lengths.begin(), part.lengths.end());
  }
  return all;
}

ScrubPages::Verdict ScrubPages::judge(std::uint64_t page) const {
  const auto& shape = job_->keeper.shape;
  const auto found = component::read_page(shape, *files_, page);
  if (!found) return judge_bad(page, found.error().text);
  Verdict verdict{page};
  std::vector<std::size_t> other;
  std::size_t known = 0;
  for (std::size_t member = 0; member < sources_.size(); ++member) {
    if (sources_[member] == nullptr) continue;
    const auto rows = stretch_of(page, member);
    if (!rows) continue;
    ++known;
    if (component::stretch_hash(shape.format, *rows) != found->vector[member].hash) other.push_back(member);
  }
  if (other.size() > 1) {
    verdict.is_hopeless = true;
    verdict.why = fmt::format("parity page {}: {} members have other rows than it was made of", page, other.size());
    return verdict;
  }
  if (known < shape.members()) {  // nothing more can be said
    verdict.is_doubtful = !other.empty();
    return verdict;
  }
  // What the page gives of the one that differs, or of any if none does, must be as the vector says.
  const std::size_t lost = other.empty() ? 0 : other.front();
  const auto stretch = component::rebuild_stretch(shape, *files_, page, lost, sources_);
  verdict.is_doubtful = stretch.has_value() && !other.empty();
  verdict.is_bad = !stretch && other.empty();
  verdict.is_hopeless = !stretch && !other.empty();
  if (!stretch) verdict.why = stretch.error().text;
  return verdict;
}

// Its members' rows must be those of its vector, if that holds: two damages in a group are not made good. But if the
// bytes are theirs, the entry in .psum alone is another one, say of a range that was cancelled.
ScrubPages::Verdict ScrubPages::judge_bad(std::uint64_t page, const std::string& why) const {
  const auto& shape = job_->keeper.shape;
  Verdict verdict{page};
  verdict.why = why;
  const bool has_all = sources_.size() == shape.members() && std::count(sources_.begin(), sources_.end(), nullptr) == 0;
  const auto is_of_rows = has_all ? component::is_of_rows(shape, *files_, page, sources_) : false;
  verdict.is_bad = is_of_rows && *is_of_rows;
  if (verdict.is_bad) return verdict;
  const auto vector = vector_of(page);
  for (std::size_t member = 0; member < shape.members() && !verdict.is_hopeless; ++member) {
    const bool is_known = member < sources_.size() && sources_[member] != nullptr;
    const auto rows = is_known ? stretch_of(page, member) : fail(Code::kUnavailable, "");
    if (!rows) {
      verdict.is_hopeless = true;
      verdict.why += "; not made anew: rows of " + names_[member] + " cannot be had";
    } else if (vector && component::stretch_hash(shape.format, *rows) != (*vector)[member].hash) {
      verdict.is_hopeless = true;
      verdict.why += "; not made anew: rows of " + names_[member] + " are not those that it was made of, either";
    }
  }
  verdict.is_bad = !verdict.is_hopeless;
  return verdict;
}

// Of a page whose bytes may not hold (docs/FORMAT.md "Parity": .psum). kCorrupt: it does not hold either.
Result<std::vector<component::VectorEntry>> ScrubPages::vector_of(std::uint64_t page) const {
  const auto& shape = job_->keeper.shape;
  const std::size_t head = shape.format.is_fixed() ? 2 : 3;  // two sums; where a page of variable records ends
  std::vector<std::uint64_t> words(head + 2 * shape.members());
  const auto broken = [&] { return fail(Code::kCorrupt, fmt::format("parity page {} has no vector", page)); };
  if (!files_->sums) return broken();
  const std::uint64_t bytes = words.size() * sizeof(std::uint64_t);
  PIF_TRY_VALUE(const std::size_t n, files_->sums->read(page * bytes, std::as_writable_bytes(std::span(words))));
  if (n != bytes) return broken();
  const auto behind = std::as_bytes(std::span(words).subspan(2));
  if (chunk_sum(shape.file, component::kVectorStream, page, behind) != words[1]) return broken();
  std::vector<component::VectorEntry> out;
  for (std::size_t i = 0; i < shape.members(); ++i) out.push_back({words[head + 2 * i], words[head + 2 * i + 1]});
  return out;
}

void ScrubPages::looked() {
  files_.reset();
  if (is_gone()) return end();
  if (!result_) {
    add(result_.error().text, false);
    return end();
  }
  std::vector<Verdict> bad;
  for (Verdict& verdict : verdicts_) {
    const bool may_wait = !job_->pass.is_last_look && job_->pass.doubts.size() < kDoubtsMax;
    if (verdict.is_doubtful && may_wait) {
      job_->pass.add_doubt({component_->file, verdict.page});
    } else if (verdict.is_doubtful) {
      add(fmt::format(
              "parity page {}: one of its members has other rows than it was made of, with right sums: pif scrub "
              "of that LFS repairs it",
              verdict.page),
          false);
    } else if (verdict.is_hopeless || job_->pass.only_look) {
      add(verdict.why + (verdict.is_hopeless ? "" : "; not repaired, as was asked for"), false);
    } else {
      bad.push_back(std::move(verdict));
    }
  }
  verdicts_ = std::move(bad);
  if (verdicts_.empty()) return step();
  gather();
}

void ScrubPages::gather() {
  auto files = open(component::OpenMode::kCreate);
  if (!files) return gathered(fail(files.error()));
  files_ = std::make_shared<component::ParityFiles>(std::move(*files));
  ParityPlan plan;
  for (const Verdict& verdict : verdicts_) plan.pages.push_back({verdict.page, verdict.page + 1});
  MemberOptions members = members_of(rows_of(window_));
  members.without.reset();
  is_busy_ = true;
  const auto run = std::make_shared<ParityRun>(job_->pass.keeping.peers, job_->context().world.storage,
                                               job_->pass.keeping.works, job_->keeper, members, plan, files_);
  start_run(job_->context().fibers, run, component_->state.shape(),
            [self = shared_from_this()](const Status& status, ParityRun::Outcome&) { self->gathered(status); });
}

void ScrubPages::gathered(const Status& status) {
  is_busy_ = true;
  result_ = status;
  job_->pass.keeping.works.submit(
      [self = shared_from_this()] {
        if (!self->result_) return;
        self->result_ = self->sync();
        for (const Verdict& verdict : self->verdicts_) {
          if (!self->result_) return;
          const auto page = component::read_page(self->job_->keeper.shape, *self->files_, verdict.page);
          if (!page) self->result_ = fail(page.error());
        }
      },
      [self = shared_from_this()] {
        self->is_busy_ = false;
        self->files_.reset();
        if (self->is_gone()) return self->end();
        if (!self->component_->is_keeping) self->component_->parity.reset();  // perhaps without what is new
        for (const Verdict& verdict : std::exchange(self->verdicts_, {}))
          self->add(self->result_ ? verdict.why + "; made anew out of its members' rows"
                                  : verdict.why + "; not made anew: " + self->result_.error().text,
                    self->result_.has_value());
        self->step();
      });
}

// ---- frames --------------------------------------------------------------------------------------------------------

void ScrubPages::scan() {
  const auto found = std::make_shared<Result<component::FrameIndex>>(fail(Code::kInternal, "not scanned"));
  is_busy_ = has_scanned_ = true;
  if (!component_->is_keeping) component_->frames.reset();  // what is known of .pap may not be so any more
  (void)job_->context().components.open_parity(*component_, component::OpenMode::kCreate);
  job_->pass.keeping.works.submit(
      [self = shared_from_this(), found, begin = component_->state.pap_begin()] {
        auto files = self->open(component::OpenMode::kRead);
        if (files)
          *found = component::scan_frames(self->component_->file, *files, begin);
        else
          *found = fail(files.error());
      },
      [self = shared_from_this(), found, writes = component_->frame_writes] {
        self->is_busy_ = false;
        if (self->is_gone()) return self->end();
        if (*found) {
          self->index_ = std::move(**found);
          Component& c = *self->component_;
          if (!c.frames && !c.is_keeping && c.mode && c.frame_writes == writes) c.frames = self->index_;
          return self->scanned();
        }
        self->add((*found).error().text, false);
        self->end();
      });
}

// A row that got its page meanwhile needs no frame.
void ScrubPages::scanned() {
  const auto& keeper = job_->keeper;
  const auto& state = component_->state;
  const std::uint64_t page_rows = keeper.shape.page_rows();
  const std::uint64_t end = keeper.parity_rows(job_->published);
  for (std::uint64_t j = state.pages() * page_rows; j < end && uncovered_text_.size() < kUncoveredMax; ++j) {
    for (std::size_t member = 0; member < keeper.size() && !has_page(state, j / page_rows); ++member) {
      const RecordNumber record = keeper.record(member, j);
      if (record >= job_->published.records) continue;
      const bool is_copied = counted_frame(index_, state, keeper.format(), job_->published, record) != nullptr;
      if (is_copied || uncovered_text_.size() >= kUncoveredMax) continue;
      uncovered_text_.push_back(
          fmt::format("record {} has its parity here, and neither a page nor a copy of it", record));
      if (uncovered_.empty() || uncovered_.back().end <= j) uncovered_.push_back({j, j + 1});
    }
  }
  is_scanned_anew_ = uncovered_text_.size() >= kUncoveredMax;
  if (!uncovered_.empty() && job_->pass.only_look) {
    uncovered_.clear();
    return end_frames(fail(Code::kCancelled, "as was asked for"));
  }
  step();
}

std::uint64_t ScrubPages::frame_bytes(Range parity_rows) const {
  const std::uint64_t rows = parity_rows.size() * job_->keeper.size();
  const std::uint64_t bytes = job_->keeper.format().is_fixed()
                                  ? rows * job_->keeper.format().record_length
                                  : std::min(job_->published.bytes, rows * kRecordLengthMax);
  return bytes + rows * (component::kFrameHeaderBytes + 8);
}

// Behind all others. Room for them is taken before they are written: whoever covers rows writes behind it.
void ScrubPages::write_frames() {
  Component& c = *component_;
  const Time now = job_->context().now();
  if (c.is_keeping || c.stage() != Stage::kResting || !c.frames) {
    next_try_ = now + kLookAgain;
    if (now >= patience_) return end_frames(fail(Code::kBusy, "the file is being appended to"));
  }
  if (c.is_keeping || c.stage() != Stage::kResting) return;
  next_try_ = kNever;
  if (auto opened = job_->context().components.open_parity(c, component::OpenMode::kCreate); !opened)
    return end_frames(opened);
  if (!c.frames) {  // somebody has had them since
    uncovered_.clear();
    uncovered_text_.clear();
    return scan();
  }
  ParityPlan plan;
  plan.generation = c.state.parity_generation();
  plan.end = c.frames->end;
  reserved_ = plan.end;
  for (const Range& rows : uncovered_) {
    plan.frames.push_back(rows);
    reserved_ += frame_bytes(rows);
  }
  reserved_ = (reserved_ + 7) / 8 * 8;
  c.frames->end = reserved_;
  files_ = c.parity;
  MemberOptions members;
  members.file_length = job_->published;
  members.records = {0, job_->published.records};
  members.epoch = c.state.epoch();
  members.by_message = true;
  uncovered_.clear();
  is_busy_ = true;
  const auto run = std::make_shared<ParityRun>(job_->pass.keeping.peers, job_->context().world.storage,
                                               job_->pass.keeping.works, job_->keeper, members, plan, files_);
  start_run(job_->context().fibers, run, c.state.shape(),
            [self = shared_from_this()](const Status& status, ParityRun::Outcome& outcome) {
              self->frames_written(status, outcome);
            });
}

// Files that were missing have names now.
Status ScrubPages::sync() const {
  PIF_ASSERT(files_ != nullptr, component_->file.value);
  PIF_TRY(component::sync(*files_));
  return job_->storage.sync_folder(job_->folder());
}

// Out of the file that has the name: it may be another one than the LFS had open.
Status ScrubPages::read_back(std::span<const component::Frame> frames) const {
  PIF_TRY_VALUE(component::ParityFiles files, open(component::OpenMode::kRead));
  if (files.frames == nullptr) return fail(Code::kNotFound, "the file of copies was removed meanwhile");
  std::vector<std::byte> row;
  for (const component::Frame& frame : frames) PIF_TRY(component::read_frame(component_->file, files, frame, row));
  return {};
}

void ScrubPages::frames_written(const Status& status, ParityRun::Outcome& outcome) {
  if (!status) return end_frames(status);
  auto frames = std::make_shared<std::vector<component::Frame>>(std::move(outcome.frames));
  job_->pass.keeping.works.submit(
      [self = shared_from_this(), frames] {
        self->result_ = self->sync();
        if (self->result_) self->result_ = self->read_back(*frames);
      },
      [self = shared_from_this(), frames, end = outcome.end] {
        Component& c = *self->component_;
        // If they were read anew meanwhile, others may have written where these are.
        const bool is_ours = c.frames && c.frames->end >= self->reserved_ && end <= self->reserved_;
        if (self->result_ && !is_ours) self->result_ = fail(Code::kBusy, "the file is being appended to");
        if (!self->result_) {
          c.frames.reset();
          if (!c.is_keeping) c.parity.reset();
        } else {
          for (const component::Frame& frame : *frames) replace_frame(*c.frames, frame);
        }
        self->end_frames(self->result_);
      });
}

void ScrubPages::end_frames(const Status& status) {
  is_busy_ = false;
  files_.reset();
  if (is_gone()) return end();
  uncovered_.clear();
  if (status && is_scanned_anew_) has_scanned_ = false;
  for (const std::string& text : std::exchange(uncovered_text_, {}))
    add(status ? text + "; copied from its LFS" : text + "; not repaired: " + status.error().text, status.has_value());
  step();
}

void ScrubPages::end() {
  if (!done_) return;
  next_try_ = kNever;
  rows_.reset();
  const Done done = std::exchange(done_, {});
  done();
}

}  // namespace pif::lfs
