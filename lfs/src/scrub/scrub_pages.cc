#include "scrub/scrub_pages.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/checksum.h"
#include "store/covered.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kWindowBytes = 2u << 20;  // of all members: they are in memory
constexpr std::size_t kDoubtsMax = 10000;

}  // namespace

ScrubPages::ScrubPages(ScrubJob& job, std::optional<std::uint64_t> only)
    : job_(job), component_(job.component), only_(only), next_(only.value_or(0)) {
  for (const LfsIndex lfs : job_.keeper.members.lfs) names_.push_back(job_.name_of(lfs));
}

void ScrubPages::run() {
  if (job_.keeper.parity_rows(job_.published) == 0) return;
  for (;;) {
    job_.pass.pace();
    if (job_.is_gone() || !next_window()) return;
    fetch();
    if (job_.is_gone() || !look_at_window()) return;
  }
}

// Pages that are there, of published rows.
bool ScrubPages::next_window() {
  const auto& state = component_->state;
  const std::uint64_t end = only_ ? *only_ + 1 : std::min(job_.keeper.pages(job_.published), behind_pages(state));
  while (next_ < end && !has_page(state, next_)) ++next_;
  if (next_ >= end) return false;
  const std::uint64_t page_bytes = job_.keeper.shape.page_rows() * job_.keeper.size() * job_.row_bytes();
  const std::uint64_t most = std::max<std::uint64_t>(kWindowBytes / page_bytes, 1);
  window_ = {next_, next_ + 1};
  while (window_.end < end && window_.size() < most && has_page(state, window_.end)) ++window_.end;
  next_ = window_.end;
  job_.spend(window_.size() * page_bytes);
  return true;
}

// ---- the members' rows ---------------------------------------------------------------------------------------------

Range ScrubPages::rows_of_window() const {
  const std::uint64_t page_rows = job_.keeper.shape.page_rows();
  return {window_.begin * page_rows, window_.end * page_rows};
}

MemberOptions ScrubPages::member_options() const {
  MemberOptions options;
  options.file_length = job_.published;
  options.parity_rows = rows_of_window();
  options.epoch = component_->state.epoch();
  options.by_message = true;
  return options;
}

// One member that is away, or does not give its rows, is left out; without two of them nothing can be said.
void ScrubPages::fetch() {
  PIF_ASSERT(!window_.empty(), window_.begin);
  sources_.clear();
  const auto& members = job_.keeper.members.lfs;
  std::optional<std::size_t> without;
  for (;;) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (without == i || !job_.is_away(members[i])) continue;
      job_.miss_away(members[i]);
      if (without) return;
      without = i;
    }
    if (without && members.size() == 1) return;
    const Status status = fetch_rows(without);
    if (status) {
      sources_ = rows_->sources();
      return;
    }
    const auto failed = note_failure(status.error());
    if (!failed || without) return;
    without = failed;
  }
}

Status ScrubPages::fetch_rows(std::optional<std::size_t> without) {
  MemberOptions options = member_options();
  options.without = without;
  rows_.emplace(job_.pass.keeping.peers, job_.storage, job_.keeper, options);
  PIF_TRY(rows_->open(component_->state.shape()));
  return rows_->is_any_far() ? rows_->fetch(rows_of_window()) : Status();
}

// Which member it was.
std::optional<std::size_t> ScrubPages::note_failure(const Error& error) {
  job_.miss(error.node.empty() ? "others" : error.node, error);
  const auto& members = job_.keeper.members.lfs;
  const auto bad =
      std::find_if(members.begin(), members.end(), [&](LfsIndex lfs) { return job_.name_of(lfs) == error.node; });
  if (bad == members.end()) return std::nullopt;
  if (access::is_lost(error.code)) job_.note_away(*bad);
  return static_cast<std::size_t>(bad - members.begin());
}

// ---- pages ---------------------------------------------------------------------------------------------------------

