#include "directory/numbers.h"

#include <fmt/format.h>

#include "directory/own_ids.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr char kRunTag = 'r';       // then the first index: run
constexpr char kAcceptedTag = 'x';  // then the run: its highest index
constexpr char kRangeTag = 'g';     // then a range of ids: the run that gives them out here; 0: another history did
constexpr unsigned kRangeShift = 32;

std::string key_of(char tag, std::uint64_t number) { return tag + kv::key_u64(number); }

// Rows of the table whose keys have this tag.
Status scan_tag(Rows& rows, char tag, const std::function<void(std::uint64_t, std::uint64_t)>& visit) {
  bool good = true;
  PIF_TRY(rows.scan(kNumbers, std::string(1, tag), [&](std::string_view key, std::string_view payload) {
    if (key.empty() || key.front() != tag) return false;
    good = key.size() == 9 && payload.size() == 8;
    if (good) visit(kv::u64_of_key(key.substr(1)), kv::u64_of_key(payload));
    return good;
  }));
  if (good) return {};
  return fail(Code::kCorrupt, "the directory's table numbers has a row that cannot be read");
}

}  // namespace

Result<bool> is_id_of_run(Rows& rows, std::uint64_t id, std::uint64_t run) {
  PIF_TRY_VALUE(const auto stored, rows.get(kNumbers, key_of(kRangeTag, id >> kRangeShift)));
  return stored && stored->size() == 8 && kv::u64_of_key(*stored) == run;
}

Status make_numbers(Rows& rows) { return rows.put_bytes(kTop, kIndexKey, kv::key_u64(0)); }

Status Numbers::load(Entropy& entropy) {
  PIF_ASSERT(run_ == 0, run_);  // once, at a start
  entropy_ = &entropy;
  PIF_TRY_VALUE(auto stored, rows_.get(kTop, kIndexKey));
  if (!stored) {  // where the first programs of format 2 kept it
    PIF_TRY_VALUE(stored, rows_.get(kNumbers, kIndexKey));
  }
  if (!stored || stored->size() != 8) return fail(Code::kCorrupt, "the directory does not say how far it has come");
  index_ = kv::u64_of_key(*stored);
  std::uint64_t last = 0;
  PIF_TRY(scan_tag(rows_, kRunTag, [&](std::uint64_t first, std::uint64_t run) {
    if (last != 0) runs_[last].end = first;
    runs_[run] = {first, UINT64_MAX};
    last = run;
  }));
  PIF_TRY(scan_tag(rows_, kAcceptedTag, [&](std::uint64_t run, std::uint64_t index) { accepted_[run] = index; }));
  PIF_TRY(scan_tag(rows_, kRangeTag, [&](std::uint64_t range, std::uint64_t) { ranges_.insert(range); }));
  while (run_ == 0 || runs_.contains(run_) || accepted_.contains(run_)) run_ = entropy.next();
  if (last != 0) runs_[last].end = next_index();
  runs_[run_] = {next_index(), UINT64_MAX};
  PIF_TRY(rows_.put_bytes(kNumbers, key_of(kRunTag, next_index()), kv::key_u64(run_)));
  return begin_range();
}

// At random, so that a directory that was restored from a backup does not give out what the lost one has given out
// since.
Status Numbers::begin_range() {
  PIF_ASSERT(entropy_ != nullptr && run_ != 0, run_);
  std::uint64_t range = 0;  // is that of the root folder, and of ids that earlier releases gave out
  while (range == 0 || ranges_.contains(range)) range = entropy_->next() >> kRangeShift;
  PIF_TRY(rows_.put_bytes(kNumbers, key_of(kRangeTag, range), kv::key_u64(run_)));
  ranges_.insert(range);
  last_id_ = range << kRangeShift;
  return {};
}

Result<std::uint64_t> Numbers::next_id() {
  if ((last_id_ + 1) >> kRangeShift != last_id_ >> kRangeShift) PIF_TRY(begin_range());
  ++last_id_;
  PIF_ASSERT(last_id_ >> kRangeShift != 0 && last_id_ << kRangeShift != 0, last_id_);
  return last_id_;
}

Status Numbers::take_in(std::uint64_t id) {
  const std::uint64_t range = id >> kRangeShift;
  if (range == 0 || ranges_.contains(range)) return {};
  PIF_TRY(rows_.put_bytes(kNumbers, key_of(kRangeTag, range), kv::key_u64(0)));
  rows_.on_commit([this, range] { ranges_.insert(range); });
  return {};
}

void Numbers::raise_above(std::uint64_t index) { above_ = std::max(above_, index); }

Status Numbers::stamp() {
  PIF_ASSERT(rows_.writing(), index_);
  rows_.on_commit([this, index = next_index()] { index_ = index; });
  return rows_.put_bytes(kTop, kIndexKey, kv::key_u64(next_index()));
}

proto::Moment Numbers::moment() const {
  PIF_ASSERT(run_ != 0, index_);
  proto::Moment moment;
  moment.set_run(run_);
  moment.set_index(index_);
  return moment;
}

bool Numbers::knows(const proto::Moment& kept) const {
  if (kept.run() == 0) return true;
  if (const auto found = accepted_.find(kept.run()); found != accepted_.end() && kept.index() <= found->second)
    return true;
  const auto found = runs_.find(kept.run());
  if (found == runs_.end()) return false;
  return kept.run() == run_ ? kept.index() <= index_ : kept.index() < found->second.end;
}

Status Numbers::accept(const proto::Moment& kept) {
  if (knows(kept)) return {};
  const std::string key = key_of(kAcceptedTag, kept.run());
  PIF_TRY_VALUE(const auto stored,
                rows_.get(kNumbers, key));  // of this turn, perhaps: what another LFS was told of the same run
  if (stored && stored->size() == 8 && kv::u64_of_key(*stored) >= kept.index()) return {};
  PIF_TRY(rows_.put_bytes(kNumbers, key, kv::key_u64(kept.index())));
  rows_.on_commit([this, kept] { accepted_[kept.run()] = kept.index(); });
  return {};
}

}  // namespace pif::server
