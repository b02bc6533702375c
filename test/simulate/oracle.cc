#include "simulate/oracle.h"

#include <algorithm>

#include <fmt/format.h>

namespace pif::simulate {
namespace {

double seconds(Time time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

}  // namespace

// ---- what is done ----

void Oracle::created(FileNumber file) { files_[file]; }

std::uint64_t Oracle::begin(Write write) {
  auto& log = files_[write.file];
  if (write.kind != Kind::kOverwrite) log.begun += write.count;
  writes_.push_back(write);
  return writes_.size() - 1;
}

std::uint64_t Oracle::begin_put(FileNumber file, std::uint32_t first, std::uint32_t count, Time now) {
  return begin({Kind::kPut, file, first, count, now, kNever});
}

std::uint64_t Oracle::begin_append(FileNumber file, std::uint32_t count, Time now) {
  return begin({Kind::kAppend, file, {}, count, now, kNever});
}

std::uint64_t Oracle::begin_overwrite(FileNumber file, std::uint64_t first, std::uint32_t count, Time now) {
  const auto write = begin({Kind::kOverwrite, file, first, count, now, kNever});
  for (std::uint64_t i = first; i < first + count; ++i) files_[file].records[i].overwrites.push_back(write);
  return write;
}

void Oracle::acknowledged(std::uint64_t write, Time now) {
  writes_[write].told = now;
  if (!is_lapsed(writes_[write].begin, now)) writes_[write].end = now;
}

void Oracle::appended(std::uint64_t number, std::uint64_t first, Time now) {
  Write& write = writes_[number];
  write.told = now;
  if (is_lapsed(write.begin, now) || is_loose(write.file)) return;
  if (write.first && *write.first != first)
    accuse(fmt::format("file {:x}: append {} was acknowledged at record {}, and seen at {}", write.file, number, first,
                       *write.first));
  write.first = first;
  write.end = now;
  auto& log = files_[write.file];
  for (std::uint32_t i = 0; i < write.count; ++i) (void)is_base(log, write.file, first + i, {number, i}, write);
  set_length(log, first + write.count, now);
}

void Oracle::begin_commit(FileNumber file, std::uint64_t records) { set_length(files_[file], records, Time{}); }

std::size_t Oracle::begin_copy(const std::string& target, NameOp publishes) {
  copies_.push_back({target, std::move(publishes), 0});
  return copies_.size() - 1;
}

void Oracle::copies_into(std::size_t copy, FileNumber source, FileNumber made) {
  copies_[copy].made = made;
  auto& log = files_[made];
  log.copy_of = source;
  log.copy = copy;
  log.begun = UINT64_MAX / 2;  // the source's, and what is appended here
  const Time begin = copies_[copy].publishes.begin;
  for (const auto& [known, records] : files_[source].lengths)
    if (known < begin) set_length(log, records, begin);
}

void Oracle::note(NameOp op) {
  if (op.kind == NameOp::Kind::kPublish && op.code == Code::kOk && op.end != kNever)
    files_[op.meaning].committed = op.end;
  names_.push_back(std::move(op));
}

void Oracle::copied(std::size_t copy, Code code, Time end) {
  copies_[copy].publishes.end = end;
  copies_[copy].publishes.code = code;
}

// ---- what was lost ----

// What began before a lapse came to its end, and ended after it: either may be meant, the state before or after.
bool Oracle::is_lapsed(Time begin, Time end) const {
  return std::any_of(lapses_.begin(), lapses_.end(),
                     [&](const Span& lapse) { return begin <= lapse.end && end >= lapse.begin; });
}

bool Oracle::may_be_undone(const Write& write, const Span& when) const {
  return write.kind != Kind::kPut && write.begin <= when.end && write.end >= when.begin;
}

void Oracle::lapse(const Span& when) {
  lapses_.push_back(when);
  for (std::size_t i = 1; i < writes_.size(); ++i) {
    Write& write = writes_[i];
    if (!may_be_undone(write, when)) continue;
    if (write.kind == Kind::kAppend) write.first.reset();
    write.end = kNever;
    write.may_lack_rows = true;
    files_[write.file].broken = true;
  }
  for (auto& copy : copies_) copy.broken = copy.broken || copy.publishes.end >= when.begin;
  for (auto& [file, log] : files_) {
    if (log.copy_of == 0 ? log.committed >= when.begin : copies_[log.copy].broken) log.broken = true;
    std::erase_if(log.lengths, [&](const auto& length) { return length.first >= when.begin; });
    for (auto& [number, record] : log.records) {
      std::erase_if(record.effective, [&](const auto& seen) { return seen.second >= when.begin; });
      if (record.base && may_be_undone(writes_[record.base->write], when)) record.base.reset();
    }
  }
}

namespace {

bool changes(const NameOp& op) {
  return op.kind == NameOp::Kind::kPublish || op.kind == NameOp::Kind::kRemove || op.kind == NameOp::Kind::kRename;
}

bool is_of(const NameOp& op, std::size_t path) {
  return op.path == path || (op.kind == NameOp::Kind::kRename && op.to == path);
}

}  // namespace

void Oracle::forget_names(const Span& when, bool accepted) {
  forgotten_ = when;
  if (!accepted) return;
  auto ops = names_;
  for (const auto& copy : copies_) ops.push_back(copy.publishes);
  std::set<std::size_t> paths;
  for (const auto& op : ops) {
    if (!changes(op) || op.end < when.begin || op.begin > when.end) continue;
    paths.insert(op.path);
    if (op.kind == NameOp::Kind::kRename) paths.insert(op.to);
  }
  for (const auto& op : ops)
    if (paths.contains(op.path) && op.meaning > kFolder) undone_.insert(op.meaning);
}

bool Oracle::may_be_broken(FileNumber file) const {
  const auto found = files_.find(file);
  return mixed_.contains(file) || (found != files_.end() && found->second.broken);
}

bool Oracle::may_any_be_broken() const {
  return std::any_of(files_.begin(), files_.end(), [this](const auto& one) { return may_be_broken(one.first); });
}

std::map<Oracle::FileNumber, std::uint64_t> Oracle::forgotten() const {
  std::map<FileNumber, std::uint64_t> out;
  if (!forgotten_) return out;
  const auto touches = [&](const NameOp& op, const NameOp& made) {
    return &op != &made && changes(op) && op.end >= made.begin && op.begin <= forgotten_->end && is_of(op, made.path);
  };
  for (const auto& made : names_) {
    if (made.kind != NameOp::Kind::kPublish || made.code != Code::kOk) continue;
    if (made.begin <= forgotten_->begin || made.end >= forgotten_->end) continue;
    if (std::any_of(names_.begin(), names_.end(), [&](const NameOp& op) { return touches(op, made); })) continue;
    auto& most = out[made.meaning];
    for (const auto& [known, records] : files_.at(made.meaning).lengths) most = std::max(most, records);
  }
  return out;
}

// ---- what is seen ----

void Oracle::saw_file(const std::string& path, FileNumber file) {
  if (files_.contains(file)) return;
  const auto copy =
      std::find_if(copies_.begin(), copies_.end(), [&](const Copy& c) { return c.target == path && c.made == 0; });
  if (copy == copies_.end()) return accuse(fmt::format("{}: a file {:x} that nobody made", path, file));
  copy->made = file;
  files_[file].broken = copy->broken;
}

void Oracle::set_length(FileLog& log, std::uint64_t records, Time known) { log.lengths.emplace_back(known, records); }

void Oracle::saw_length(FileNumber file, std::uint64_t records, const Span& when) {
  auto& log = files_[file];
  if (is_lapsed(when.begin, when.end) || is_loose(file)) return;
  for (const auto& [known, least] : log.lengths)
    if (known < when.begin && records < least)
      return accuse(fmt::format("file {:x}: {} records at {:.6f}, but {} were there at {:.6f}", file, records,
                                seconds(when.end), least, seconds(known)));
  if (records > log.begun)
    accuse(fmt::format("file {:x}: {} records at {:.6f}, but only {} were ever written", file, records,
                       seconds(when.end), log.begun));
  set_length(log, records, when.end);
}

void Oracle::saw_record(FileNumber file, std::uint64_t number, std::span<const std::byte> bytes, const Span& when) {
  ++records_seen_;
  const auto stamp = read_record(bytes);
  if (stamp && stamp->write != 0 && stamp->write < writes_.size()) narrow_moment(file, number, *stamp);
  if (stamp && stamp->write != 0 && stamp->write < writes_.size())
    return judge(file, number, *stamp, when, fmt::format("file {:x}, record {}", file, number));
  accuse(fmt::format("file {:x}, record {}: {} bytes that nobody wrote, at {:.6f}", file, number, bytes.size(),
                     seconds(when.end)));
}

void Oracle::begin_one_moment(FileNumber file) {
  one_moment_.reset();
  if (files_[file].copy_of == 0) one_moment_ = OneMoment{file, Time{}, kNever};  // a copy's writes are of its source
}

// The moment is not before the write began that is seen, nor after another one was acknowledged that came later.
void Oracle::narrow_moment(FileNumber file, std::uint64_t number, Stamp stamp) {
  if (!one_moment_ || one_moment_->file != file) return;
  const Write& seen = writes_[stamp.write];
  OneMoment& moment = *one_moment_;
  moment.first = std::max(moment.first, seen.begin);
  const Time there = seen.kind == Kind::kOverwrite ? seen.told : seen.begin;  // overwrites come after what they change
  for (const auto other : files_[file].records[number].overwrites) {
    if (other != stamp.write && writes_[other].begin > there) moment.last = std::min(moment.last, writes_[other].told);
  }
  if (moment.first <= moment.last) return;
  accuse(
      fmt::format("file {:x} mixes moments, and has no mark: record {} is of write {}; all seen is of {:.6f} or "
                  "later, and of {:.6f} or before",
                  file, number, stamp.write, seconds(moment.first), seconds(moment.last)));
  one_moment_.reset();
}

// The record's number, if this stamp can be there: where its write put it.
std::optional<std::uint64_t> Oracle::number_of(Write& write, Stamp stamp, std::uint64_t seen_at) {
  if (stamp.index >= write.count) return std::nullopt;
  if (!write.first && seen_at >= stamp.index) write.first = seen_at - stamp.index;
  if (!write.first) return std::nullopt;
  return *write.first + stamp.index;
}

bool Oracle::is_base(FileLog& log, FileNumber file, std::uint64_t number, Stamp stamp, const Write& write) {
  if (write.kind == Kind::kOverwrite && write.file == file) return false;
  auto& base = log.records[number].base;
  if (base && *base != stamp)
    accuse(fmt::format("file {:x}, record {}: of write {} and of write {}", file, number, base->write, stamp.write));
  base = stamp;
  return true;
}

Time Oracle::effective(const Record& record, std::uint64_t write) const {
  const auto seen = record.effective.find(write);
  return std::min(writes_[write].end, seen == record.effective.end() ? kNever : seen->second);
}

void Oracle::judge_copied(FileNumber file, std::uint64_t number, Stamp stamp, const Span& when) {
  const auto& log = files_[file];
  const auto known = log.records.find(number);
  if (known != log.records.end() && known->second.base) return;  // is_base compares
  const auto& copy = copies_[log.copy].publishes;
  const Span copied{copy.begin, std::min(copy.end, when.end)};
  judge(log.copy_of, number, stamp, copied,
        fmt::format("file {:x} (a copy of {:x}), record {}", file, log.copy_of, number));
}

void Oracle::judge(FileNumber file, std::uint64_t number, Stamp stamp, const Span& when, const std::string& what) {
  auto& log = files_[file];
  Write& write = writes_[stamp.write];
  const bool foreign = write.file != file;
  if (foreign && log.copy_of == 0)
    return accuse(fmt::format("{}: of write {} to file {:x}", what, stamp.write, write.file));
  if (is_loose(file) || is_lapsed(when.begin, when.end)) return;
  if (foreign) judge_copied(file, number, stamp, when);
  if (!foreign && number_of(write, stamp, number) != number)
    return accuse(fmt::format("{}: record {} of write {}, which belongs at {}", what, stamp.index, stamp.write,
                              write.first.value_or(0) + stamp.index));
  if (write.begin > when.end) return accuse(fmt::format("{}: of write {}, before it began", what, stamp.write));
  const bool base = is_base(log, file, number, stamp, write);
  auto& record = log.records[number];
  const Time since = effective(record, stamp.write);
  for (const auto other : record.overwrites) {
    if (other == stamp.write || effective(record, other) >= when.begin) continue;
    if (base || writes_[other].begin > since)
      accuse(fmt::format("{}: at {:.6f}..{:.6f} of write {}, but write {} was there at {:.6f}", what,
                         seconds(when.begin), seconds(when.end), stamp.write, other,
                         seconds(effective(record, other))));
  }
  auto& seen = record.effective.try_emplace(stamp.write, when.end).first->second;
  seen = std::min(seen, when.end);
}

// ---- what is wrong ----

void Oracle::accuse(std::string text) {
  if (tell_) tell_("VIOLATION: " + text);
  violations_.push_back(std::move(text));
}

void Oracle::check_whole_appends() {
  for (std::size_t i = 1; i < writes_.size(); ++i) {
    const auto& write = writes_[i];
    if (write.kind != Kind::kAppend || !write.first || write.may_lack_rows || is_loose(write.file)) continue;
    for (const auto& [known, records] : files_[write.file].lengths)
      if (records > *write.first && records < *write.first + write.count)
        accuse(fmt::format("file {:x}: {} records at {:.6f}, inside of append {} at {}", write.file, records,
                           seconds(known), i, *write.first));
  }
}

// What a copy made is known by now, if anybody has ever seen it.
void Oracle::note_copies() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    NameOp op = copies_[i].publishes;
    op.meaning = copies_[i].made != 0 ? copies_[i].made : UINT64_MAX - i;
    names_.push_back(std::move(op));
  }
}