Result<std::vector<ScrubPages::Verdict>> ScrubPages::judge_window() const {
  PIF_TRY_VALUE(Files files, component::open_parity(job_.storage, job_.stem, component::OpenMode::kRead));
  std::vector<Verdict> verdicts;
  for (std::uint64_t page = window_.begin; page < window_.end; ++page) {
    Verdict verdict = judge(files, page);
    if (verdict.is_bad || verdict.is_doubtful || verdict.is_hopeless) verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

Result<component::PackedRows> ScrubPages::stretch_of(std::uint64_t page, std::size_t member) const {
  const auto& shape = job_.keeper.shape;
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

ScrubPages::Verdict ScrubPages::judge(Files& files, std::uint64_t page) const {
  const auto& shape = job_.keeper.shape;
  const auto found = component::read_page(shape, files, page);
  if (!found) return judge_bad(files, page, found.error().text);
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
  const auto stretch = component::rebuild_stretch(shape, files, page, lost, sources_);
  verdict.is_doubtful = stretch.has_value() && !other.empty();
  verdict.is_bad = !stretch && other.empty();
  verdict.is_hopeless = !stretch && !other.empty();
  if (!stretch) verdict.why = stretch.error().text;
  return verdict;
}

// Its members' rows must be those of its vector, if that holds: two damages in a group are not made good. But if the
// bytes are theirs, the entry in .psum alone is another one, say of a range that was cancelled.
ScrubPages::Verdict ScrubPages::judge_bad(Files& files, std::uint64_t page, const std::string& why) const {
  const auto& shape = job_.keeper.shape;
  Verdict verdict{page};
  verdict.why = why;
  const bool has_all = sources_.size() == shape.members() && std::count(sources_.begin(), sources_.end(), nullptr) == 0;
  const auto is_of_rows = has_all ? component::is_of_rows(shape, files, page, sources_) : false;
  verdict.is_bad = is_of_rows && *is_of_rows;
  if (verdict.is_bad) return verdict;
  const auto vector = vector_of(files, page);
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
Result<std::vector<component::VectorEntry>> ScrubPages::vector_of(Files& files, std::uint64_t page) const {
  const auto& shape = job_.keeper.shape;
  const std::size_t head = shape.format.is_fixed() ? 2 : 3;  // two sums; where a page of variable records ends
  std::vector<std::uint64_t> words(head + 2 * shape.members());
  const auto broken = [&] { return fail(Code::kCorrupt, fmt::format("parity page {} has no vector", page)); };
  if (!files.sums) return broken();
  const std::uint64_t bytes = words.size() * sizeof(std::uint64_t);
  PIF_TRY_VALUE(const std::size_t n, files.sums->read(page * bytes, std::as_writable_bytes(std::span(words))));
  if (n != bytes) return broken();
  const auto behind = std::as_bytes(std::span(words).subspan(2));
  if (chunk_sum(shape.file, component::kVectorStream, page, behind) != words[1]) return broken();
  std::vector<component::VectorEntry> out;
  for (std::size_t i = 0; i < shape.members(); ++i) out.push_back({words[head + 2 * i], words[head + 2 * i + 1]});
  return out;
}

std::vector<ScrubPages::Verdict> ScrubPages::take_bad(std::vector<Verdict> verdicts) {
  std::vector<Verdict> bad;
  for (Verdict& verdict : verdicts) {
    const bool may_wait = !job_.pass.is_last_look && job_.pass.doubts.size() < kDoubtsMax;
    if (verdict.is_doubtful && may_wait) {
      job_.pass.add_doubt({component_->file, verdict.page});
    } else if (verdict.is_doubtful) {
      report(fmt::format(
                 "parity page {}: one of its members has other rows than it was made of, with right sums: pif scrub "
                 "of that LFS repairs it",
                 verdict.page),
             false);
    } else if (verdict.is_hopeless || job_.pass.only_look) {
      report(verdict.why + (verdict.is_hopeless ? "" : "; not repaired, as was asked for"), false);
    } else {
      bad.push_back(std::move(verdict));
    }
  }
  return bad;
}

bool ScrubPages::look_at_window() {
  auto verdicts = job_.pass.keeping.works.run<&ScrubPages::judge_window>(*this);
  if (job_.is_gone()) return false;
  if (!verdicts) {
    report(verdicts.error().text, false);
    return false;
  }
  const auto bad = take_bad(std::move(*verdicts));
  if (!bad.empty()) repair(bad);
  return true;
}

void ScrubPages::repair(const std::vector<Verdict>& bad) {
  job_.pass.await_leave();
  if (job_.is_gone()) return;
  const Status made = make_anew(bad);
  if (job_.is_gone()) return;
  if (!component_->lock.keeps_parity()) component_->parity.reset();  // perhaps without what is new
  for (const Verdict& verdict : bad)
    report(verdict.why + (made ? "; made anew out of its members' rows" : "; not made anew: " + made.error().text),
           made.has_value());
}

// The files are opened here, where the component is not removed at the same time.
Status ScrubPages::make_anew(const std::vector<Verdict>& bad) {
  PIF_TRY_VALUE(auto opened, component::open_parity(job_.storage, job_.stem, component::OpenMode::kCreate));
  const auto files = std::make_shared<Files>(std::move(opened));
  ParityPlan plan;
  for (const Verdict& verdict : bad) plan.pages.push_back({verdict.page, verdict.page + 1});
  ParityRun run(job_.pass.keeping.peers, job_.storage, job_.pass.keeping.works, job_.keeper, member_options(), plan,
                files);
  PIF_TRY(run.run(component_->state.shape()));
  return job_.pass.keeping.works.run([&]() -> Status {
    PIF_TRY(component::sync(*files));
    PIF_TRY(job_.storage.sync_folder(job_.folder()));  // files that were missing have names now
    for (const Verdict& verdict : bad) PIF_TRY(component::read_page(job_.keeper.shape, *files, verdict.page));
    return {};
  });
}

void ScrubPages::report(const std::string& text, bool is_repaired) const {
  job_.report(fmt::format("file {}: {}", name_of(component_->file), text), is_repaired);
}

}  // namespace pif::lfs
