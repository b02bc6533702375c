// Knows everything that the file system has acknowledged, and judges what it shows: every record that is read, every
// length, every name.
//
// A write counts from its acknowledgement, or from when somebody has seen it. One that was never acknowledged may have
// happened, at any time after it began, or not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulate/content.h"
#include "simulate/names.h"

namespace pif::simulate {

// When an operation began and ended.
struct Span {
  Time begin{};
  Time end{};
};

class Oracle {
 public:
  explicit Oracle(std::function<void(const std::string&)> tell = {}) : tell_(std::move(tell)) {}
  using FileNumber = std::uint64_t;  // FileId

  // ---- what is done ----
  void created(FileNumber file);
  // Several records at once. Its number goes into them (content.h).
  std::uint64_t begin_put(FileNumber file, std::uint32_t first, std::uint32_t count, Time now);
  std::uint64_t begin_append(FileNumber file, std::uint32_t count, Time now);
  std::uint64_t begin_overwrite(FileNumber file, std::uint64_t first, std::uint32_t count, Time now);
  void acknowledged(std::uint64_t write, Time now);
  // An append: its records are there from `first` on.
  void appended(std::uint64_t write, std::uint64_t first, Time now);
  // The file is to become visible with so many records.
  void begin_commit(FileNumber file, std::uint64_t records);
  // A copy to a name that is used for nothing else before: `publishes` is its effect on the names. Its file is known
  // when it has been made; of an empty one nobody is told.
  std::size_t begin_copy(const std::string& target, NameOp publishes);
  void copies_into(std::size_t copy, FileNumber source, FileNumber made);
  void copied(std::size_t copy, Code code, Time end);
  void note(NameOp op);

  // ---- what was lost ----
  // At when.end an LFS was put back to what it was at when.begin, and nobody need notice: what was done between may be
  // undone, and files that were made or changed meanwhile may be broken. All else must be as if nothing had happened.
  void lapse(const Span& when);
  bool may_be_broken(FileNumber file) const;
  bool may_any_be_broken() const;
  // The file may mix old records with new ones: somebody has said so.
  void is_mixed(FileNumber file) { mixed_.insert(file); }
  // At when.end the directory was put back: what was done to names between is undone. accepted: and what had been
  // removed on LFSs stays so. A file that lost its name then may be back without what was appended to it since.
  void forget_names(const Span& when, bool accepted);
  // Files that surely had a name when they were forgotten, and the most records that they were known to have.
  std::map<FileNumber, std::uint64_t> forgotten() const;

  // ---- what is seen ----
  // A file under a name: known, or what a copy to that name has made.
  void saw_file(const std::string& path, FileNumber file);
  void saw_length(FileNumber file, std::uint64_t records, const Span& when);
  void saw_record(FileNumber file, std::uint64_t number, std::span<const std::byte> bytes, const Span& when);
  // What is seen of the file from here on must have been there at one moment, whichever that is.
  void begin_one_moment(FileNumber file);
  void end_one_moment() { one_moment_.reset(); }

  // ---- what is wrong ----
  void accuse(std::string text);
  void check_at_the_end(const Paths& paths);
  const std::vector<std::string>& violations() const { return violations_; }
  std::uint64_t records_seen() const { return records_seen_; }
  // Of files whose bytes somebody else judges (contents.h).
  void count_records(std::uint64_t seen) { records_seen_ += seen; }
  bool names_too_hard() const { return too_hard_; }

 private:
  enum class Kind : std::uint8_t { kPut, kAppend, kOverwrite };
  struct Write {
    Kind kind = Kind::kPut;
    FileNumber file = 0;
    std::optional<std::uint64_t> first;  // record; of an append: as soon as it is known
    std::uint32_t count = 0;
    Time begin{};
    Time end = kNever;
    Time told = kNever;          // when it was acknowledged, whatever was lost since
    bool may_lack_rows = false;  // a part that held some of them was put back unseen
  };
  struct Record {
    std::optional<Stamp> base;                // what put or append left there
    std::map<std::uint64_t, Time> effective;  // by write: when it was known to be there
    std::vector<std::uint64_t> overwrites;    // that were begun
  };
  struct FileLog {
    std::map<std::uint64_t, Record> records;
    std::vector<std::pair<Time, std::uint64_t>> lengths;  // at least so many records, known at that time
    std::uint64_t begun = 0;                              // records of all puts and appends
    FileNumber copy_of = 0;
    std::size_t copy = 0;     // which one
    Time committed = kNever;  // known to be
    bool broken = false;      // it may be
  };
  struct Copy {
    std::string target;
    NameOp publishes;
    FileNumber made = 0;
    bool broken = false;
  };
  std::uint64_t begin(Write write);
  std::optional<std::uint64_t> number_of(Write& write, Stamp stamp, std::uint64_t seen_at);
  bool is_base(FileLog& log, FileNumber file, std::uint64_t number, Stamp stamp, const Write& write);
  Time effective(const Record& record, std::uint64_t write) const;
  void check_whole_appends();
  void check_order(const Paths& paths, std::vector<NameOp> ops);
  bool is_loose(FileNumber file) const { return mixed_.contains(file) || undone_.contains(file); }
  bool is_lapsed(Time begin, Time end) const;
  bool may_be_undone(const Write& write, const Span& when) const;
  void note_copies();
  void judge(FileNumber file, std::uint64_t number, Stamp stamp, const Span& when, const std::string& what);
  void judge_copied(FileNumber file, std::uint64_t number, Stamp stamp, const Span& when);
  void set_length(FileLog& log, std::uint64_t records, Time known);
  void narrow_moment(FileNumber file, std::uint64_t number, Stamp stamp);

  std::function<void(const std::string&)> tell_;  // gets every violation at once
  std::map<FileNumber, FileLog> files_;
  std::vector<Write> writes_{1};  // by number; 0 is none
  std::vector<Copy> copies_;
  std::vector<NameOp> names_;
  std::vector<Span> lapses_;
  std::set<FileNumber> mixed_;
  std::set<FileNumber> undone_;  // have come back, perhaps without all they had
  std::optional<Span> forgotten_;
  struct OneMoment {
    FileNumber file = 0;
    Time first{}, last = kNever;  // it lies between
  };
  std::optional<OneMoment> one_moment_;
  std::vector<std::string> violations_;
  std::uint64_t records_seen_ = 0;
  bool too_hard_ = false;
};

}  // namespace pif::simulate