void Oracle::check_order(const Paths& paths, std::vector<NameOp> ops) {
  auto report = check_names(paths, std::move(ops));
  too_hard_ = too_hard_ || report.verdict == Verdict::kTooHard;
  if (report.verdict == Verdict::kNot) accuse(std::move(report.text));
}

namespace {

bool only_looks(const NameOp& op) { return op.kind == NameOp::Kind::kSee || op.kind == NameOp::Kind::kList; }

// The operation as seen from a state that it may, or may not, have led to.
void add_unknown(std::vector<NameOp>& to, NameOp op) {
  if (only_looks(op)) return;
  op.end = kNever;
  to.push_back(std::move(op));
}

// The history that ended when the directory was put back. An answer that came later is of the other one: a request
// that was refused there may have been carried out here.
std::vector<NameOp> lost_history(const std::vector<NameOp>& ops, const Span& lost) {
  std::vector<NameOp> out;
  for (const auto& op : ops) {
    if (op.begin > lost.end) continue;
    if (op.end <= lost.end)
      out.push_back(op);
    else
      add_unknown(out, op);
  }
  return out;
}

// The one without what was undone.
std::vector<NameOp> kept_history(const std::vector<NameOp>& ops, const Span& lost) {
  std::vector<NameOp> out;
  for (const auto& op : ops) {
    const bool may_be_done = op.end == kNever || op.code == Code::kOk;
    if (op.begin > lost.end || op.end < lost.begin)
      out.push_back(op);
    else if (may_be_done && (op.begin <= lost.begin || op.end > lost.end))
      add_unknown(out, op);
  }
  return out;
}

}  // namespace

void Oracle::check_at_the_end(const Paths& paths) {
  note_copies();
  check_whole_appends();
  if (!forgotten_) return check_order(paths, names_);
  check_order(paths, lost_history(names_, *forgotten_));
  check_order(paths, kept_history(names_, *forgotten_));
}

}  // namespace pif::simulate
