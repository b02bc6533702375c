// Sorted records to their places in the output, which every worker writes to on all LFSs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pif/tool/team.h"
#include "runs/merge.h"

namespace pif::sort {

// Bytes that a record has in the output: lines get the terminator that the last one may lack.
class OutputRecord {
 public:
  explicit OutputRecord(const Format& format) : format_(format) {}
  std::size_t size(Bytes record) const { return record.size() + (lacks_end(record) ? 1 : 0); }
  void copy(Bytes record, std::byte* to) const;

 private:
  bool lacks_end(Bytes record) const {
    return format_.kind == RecordKind::kDelimited &&
           (record.empty() || record.back() != static_cast<std::byte>(format_.delimiter));
  }
  Format format_;
};

// Consecutive records of the result, put together for the LFSs that they go to.
struct OutputBatch {
  // For so many records.
  void make_room(std::size_t records, std::size_t record_length) {
    picks.resize(records);
    bytes.resize(records * record_length);
  }

  std::uint64_t first = 0;  // position
  std::size_t count = 0;    // of records in it
  std::vector<Pick> picks;
  std::vector<std::byte> bytes;  // LFS by LFS
};

// All workers at once: each share begins at a multiple of alignment(), so that no two write to one checksum chunk. For
// records of fixed length in an even layout, of which none is dropped.
class ParallelOutput {
 public:
  // files: of the output's components, by LfsIndex; they and output outlive it.
  ParallelOutput(const tool::Output& output, std::span<component::Files> files, std::uint64_t records);
  static std::uint64_t alignment(const Format& format, const parity::Layout& layout);

  // A batch that begins at position `first`: what the merge gives next, as much as there is room for. A pure kernel:
  // for several batches at once.
  void fill(std::uint64_t first, Merger& merge, std::span<const RunView> runs, OutputBatch& batch) const;
  // One at a time.
  [[nodiscard]] Status write(const OutputBatch& batch);
  // In turn (tool::Team): a component's gap can be judged only when those before it are filled. `state`: the tails, as
  // the worker before this one, of rank `rank`, left them.
  [[nodiscard]] Status finish(std::string& state, std::uint32_t rank);
  std::uint64_t moved_bytes() const { return moved_bytes_; }  // to components on other LFSs

 private:
  // f(lfs, rows, at) for each LFS that has rows in the batch, in the order of its bytes. at: of the first row in it.
  template <typename F>
  [[nodiscard]] Status for_each_lfs(const OutputBatch& batch, const F& f) const;

  const tool::Output& output_;
  std::vector<std::unique_ptr<access::RowSink>> sinks_;  // by LfsIndex; empty: it gets no rows
  std::uint64_t moved_bytes_ = 0;
};

}  // namespace pif::sort
