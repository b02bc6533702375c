// All-to-all exchange of rows: every worker reads its component of an input in order, packs for every LFS of an output
// the rows that belong there into large batches, and sends them to the worker on that LFS, which puts them together in
// windows and writes these one after another. Between nodes a record travels once.
//
// A destination holds rows of one window only, [settled, settled + window): rows below `settled` are written. This is
// its sources' credit (credit.h); a source with rows beyond waits, and goes on with other destinations meanwhile. It
// cannot deadlock: let m be the lowest record that no source has sent yet. All lower records are with their
// destinations or on the way, so the window of m's destination reaches m's row in the end, and m's source, which never
// waits for one destination alone, sends it. Variable records are bounded in bytes too: a source has at most its share
// of the window under way to a destination, or one batch, whatever its size; m's source has nothing under way there
// when its turn comes. Between workers on one machine rows of fixed length are put straight into the destination's
// window, which is memory they share; only word of them travels. Memory of a worker: window_bytes (or two records), one
// block, and what the transport holds of the same window.
//
// Plans are pure; exchange() is called on the worker's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "pif/base/result.h"
#include "pif/base/timers.h"
#include "pif/parity/layout.h"
#include "pif/tool/worker.h"

namespace pif::tool {

// Rows of one source block that belong to one LFS of the destination, by rising row on both sides.
// Either in arithmetic progression, or (layouts with bevies) as lists of distances from the first.
struct RowMap {
  LfsIndex to = 0;
  std::uint64_t count = 0;
  std::uint64_t source_first = 0;  // in rows from the block's first
  std::uint64_t source_stride = 1;
  Row first = 0;  // at the destination
  std::uint64_t stride = 1;
  std::vector<std::uint32_t> source_list;  // if not empty: instead of source_stride
  std::vector<std::uint32_t> list;         // and instead of stride

  // For record i < count: its row in the source block, from the block's first, and its row at the destination.
  std::uint64_t source(std::uint64_t i) const {
    return source_first + (list.empty() ? i * source_stride : source_list[i]);
  }
  Row row(std::uint64_t i) const { return first + (list.empty() ? i * stride : list[i]); }
  // How many of its rows are below `limit`.
  std::uint64_t count_below(Row limit) const;
};

// Where rows [rows.begin, rows.end) of LFS `lfs` of a file laid out as `from` go in one laid out as `to`: at most one
// map per destination. rows.size() < 2^32.
std::vector<RowMap> plan_row_maps(const parity::Layout& from, LfsIndex lfs, Range rows, const parity::Layout& to);

struct ExchangeOptions {
  std::size_t window_bytes = 8u << 20;   // that a destination holds of its rows; less of each if there are over four
  bool share_memory = true;              // between workers on one machine; else all rows go by message
  Duration silence = kWorkerSilenceMax;  // without any message while there is something to wait for
};

// Moves all records of `input` to their places in `output`, which has the same format. Called by every worker of the
// job at the same time; workers are needed on all LFSs of both files. Returns when this worker's rows are written at
// their destinations and its own component of the output is complete. kTimeout: all others were
// silent; kCorrupt names a worker that sent what cannot be; kInternal: an LFS of the files has no worker; kIo,
// kNoSpace.
[[nodiscard]] Status exchange(Worker& worker, Input& input, Output& output, const ExchangeOptions& options = {});

}  // namespace pif::tool
