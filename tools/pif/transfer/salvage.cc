#include "transfer/salvage.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command/failures.h"
#include "names/entries.h"
#include "pif/base/format.h"
#include "pif/base/write_all.h"
#include "pif/parity/layout.h"

namespace pif::cli {
namespace {

constexpr std::size_t kNamed = 10;             // missing records
constexpr std::uint64_t kRunBytes = 1u << 20;  // read at once
constexpr std::uint64_t kRunRecords = 4096;

class Salvager {
 public:
  Salvager(File& file, const FileLength& file_length, int fd, const std::string& name)
      : file_(file), file_length_(file_length), fd_(fd), what_("cannot write to " + name) {}

  // Runs of records on LFSs that have theirs, and between them the missing ones.
  Result<Salvaged> run(Range records) {
    for (RecordNumber next = records.begin; next < records.end;) {
      const Range run = run_from(next, records.end);
      PIF_TRY_VALUE(const std::uint64_t passed, run.empty() ? miss(next) : take(run));
      next += passed;
    }
    return std::move(done_);
  }

 private:
  bool is_fixed() const { return file_.format().is_fixed(); }
  LfsIndex lfs_of(RecordNumber n) const { return file_.layout().locate(n).lfs; }

  Range run_from(RecordNumber begin, RecordNumber end) const {
    const std::uint64_t length = is_fixed() ? file_.format().record_length : 1;
    const std::uint64_t most = std::clamp<std::uint64_t>(kRunBytes / length, 1, kRunRecords);
    Range run{begin, begin};
    while (run.end < end && run.size() < most && !gone_.contains(lfs_of(run.end))) ++run.end;
    return run;
  }

  // How many records were passed. What fails as a run is tried one by one.
  Result<std::uint64_t> take(Range run) {
    auto read = is_fixed() ? read_fixed(run) : read_variable(run);
    if (read) {
      PIF_TRY(write(read->data));
      return static_cast<std::uint64_t>(read->lengths.size());
    }
    if (ends_all(read.error())) return fail(std::move(read.error()));
    if (run.size() > 1) {
      for (RecordNumber n = run.begin; n < run.end; ++n) {
        const bool is_gone = gone_.contains(lfs_of(n));
        PIF_TRY(is_gone ? miss(n) : take({n, n + 1}));
      }
      return run.size();
    }
    if (done_.why.text.empty()) done_.why = read.error();
    if (read.error().code == Code::kNotFound) gone_.insert(lfs_of(run.begin));  // there is no component
    return miss(run.begin);
  }

  Result<RecordBatch> read_fixed(Range run) {
    const std::uint32_t length = file_.format().record_length;
    RecordBatch batch;
    batch.data.resize(run.size() * length);
    PIF_TRY_VALUE(const std::uint64_t got, file_.read_at(run.begin, batch.data, run.size()));
    for (std::uint64_t i = 0; i < got; ++i)
      batch.lengths.push_back(fixed_record_bytes(length, file_length_, run.begin + i));
    return whole(std::move(batch));
  }
  Result<RecordBatch> read_variable(Range run) {
    PIF_TRY_VALUE(RecordBatch batch, file_.read_batch_at(run.begin, run.size(), kRunBytes));
    return whole(std::move(batch));
  }
  static Result<RecordBatch> whole(RecordBatch batch) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t length : batch.lengths) bytes += length;
    if (batch.lengths.empty()) return fail(Code::kCorrupt, "the record is not there");
    batch.data.resize(bytes);
    return batch;
  }

  Result<std::uint64_t> miss(RecordNumber n) {
    ++done_.missing;
    if (done_.missing_are.size() < kNamed) done_.missing_are.push_back(n);
    if (is_fixed())
      PIF_TRY(write(std::vector<std::byte>(fixed_record_bytes(file_.format().record_length, file_length_, n))));
    return std::uint64_t{1};
  }

  Status write(std::span<const std::byte> bytes) {
    PIF_TRY(write_all(fd_, bytes, what_));
    done_.bytes += bytes.size();
    return {};
  }

  File& file_;
  const FileLength file_length_;
  const int fd_;
  const std::string what_;
  std::set<LfsIndex> gone_;  // LFSs that have no component of it
  Salvaged done_;
};

}  // namespace

std::string Salvaged::text(const std::string& path, std::uint64_t of, bool is_fixed) const {
  return fmt::format("{}: {} of {} records are gone ({}): {}{}; {}", path, missing, of, at(path, why).to_string(),
                     fmt::join(missing_are, ", "), missing > missing_are.size() ? ", ..." : "",
                     is_fixed ? "zeros stand for them" : "they are left out");
}

Result<Salvaged> salvage(File& file, Range records, int fd, const std::string& name) {
  PIF_TRY_VALUE(const FileLength file_length, file.file_length());
  const std::uint64_t end = std::min(records.end, file_length.records);
  return Salvager(file, file_length, fd, name).run({std::min(records.begin, end), end});
}

}  // namespace pif::cli
